// SPDX-License-Identifier: Apache-2.0
//! Errors of the library: a status, a sentence, a hint and the element at fault.

use std::ffi::{CStr, c_char};
use std::fmt;
use tensorcast_sys as sys;

/// Why a call failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Status {
    InvalidArgument,
    Unsupported,
    OutOfRange,
    Parse,
    Io,
    Internal,
    Cancelled,
}

/// What a call that failed says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error {
    pub status: Status,
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
    /// The index of the element at fault.
    pub element: Option<u64>,
}

impl Error {
    pub(crate) fn invalid(message: String) -> Self {
        Self { status: Status::InvalidArgument, message, hint: String::new(), element: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(element) = self.element {
            write!(out, "element {element}: ")?;
        }
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// The text that a function stored for the caller to free.
pub(crate) fn owned_text(pointer: *mut c_char) -> String {
    let result = text(pointer);
    unsafe { sys::tc_free(pointer.cast()) };
    result
}

/// The error of the thread's last call, if it failed.
pub(crate) fn check(status: sys::tc_status) -> Result<(), Error> {
    let status = match status {
        sys::TC_OK => return Ok(()),
        sys::TC_INVALID_ARGUMENT => Status::InvalidArgument,
        sys::TC_UNSUPPORTED => Status::Unsupported,
        sys::TC_OUT_OF_RANGE => Status::OutOfRange,
        sys::TC_PARSE => Status::Parse,
        sys::TC_IO => Status::Io,
        sys::TC_CANCELLED => Status::Cancelled,
        _ => Status::Internal,
    };
    unsafe {
        Err(Error {
            status,
            message: text(sys::tc_last_error_message()),
            hint: text(sys::tc_last_error_hint()),
            element: u64::try_from(sys::tc_last_error_element()).ok(),
        })
    }
}
