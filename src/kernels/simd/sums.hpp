// SPDX-License-Identifier: Apache-2.0
// Sums of a float32 from 0 on and a power of two above it, rounded by words: the power is exact in float32, and so are
// differences. Directed: up where the mask is set, else toward zero.
#pragma once

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_HAS_OWN_ROUNDING

SIMD_INLINE F32 add_to_zero(F32 a, F32 b) {
  return (F32)_mm512_add_round_ps((__m512)a, (__m512)b, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
SIMD_INLINE F32 add_directed(Mask32 up, F32 a, F32 b) {
  return (F32)_mm512_mask_add_round_ps((__m512)add_to_zero(a, b), up, (__m512)a, (__m512)b,
                                       _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
SIMD_INLINE F32 add_odd(F32 a, F32 b) {
  const F32 above = (F32)_mm512_add_round_ps((__m512)a, (__m512)b, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
  return as<F32>(as<I32>(add_to_zero(a, b)) | (as<I32>(above) & 1));
}

// Of numbers from 0 to below 2^32.
SIMD_INLINE U32 truncate_to_uint32(F32 x) { return (U32)_mm512_cvtt_roundps_epu32((__m512)x, _MM_FROUND_NO_EXC); }

#else

// The nearest sum, less one unit of the last place if it is too large, or one more if it is too small. Masks are -1.
SIMD_INLINE F32 add_to_zero(F32 a, F32 b) {
  const F32 sum = a + b;
  return as<F32>(as<I32>(sum) + (sum - b > a));
}
SIMD_INLINE F32 add_directed(Mask32 up, F32 a, F32 b) {
  const F32 sum = a + b, rounded = sum - b;
  return as<F32>(as<I32>(sum) + ((rounded > a) & ~up) - ((rounded < a) & up));
}
SIMD_INLINE F32 add_odd(F32 a, F32 b) {
  const F32 sum = a + b, rounded = sum - b;
  return as<F32>((as<I32>(sum) + (rounded > a)) | ((rounded != a) & 1));
}

// Of numbers from 0 to below 2^32.
SIMD_INLINE U32 truncate_to_uint32(F32 x) {
  const I32 is_above = x >= 0x1p31F;
  return as<U32>(truncate(x - as<F32>(is_above & 0x4f000000)) ^ (is_above & INT32_MIN));
}

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
