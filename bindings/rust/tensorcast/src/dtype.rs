// SPDX-License-Identifier: Apache-2.0
//! Types of elements.

use crate::error::{Error, check};
use std::ffi::{CStr, CString};
use std::fmt;
use tensorcast_sys as sys;

/// A type of elements, by ONNX's number; from 1001 on those that ONNX lacks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct DType(sys::tc_dtype);

impl DType {
    pub const FLOAT64: Self = Self(sys::TC_FLOAT64);
    pub const FLOAT32: Self = Self(sys::TC_FLOAT32);
    pub const FLOAT16: Self = Self(sys::TC_FLOAT16);
    pub const BFLOAT16: Self = Self(sys::TC_BFLOAT16);
    pub const BOOL: Self = Self(sys::TC_BOOL);

    /// The type of a name in any spelling that the library knows: `"bfloat16"`, `"bf16"`, `"F8_E4M3"`.
    pub fn parse(spelling: &str) -> Result<Self, Error> {
        let spelling = CString::new(spelling).map_err(|_| Error::invalid("a name has no zero byte".into()))?;
        match unsafe { sys::tc_dtype_parse(spelling.as_ptr()) } {
            sys::TC_UNDEFINED => Err(check(unsafe { sys::tc_last_error_code() }).unwrap_err()),
            number => Ok(Self(number)),
        }
    }

    pub(crate) const fn of_number(number: sys::tc_dtype) -> Self {
        Self(number)
    }

    /// ONNX's number.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The canonical name.
    pub fn name(self) -> &'static str {
        let name = unsafe { sys::tc_dtype_name(self.0) }; // static
        if name.is_null() { "undefined" } else { unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("undefined") }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// All types, in the library's order.
pub fn dtypes() -> Vec<DType> {
    (0..)
        .map(|index| unsafe { sys::tc_dtype_at(index) })
        .take_while(|number| *number != sys::TC_UNDEFINED)
        .map(DType)
        .collect()
}

mod sealed {
    pub trait Sealed {}
}

/// A type of Rust that is a type of elements.
pub trait Element: sealed::Sealed + Copy + Default {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $number:ident),*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType(sys::$number);
        }
    )*};
}

elements!(f64 => TC_FLOAT64, f32 => TC_FLOAT32, i64 => TC_INT64, i32 => TC_INT32, i16 => TC_INT16, i8 => TC_INT8,
          u64 => TC_UINT64, u32 => TC_UINT32, u16 => TC_UINT16, u8 => TC_UINT8);
