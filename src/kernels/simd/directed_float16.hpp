// SPDX-License-Identifier: Apache-2.0
// float32 to float16, rounded in one direction, in the default floating-point environment. NaN keep sign and payload.
#pragma once

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_TARGET_LEVEL >= 1

inline constexpr bool has_directed_float16 = true;

template <Rounding word>
SIMD_INLINE U16h float16_codes_by(F32 x) {
#if TENSORCAST_TARGET_LEVEL >= 2
  return (U16h)_mm512_cvtps_ph((__m512)x, rounding_mode(word));
#else
  return (U16h)_mm256_cvtps_ph((__m256)x, rounding_mode(word));
#endif
}
SIMD_INLINE U16h float16_codes_to_zero(F32 x) { return float16_codes_by<Rounding::toward_zero>(x); }
SIMD_INLINE U16h float16_codes_up(F32 x) { return float16_codes_by<Rounding::toward_positive>(x); }

#else

inline constexpr bool has_directed_float16 = false;
U16h float16_codes_to_zero(F32 x);  // templates name them and never call them
U16h float16_codes_up(F32 x);

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
