// SPDX-License-Identifier: Apache-2.0
//! Weights in blocks that share scales.

use crate::dtype::{DType, Element};
use crate::error::{Error, check};
use crate::{Memory, bytes_of, storage_bytes};
use std::ffi::{CStr, CString};
use std::ptr;
use tensorcast_sys as sys;

/// A weight that [`quantize`] made.
pub struct Quantized {
    handle: *mut sys::tc_quantized,
    columns: usize,
    rows: usize,
}

// The library does not change it after it was made.
unsafe impl Send for Quantized {}
unsafe impl Sync for Quantized {}

/// Quantizes a matrix of `columns` columns by the scheme's recipe, byte for byte as its tool does; `recipe`: another one.
///
/// ```
/// let weight: Vec<f32> = (0..64).map(|i| i as f32 / 64.0).collect();
/// let made = tensorcast::quantize(&weight, 32, "mxfp8", None)?;
/// assert_eq!((made.codes().len(), made.scales().len()), (64, 2));
/// assert_eq!(made.dequantize()?.len(), 64);
/// # Ok::<(), tensorcast::Error>(())
/// ```
pub fn quantize<T: Element>(
    weight: &[T],
    columns: usize,
    scheme: &str,
    recipe: Option<&str>,
) -> Result<Quantized, Error> {
    if columns == 0 || weight.len() % columns != 0 {
        return Err(Error::invalid(format!("{} elements are no rows of {columns}", weight.len())));
    }
    let text = |name: &str| CString::new(name).map_err(|_| Error::invalid("a name has no zero byte".into()));
    let (scheme, recipe) = (text(scheme)?, recipe.map(text).transpose()?);
    let rows = weight.len() / columns;
    let shape = [rows as i64, columns as i64];
    let data = bytes_of(weight).as_ptr();
    let array = sys::tc_array { data: data.cast(), shape: shape.as_ptr(), rank: 2, dtype: T::DTYPE.number() };
    let mut options: sys::tc_quantize_options = unsafe { std::mem::zeroed() }; // zero is the default of each field
    options.struct_size = size_of::<sys::tc_quantize_options>();
    options.recipe = recipe.as_ref().map_or(ptr::null(), |name| name.as_ptr());
    let mut handle = ptr::null_mut();
    check(unsafe { sys::tc_quantize(&array, scheme.as_ptr(), &options, &mut handle) })?;
    Ok(Quantized { handle, columns, rows })
}

impl Quantized {
    fn parts(&self) -> sys::tc_quantized_parts {
        let mut parts: sys::tc_quantized_parts = unsafe { std::mem::zeroed() };
        parts.struct_size = size_of::<sys::tc_quantized_parts>();
        let done = check(unsafe { sys::tc_quantized_get(self.handle, &mut parts) });
        debug_assert!(done.is_ok());
        parts
    }

    fn bytes(&self, array: sys::tc_array) -> &[u8] {
        if array.data.is_null() {
            return &[];
        }
        let shape = unsafe { std::slice::from_raw_parts(array.shape, array.rank) };
        let count = shape.iter().map(|size| *size as usize).product();
        let bytes = storage_bytes(DType::of_number(array.dtype), count).unwrap_or(0);
        // The library's memory, which is there as long as the weight.
        unsafe { std::slice::from_raw_parts(array.data.cast(), bytes) }
    }

    /// Codes, packed with their low bits first.
    pub fn codes(&self) -> &[u8] {
        self.bytes(self.parts().codes)
    }

    /// Scales in rows of blocks; empty if they are inside of the codes.
    pub fn scales(&self) -> &[u8] {
        self.bytes(self.parts().scales)
    }

    /// The scale of the whole weight, as the recipe's tool stores it.
    pub fn global_scale(&self) -> Option<f32> {
        let parts = self.parts();
        (parts.has_global_scale != 0).then_some(parts.global_scale)
    }

    /// The recipe that made it.
    pub fn recipe(&self) -> &str {
        let recipe = self.parts().recipe;
        unsafe { CStr::from_ptr(recipe) }.to_str().unwrap_or("")
    }

    /// The numbers that codes and scales mean.
    pub fn dequantize(&self) -> Result<Vec<f32>, Error> {
        let mut tensor: sys::tc_block_tensor = unsafe { std::mem::zeroed() };
        tensor.struct_size = size_of::<sys::tc_block_tensor>();
        check(unsafe { sys::tc_quantized_block_tensor(self.handle, &mut tensor) })?;
        let mut numbers = vec![0.0f32; self.rows * self.columns];
        let out: Memory = numbers.as_mut_ptr().cast();
        check(unsafe { sys::tc_dequantize(&tensor, 0, self.rows as i64, out, sys::TC_FLOAT32, ptr::null()) })?;
        Ok(numbers)
    }
}

impl Drop for Quantized {
    fn drop(&mut self) {
        unsafe { sys::tc_quantized_free(self.handle) };
    }
}
