// SPDX-License-Identifier: Apache-2.0
// The vocabulary of vector operations that kernels are written in, for the target that the source is compiled for.
// Each target's header defines all of it; adding an instruction set is adding such a header.
//
// Not Google Highway: of the version that Debian 12 has (1.0.3), the conversions that matter here truncate, flush or
// saturate where the specification rounds or wraps, and one of its AVX-512 truncations is plainly wrong.
//
//   equal greater greater_equal is_nan mask_if select        masks. is_nan compares integers: clang 16 would compare a
//                                                            widened float16 in float16, which it emulates
//   less not_equal                                           masks of floats; NaN is unequal
//   mask_and mask_or mask_and_not
//   any any_of all_of count_where                            tests and counts of masks
//   min max clamp                                            clamp(NaN) is NaN
//   negated_where                                            modulo the lane
//   multiply_add multiply_subtract                           rounded once; float32 only if has_fused_float32
//   add_square                                               sum + x * x, for an exact square
//   multiply_odd                                             rounded to odd; right for normal products
//   copy_and_pad copy_front                                  less than a block
//   add_nearest                                              float32, rounded to nearest
//   load store load_float16 load_int16 load_uint16           loads of one unit, any alignment
//   load_int8 load_uint8 load_bytes_as_u16                   bytes to lanes of 32 bits, or of 16
//   load_upper_float16                                       bytes, each the upper half of a float16; the lower is 0
//   load_widened                                             float32 as float64
//   widen narrow                                             float to float; NaN keep sign and payload
//   round_to_integer                                         the same, to nearest even, up or down
//   narrow_odd round_to_odd_24                               rounded to odd
//   float16_codes                                            rounded to nearest
//   to_f32 to_f64                                            integer to float, rounded to nearest
//   to_f32_odd                                               rounded to odd, in 10 bits or more
//   to_f32_clamped                                           may clamp to 2^31
//   to_f32_leading                                           right in sign, exponent and first mantissa bit
//   clamped_to_int32                                         64-bit lanes clamped to int32
//   truncate                                                 INT32_MIN if out of range or NaN
//   truncate_wrapped_32 truncate_wrapped_64 wrap_by_shift    modulo 2^32 or 2^64; 0 for infinity and NaN
//   subtract_to_zero count_greater any_greater               16-bit lanes; count_greater adds one if a > b
//   shift_right_each                                         by 1 to 8; else a result of at most `x`. Not in portable
//   low_u32 high_u32                                         the halves of 64-bit lanes
//   pack_u16 pack_high_u16 pack_bytes pack_signs             fewer bits a lane, in order
//   pack_saturated pack_bytes_saturated                      int32 lanes clamped to 16 or 8 bits
//   pack_low_bytes pack_high_bytes                           of 16-bit lanes
//   pack_clamped                                             16-bit lanes below 2^15, clamped to a byte
//   pack_with_signs                                          16-bit lanes below 2^15, clamped; signs in bit 7
//   pack_u4 pack_u2                                          bytes below 16 to 4 bits, bytes below 4 to 2 bits
//   multiply_low_halves                                      of 64-bit lanes, exact
//   Table16 Table256                                         look up a register of bytes in a table. Not in portable
//   NibbleTable256                                           as Table256, for entries below 16
//   WordTable32                                              looks up 16-bit lanes. AVX-512 alone
//   interleave_low interleave_high order_for_interleaving    bytes of outputs to whole outputs. Not in portable
//   stream_line wait_for_streams                             stores a cache line past the caches
//
// TENSORCAST_HAS_OWN_ROUNDING: add_nearest, load_float16, float16_codes, round_to_integer, truncate and greater_equal
// of float32 say how they round, never trap, and do not depend on the thread's rounding mode. They flush subnormal
// numbers if the thread does.
#pragma once

#include TENSORCAST_SIMD_HEADER
