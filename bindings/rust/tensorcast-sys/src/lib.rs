// SPDX-License-Identifier: Apache-2.0
//! The C interface of tensorcast as its headers declare it: `c_api.h`, `c_files.h` and `c_onnx.h`, whose comments are the
//! documentation. The crate `tensorcast` is the safe way.
#![no_std]
#![allow(non_camel_case_types)]

#[rustfmt::skip]
mod bindings;
pub use bindings::*;
