// SPDX-License-Identifier: Apache-2.0
// Codes of six bits, one a byte in registers, and their stream in memory: four codes in three bytes, low bits first.
#pragma once

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

inline constexpr std::size_t kSixBitBytes = kRegisterBytes * 6 / 8;  // of a register of codes

// --- 64-bit lanes of which the lower six bytes count

#if TENSORCAST_TARGET_LEVEL >= 2

SIMD_INLINE U64 load_sextets(const std::byte* src) {
  const __m512i order = _mm512_set_epi16(0, 23, 22, 21, 0, 20, 19, 18, 0, 17, 16, 15, 0, 14, 13, 12, 0, 11, 10, 9, 0, 8,
                                         7, 6, 0, 5, 4, 3, 0, 2, 1, 0);
  // In two parts: from memory, one masked load takes several times as long.
  const __m128i rest = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + 32));
  const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src));
  return (U64)_mm512_permutexvar_epi16(order, _mm512_inserti32x4(_mm512_castsi256_si512(first), rest, 2));
}

#elif TENSORCAST_TARGET_LEVEL == 1

SIMD_INLINE U64 load_sextets(const std::byte* src) {
  const auto half = [src](std::size_t at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + at)); };
  const __m256i order = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, -1, -1, 6, 7, 8, 9, 10, 11, -1, -1,  //
                                         4, 5, 6, 7, 8, 9, -1, -1, 10, 11, 12, 13, 14, 15, -1, -1);
  return (U64)_mm256_shuffle_epi8(_mm256_set_m128i(half(8), half(0)), order);
}

#else

SIMD_INLINE U64 load_sextets(const std::byte* src) {
  std::uint64_t lo = 0, hi = 0;
  __builtin_memcpy(&lo, src, 6);
  __builtin_memcpy(&hi, src + 6, 6);
  return U64{lo, hi};
}
SIMD_INLINE void store_sextets(std::byte* dst, U64 x) {
  const std::uint64_t lo = x[0], hi = x[1];
  __builtin_memcpy(dst, &lo, 6);
  __builtin_memcpy(dst + 6, &hi, 6);
}

#endif

// --- Codes

// Reads kSixBitBytes.
SIMD_INLINE U8 load_six_bits(const std::byte* src) {
  const U64 eight = load_sextets(src);
#if TENSORCAST_TARGET_LEVEL >= 3
  return (U8)_mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2a241e18120c0600), (__m512i)eight) & 0x3f;
#else
  const U32 four = as<U32>((eight & 0xffffff) | ((eight << 8) & 0xffffff00000000));
  const U16 two = as<U16>((four & 0xfff) | ((four << 4) & 0xfff0000));
  return as<U8>((two & 0x3f) | ((two << 2) & 0x3f00));
#endif
}

// Writes kSixBitBytes. Codes are below 64.
#if TENSORCAST_TARGET_LEVEL >= 1

SIMD_INLINE void store_six_bits(std::byte* dst, U8 codes) {
  const __m128i in_lanes = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
#if TENSORCAST_TARGET_LEVEL >= 2
  const __m512i two = _mm512_maddubs_epi16((__m512i)codes, _mm512_set1_epi16(0x4001));
  const __m512i four = _mm512_madd_epi16(two, _mm512_set1_epi32(0x10000001));
  const __m512i order = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0);
  const __m512i packed = _mm512_permutexvar_epi32(order, _mm512_shuffle_epi8(four, _mm512_broadcast_i32x4(in_lanes)));
  // In two parts, as for loads; g++ would copy a part of a register by way of the stack.
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), _mm512_castsi512_si256(packed));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + 32), _mm512_extracti32x4_epi32(packed, 2));
#else
  const __m256i two = _mm256_maddubs_epi16((__m256i)codes, _mm256_set1_epi16(0x4001));
  const __m256i four = _mm256_madd_epi16(two, _mm256_set1_epi32(0x10000001));
  const __m256i order = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 0, 0);
  const __m256i packed =
      _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(four, _mm256_broadcastsi128_si256(in_lanes)), order);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), _mm256_castsi256_si128(packed));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(dst + 16), _mm256_extracti128_si256(packed, 1));
#endif
}

#else

SIMD_INLINE void store_six_bits(std::byte* dst, U8 codes) {
  const U16 one = as<U16>(codes);
  const U32 two = as<U32>((one & 0x3f) | ((one >> 2) & 0xfc0));
  const U64 four = as<U64>((two & 0xfff) | ((two >> 4) & 0xfff000));
  store_sextets(dst, (four & 0xffffff) | ((four >> 8) & 0xffffff000000));
}

#endif

// A table of 64 bytes.
#if TENSORCAST_TARGET_LEVEL >= 3

struct SixBitTable {
  __m512i values;

  SIMD_INLINE explicit SixBitTable(const std::uint8_t* table) : values(_mm512_loadu_si512(table)) {}
  SIMD_INLINE U8 operator()(U8 codes) const { return (U8)_mm512_permutexvar_epi8((__m512i)codes, values); }
};

#elif TENSORCAST_TARGET_LEVEL >= 1

// Sixteen bytes are one shuffle, which the upper two bits of a code choose.
struct SixBitTable {
  U8 values[4];

  SIMD_INLINE explicit SixBitTable(const std::uint8_t* table) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + i * 16));
#if TENSORCAST_TARGET_LEVEL >= 2
      values[i] = (U8)_mm512_broadcast_i32x4(row);
#else
      values[i] = (U8)_mm256_broadcastsi128_si256(row);
#endif
    }
  }
  // A shuffle looks at the lower four bits, a choice at the uppermost.
  SIMD_INLINE U8 operator()(U8 codes) const {
    const U8 is_odd = as<U8>(as<U16>(codes) << 3), is_high = as<U8>(as<U16>(codes) << 2);
    return choose(is_high, choose(is_odd, shuffle(values[0], codes), shuffle(values[1], codes)),
                  choose(is_odd, shuffle(values[2], codes), shuffle(values[3], codes)));
  }

 private:
  SIMD_INLINE static U8 choose(U8 is_second, U8 first, U8 second) {
#if TENSORCAST_TARGET_LEVEL >= 2
    return (U8)_mm512_mask_blend_epi8(_mm512_movepi8_mask((__m512i)is_second), (__m512i)first, (__m512i)second);
#else
    return (U8)_mm256_blendv_epi8((__m256i)first, (__m256i)second, (__m256i)is_second);
#endif
  }
  SIMD_INLINE static U8 shuffle(U8 row, U8 index) {
#if TENSORCAST_TARGET_LEVEL >= 2
    return (U8)_mm512_shuffle_epi8((__m512i)row, (__m512i)index);
#else
    return (U8)_mm256_shuffle_epi8((__m256i)row, (__m256i)index);
#endif
  }
};

#else

struct SixBitTable {
  const std::uint8_t* values;

  SIMD_INLINE explicit SixBitTable(const std::uint8_t* table) : values(table) {}
  SIMD_INLINE U8 operator()(U8 codes) const {
    std::byte bytes[kRegisterBytes];
    store(bytes, codes);
    for (std::byte& byte : bytes) byte = std::byte{values[std::to_integer<std::size_t>(byte)]};
    return load<U8>(bytes);
  }
};

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
