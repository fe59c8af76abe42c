// A function of a byte as a table of 256 bytes in registers. For AVX-512 VBMI only.
#pragma once

#include "kernels/simd/intrinsics.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// `symmetric`: bytes that differ in bit 7 have the same value, which halves the work.
template <bool symmetric = false>
struct ByteTable {
  __m512i quarters[4];

  [[gnu::always_inline]] explicit ByteTable(const void* values) {
    const char* const bytes = static_cast<const char*>(values);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) quarters[i] = _mm512_loadu_si512(bytes + i * 64);
  }

  // Of 64 bytes. A lookup in two registers ignores bit 7.
  [[gnu::always_inline]] __m512i operator()(__m512i x) const {
    const __m512i lower = _mm512_permutex2var_epi8(quarters[0], x, quarters[1]);
    if constexpr (symmetric) return lower;
    const __m512i upper = _mm512_permutex2var_epi8(quarters[2], x, quarters[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), lower, upper);
  }
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
