// SPDX-License-Identifier: Apache-2.0
// Less than a unit of elements, in registers alone. AVX-512.
#pragma once

#include "kernels/simd/simd.hpp"

#if TENSORCAST_HAS_OWN_ROUNDING

namespace tensorcast::kernels::TENSORCAST_TARGET {

SIMD_INLINE void copy_first(std::byte* dst, const std::byte* src, std::size_t bytes) {  // of an aligned register
  _mm512_mask_storeu_epi8(dst, first_bytes(bytes), _mm512_load_si512(src));
}
// The first `count` elements of 32 or 16 bits in a unit, zeros behind them; and of 16 bits in 16-bit lanes.
SIMD_INLINE I32 load_first_32(const std::byte* src, std::size_t count) {
  return (I32)_mm512_maskz_loadu_epi32(static_cast<__mmask16>(first_bytes(count)), src);
}
SIMD_INLINE __m256i load_first_16(const std::byte* src, std::size_t count) {
  return _mm256_maskz_loadu_epi16(static_cast<__mmask16>(first_bytes(count)), src);
}
SIMD_INLINE I32 widen_words(__m256i words) { return (I32)_mm512_cvtepu16_epi32(words); }
SIMD_INLINE U16 in_lanes_16(__m256i words) { return (U16)_mm512_zextsi256_si512(words); }

}  // namespace tensorcast::kernels::TENSORCAST_TARGET

#endif
