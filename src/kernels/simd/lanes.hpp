// SPDX-License-Identifier: Apache-2.0
// Registers of AVX2 and AVX-512 as lanes of 16 bytes, each from a row of its own.
#pragma once

#include "kernels/simd/simd.hpp"

#if TENSORCAST_TARGET_LEVEL >= 1
namespace tensorcast::kernels::TENSORCAST_TARGET {

inline constexpr int lane_bytes = 16, lane_count = kRegisterBytes / lane_bytes;

SIMD_INLINE __m128i load_lane(const std::byte* src) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(src)); }
SIMD_INLINE __m256i load_two_lanes(const std::byte* src, std::ptrdiff_t step) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_lane(src)), load_lane(src + step), 1);
}
SIMD_INLINE void store_two_lanes(std::byte* dst, __m256i lanes, std::ptrdiff_t step) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), _mm256_castsi256_si128(lanes));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + step), _mm256_extracti128_si256(lanes, 1));
}

// Lanes that are `step` bytes apart. The bytes of a lane at these places of it, 0 for places from 0x80 on. The low or
// high units of 8 bytes of each lane of two registers.
#if TENSORCAST_REGISTER_BYTES == 64
SIMD_INLINE U8 load_lanes(const std::byte* src, std::ptrdiff_t step) {
  return (U8)_mm512_inserti64x4(_mm512_castsi256_si512(load_two_lanes(src, step)), load_two_lanes(src + 2 * step, step),
                                1);
}
SIMD_INLINE U8 repeat_lane(const std::byte* src) { return (U8)_mm512_broadcast_i32x4(load_lane(src)); }
SIMD_INLINE void store_lanes(std::byte* dst, U8 lanes, std::ptrdiff_t step) {
  const __m256i low = _mm512_castsi512_si256((__m512i)lanes), high = _mm512_extracti64x4_epi64((__m512i)lanes, 1);
  store_two_lanes(dst, low, step);
  store_two_lanes(dst + 2 * step, high, step);
}
SIMD_INLINE U8 shuffle_lanes(U8 lanes, U8 places) { return (U8)_mm512_shuffle_epi8((__m512i)lanes, (__m512i)places); }
SIMD_INLINE U8 low_eights(U8 a, U8 b) { return (U8)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b); }
SIMD_INLINE U8 high_eights(U8 a, U8 b) { return (U8)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b); }
#else
SIMD_INLINE U8 load_lanes(const std::byte* src, std::ptrdiff_t step) { return (U8)load_two_lanes(src, step); }
SIMD_INLINE U8 repeat_lane(const std::byte* src) { return (U8)_mm256_broadcastsi128_si256(load_lane(src)); }
SIMD_INLINE void store_lanes(std::byte* dst, U8 lanes, std::ptrdiff_t step) {
  store_two_lanes(dst, (__m256i)lanes, step);
}
SIMD_INLINE U8 shuffle_lanes(U8 lanes, U8 places) { return (U8)_mm256_shuffle_epi8((__m256i)lanes, (__m256i)places); }
SIMD_INLINE U8 low_eights(U8 a, U8 b) { return (U8)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b); }
SIMD_INLINE U8 high_eights(U8 a, U8 b) { return (U8)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b); }
#endif

// The low or high units of each lane of two registers, in turns.
template <int unit_bytes>
SIMD_INLINE U8 low_units(U8 a, U8 b) {
  if constexpr (unit_bytes == 8) {
    return low_eights(a, b);
  } else {
    return interleave_low<unit_bytes>(a, b);
  }
}
template <int unit_bytes>
SIMD_INLINE U8 high_units(U8 a, U8 b) {
  if constexpr (unit_bytes == 8) {
    return high_eights(a, b);
  } else {
    return interleave_high<unit_bytes>(a, b);
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
#endif
