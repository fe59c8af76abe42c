// SPDX-License-Identifier: Apache-2.0
//! Options of a cast.

use tensorcast_sys as sys;

/// What finite numbers out of the target's range become.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OutOfRange {
    #[default]
    Auto,
    Wrap,
    Saturate,
    Error,
}

/// How numbers between two of the target's are rounded.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Rounding {
    #[default]
    Auto,
    NearestEven,
    NearestAway,
    TowardZero,
    TowardPositive,
    TowardNegative,
    ToOdd,
    Stochastic,
}

/// Whether a number whose value would change is an error.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Inexact {
    #[default]
    Auto,
    Error,
}

/// The options of a cast; `docs/semantics.md` of the library defines each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Of ONNX's Cast; 0: the newest.
    pub opset: i32,
    /// Whether float8 and narrower saturate.
    pub saturate: bool,
    pub out_of_range: OutOfRange,
    pub rounding: Rounding,
    /// Of stochastic rounding.
    pub seed: u64,
    pub inexact: Inexact,
    /// Multiplies each number within the one rounding.
    pub scale: f64,
    /// 0: all cores.
    pub threads: i32,
    /// The place in its tensor of the first element that is cast, for stochastic rounding of a tensor in pieces. Calls
    /// that know the place refuse another than 0.
    pub first_element: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            opset: 0,
            saturate: true,
            out_of_range: OutOfRange::Auto,
            rounding: Rounding::Auto,
            seed: 0,
            inexact: Inexact::Auto,
            scale: 1.0,
            threads: 0,
            first_element: 0,
        }
    }
}

impl Options {
    pub(crate) fn to_c(self) -> sys::tc_cast_options {
        let mut options = std::mem::MaybeUninit::<sys::tc_cast_options>::zeroed();
        // All fields are numbers and nullable pointers, and the library sets them.
        let mut options = unsafe {
            sys::tc_cast_options_init_sized(options.as_mut_ptr(), size_of::<sys::tc_cast_options>());
            options.assume_init()
        };
        options.opset = self.opset;
        options.saturate = self.saturate.into();
        options.out_of_range = self.out_of_range as i32;
        options.rounding = self.rounding as i32;
        options.seed = self.seed;
        options.inexact = self.inexact as i32;
        options.scale = self.scale;
        options.threads = self.threads;
        options.first_element = self.first_element;
        options
    }
}
