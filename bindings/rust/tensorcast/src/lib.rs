// SPDX-License-Identifier: Apache-2.0
//! Converts tensors between every number format that machine learning uses, bit-exactly: ONNX's 26 types and six more,
//! and weights in blocks that share scales.
//!
//! ```
//! use tensorcast::{cast, DType, Options};
//!
//! let numbers = [1.0f32, 0.1, 1e6];
//! let codes = cast(&numbers, DType::parse("float8_e4m3fn")?, &Options::default())?;
//! assert_eq!(codes, [0x38, 0x1d, 0x7e]); // 1e6 saturates
//! # Ok::<(), tensorcast::Error>(())
//! ```
//!
//! Elements of types that Rust lacks are bytes as the library stores them: types under 8 bits are packed, low bits first.

mod blocks;
mod dtype;
mod error;
mod options;

pub use blocks::{Quantized, quantize};
pub use dtype::{DType, Element, dtypes};
pub use error::{Error, Status};
pub use options::{Inexact, Options, OutOfRange, Rounding};

use error::{check, owned_text};
use std::ffi::{CString, c_char, c_void};
use std::ptr;
use tensorcast_sys as sys;

/// Converts a slice of numbers. The result is the target's bytes.
pub fn cast<T: Element>(source: &[T], to: DType, options: &Options) -> Result<Vec<u8>, Error> {
    cast_bytes(bytes_of(source), T::DTYPE, to, source.len(), options)
}

/// Converts a slice of numbers into numbers of another type of Rust.
///
/// ```
/// use tensorcast::{cast_to, Options};
///
/// assert_eq!(cast_to::<f32, i8>(&[1.5, -2.5], &Options::default())?, [1, -2]);
/// # Ok::<(), tensorcast::Error>(())
/// ```
pub fn cast_to<T: Element, U: Element>(source: &[T], options: &Options) -> Result<Vec<U>, Error> {
    let mut result = vec![U::default(); source.len()];
    // The result's memory has exactly the bytes of its elements.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(result.as_mut_ptr().cast::<u8>(), size_of_val(result.as_slice())) };
    cast_into(bytes_of(source), T::DTYPE, bytes, U::DTYPE, source.len(), options)?;
    Ok(result)
}

/// Converts `count` packed elements.
pub fn cast_bytes(source: &[u8], from: DType, to: DType, count: usize, options: &Options) -> Result<Vec<u8>, Error> {
    let mut result = vec![0; storage_bytes(to, count)?];
    cast_into(source, from, &mut result, to, count, options)?;
    Ok(result)
}

/// Converts `count` packed elements into memory of the caller's.
pub fn cast_into(
    source: &[u8],
    from: DType,
    target: &mut [u8],
    to: DType,
    count: usize,
    options: &Options,
) -> Result<(), Error> {
    need_bytes("source", source.len(), from, count)?;
    need_bytes("target", target.len(), to, count)?;
    let options = options.to_c();
    // Both buffers have as many bytes as the library reads and writes, and as one is borrowed mutably, they are apart.
    check(unsafe {
        sys::tc_cast(source.as_ptr().cast(), from.number(), target.as_mut_ptr().cast(), to.number(), count, &options)
    })
}

/// The bytes of `count` packed elements. An error if no memory has so many.
pub fn storage_bytes(dtype: DType, count: usize) -> Result<usize, Error> {
    match unsafe { sys::tc_storage_bytes(dtype.number(), count) } {
        usize::MAX => Err(Error::invalid(format!("no memory has {count} elements of {dtype}"))),
        bytes => Ok(bytes),
    }
}

/// What `tcast explain --json` prints of a number: in one type, or in all.
pub fn explain(literal: &str, to: Option<DType>, options: &Options) -> Result<String, Error> {
    let literal = CString::new(literal).map_err(|_| Error::invalid("a literal has no zero byte".into()))?;
    let mut json: *mut c_char = ptr::null_mut();
    let to = to.map_or(0, DType::number);
    check(unsafe { sys::tc_explain(literal.as_ptr(), 0, to, &options.to_c(), &mut json) })?;
    Ok(owned_text(json))
}

/// The type that both have in common by OpenVINO's ConvertPromoteTypes-14, without its options.
pub fn promote(a: DType, b: DType) -> Result<DType, Error> {
    let mut common = 0;
    check(unsafe { sys::tc_promote(a.number(), 0, b.number(), 0, ptr::null(), &mut common) })?;
    Ok(DType::of_number(common))
}

fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // Elements are plain numbers, all of whose bytes are set.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

fn need_bytes(name: &str, has: usize, dtype: DType, count: usize) -> Result<(), Error> {
    let needs = storage_bytes(dtype, count)?;
    if has == needs {
        return Ok(());
    }
    Err(Error::invalid(format!("{count} elements of {dtype} take {needs} bytes, but the {name} has {has}")))
}

pub(crate) type Memory = *mut c_void;
