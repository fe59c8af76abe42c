// SPDX-License-Identifier: Apache-2.0
// Multiplies bfloat16 by powers of two, in 16-bit lanes.
#pragma once

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// Adds an exponent, in its place, to numbers and products that are normal; leaves zeros, infinities and NaN.
SIMD_INLINE U16 with_power(U16 number, U16 exponent) {
  // Without the sign and a binade on, modulo 2^16, those others are the least.
  const U16 least = splat(std::uint16_t{0x100}), moved = (number << 1) + least;
#if TENSORCAST_REGISTER_BYTES == 64
  const __mmask32 is_normal = _mm512_cmpgt_epu16_mask((__m512i)moved, (__m512i)least);
  return (U16)_mm512_mask_add_epi16((__m512i)number, is_normal, (__m512i)number, (__m512i)exponent);
#else
  return number + (exponent & ~as<U16>(subtract_to_zero(moved, least) == 0));
#endif
}

// The same if numbers are normal or zero.
template <class Halves>
SIMD_INLINE Halves with_power_of_finite(Halves number, Halves exponent) {
#if TENSORCAST_REGISTER_BYTES == 64
  if constexpr (sizeof(Halves) == kRegisterBytes) {
    const __mmask32 is_normal = _mm512_test_epi16_mask((__m512i)number, _mm512_set1_epi16(INT16_MAX));
    return (Halves)_mm512_mask_add_epi16((__m512i)number, is_normal, (__m512i)number, (__m512i)exponent);
  }
#endif
  return number + (exponent & (Halves)(number + number != 0));
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
