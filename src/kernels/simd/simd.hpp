// The vocabulary of vector operations that kernels are written in, for the target that the source is compiled for.
// Each target's header defines all of it; adding an instruction set is adding such a header.
//
// Not Google Highway: of the version that Debian 12 has (1.0.3), the conversions that matter here truncate, flush or
// saturate where the specification rounds or wraps, and one of its AVX-512 truncations is plainly wrong.
//
//   less not_equal mask_and mask_or mask_and_not                           masks of floats, with NaN unequal
//   any_of all_of count_where                                              what masks are used for
//   equal greater greater_equal is_nan any both either mask_if select      masks; is_nan is an integer comparison, as
//                                                                          clang 16 would do that of a widened float16
//                                                                          in float16, which it emulates
//   min max clamp                                                          clamp(NaN) is NaN
//   negated_where                                                          modulo the lane
//   multiply_add multiply_subtract                                         rounded once; of float32 on `portable`, see
//                                                                          there
//   multiply_odd                                                           rounded to odd, of normal products
//   copy_and_pad copy_front                                                less than a block
//   load store load_float16 load_int16 load_uint16                         loads of one unit, any alignment
//   widen narrow narrow_odd odd_in_24_bits round_to_integer                float to float; NaN keep sign and payload
//   float16_codes                                                          to nearest
//   load_widened                                                           float32 as float64
//   to_f32 to_f64                                                          integer to float, nearest
//   to_f32_odd                                                             rounded to odd, in 10 bits or more
//   to_f32_clamped                                                         2^31 and more are alike
//   to_f32_leading                                                         sign, exponent and first mantissa bit
//   saturated_words                                                        64-bit lanes as far as int32 goes
//   truncate                                                               INT32_MIN where out of range, and for NaN
//   truncate_wrapped_32 truncate_wrapped_64 wrap_by_shift                  modulo 2^32 or 2^64, 0 for infinity and NaN
//   subtract_to_zero count_greater any_greater                             16-bit lanes; a sum, plus one where a > b
//   shift_right_each                                                       by 1 to 8; else not above `x`; not in
//                                                                          portable
//   low_words high_words pack_words pack_high_words pack_bytes pack_signs  fewer bits a lane, in order
//   pack_saturated pack_bytes_saturated                                    int32 lanes as far as 16 or 8 bits go
//   pack_low_bytes pack_high_bytes                                         of 16-bit lanes
//   pack_nibbles pack_crumbs                                               bytes below 16 or below 4 to 4 or 2 bits
//   multiply_low_halves                                                    of 64-bit lanes, exactly
//   load_int8 load_uint8 load_bytes_as_words                               bytes to lanes of 32 bits, or of 16
//   load_upper_float16                                                     bytes that float16 has above eight zeros
//   NibbleTable256                                                         as Table256, of entries below 16
//   Table16 Table256                                                       look a register of bytes up in a table; not
//                                                                          in portable
//   interleave_low interleave_high order_for_interleaving                  bytes of outputs to whole outputs; not in
//                                                                          portable
//   stream_line wait_for_streams                                           a cache line to memory, past the caches
//   each
#pragma once

#include TENSORCAST_SIMD_HEADER
