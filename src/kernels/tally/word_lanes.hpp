// What a tally of words needs of vectors beyond simd.hpp: products of 16-bit lanes, and their sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

//   products_of_pairs(a, b)     a[0] * b[0] + a[1] * b[1] and so on in 32-bit lanes; -2^15 squared twice is 2^31
//   high_product(a, b)          the upper half of each product of unsigned lanes
//   any_greater(a, b, c, d)     whether a * b > c * d in any lane, unsigned, unrounded
#if TENSORCAST_TARGET_LEVEL >= 2

SIMD_INLINE U32 products_of_pairs(I16 a, I16 b) { return (U32)_mm512_madd_epi16((__m512i)a, (__m512i)b); }
SIMD_INLINE U16 high_product(U16 a, U16 b) { return (U16)_mm512_mulhi_epu16((__m512i)a, (__m512i)b); }
SIMD_INLINE bool any_greater(U16 a, U16 b, U16 c, U16 d) {
  const __m512i high = (__m512i)high_product(a, b), other_high = (__m512i)high_product(c, d);
  const __mmask32 is_equal = _mm512_cmpeq_epi16_mask(high, other_high);
  const __mmask32 low_is_greater = _mm512_mask_cmpgt_epu16_mask(is_equal, (__m512i)(a * b), (__m512i)(c * d));
  return _kortestz_mask32_u8(_mm512_cmpgt_epu16_mask(high, other_high), low_is_greater) == 0;
}

#else

#if TENSORCAST_TARGET_LEVEL == 0
SIMD_INLINE bool has_bits(U16 x) { return (as<U64>(x)[0] | as<U64>(x)[1]) != 0; }
#endif

#if TENSORCAST_TARGET_LEVEL == 1

SIMD_INLINE U32 products_of_pairs(I16 a, I16 b) { return (U32)_mm256_madd_epi16((__m256i)a, (__m256i)b); }
SIMD_INLINE U16 high_product(U16 a, U16 b) { return (U16)_mm256_mulhi_epu16((__m256i)a, (__m256i)b); }
SIMD_INLINE bool has_bits(U16 x) { return _mm256_testz_si256((__m256i)x, (__m256i)x) == 0; }

#elif defined(__SSE2__)

SIMD_INLINE U32 products_of_pairs(I16 a, I16 b) { return (U32)_mm_madd_epi16((__m128i)a, (__m128i)b); }
SIMD_INLINE U16 high_product(U16 a, U16 b) { return (U16)_mm_mulhi_epu16((__m128i)a, (__m128i)b); }

#else

SIMD_INLINE U32 products_of_pairs(I16 a, I16 b) {
  U32 sums = {};
  for (int i = 0; i < kLanes; ++i) {
    sums[i] = static_cast<std::uint32_t>(a[2 * i] * b[2 * i]) + static_cast<std::uint32_t>(a[2 * i + 1] * b[2 * i + 1]);
  }
  return sums;
}
SIMD_INLINE U16 high_product(U16 a, U16 b) {
  U16 high = {};
  for (int i = 0; i < 2 * kLanes; ++i) {
    high[i] = static_cast<std::uint16_t>((std::uint32_t{a[i]} * std::uint32_t{b[i]}) >> 16);
  }
  return high;
}

#endif

// Lower halves count where the upper ones are the same.
SIMD_INLINE bool any_greater(U16 a, U16 b, U16 c, U16 d) {
  const U16 high = high_product(a, b), other_high = high_product(c, d);
  const U16 low_is_greater = subtract_to_zero(a * b, c * d) & as<U16>(high == other_high);
  return has_bits(subtract_to_zero(high, other_high) | low_is_greater);
}

#endif

// Of lanes as what they hold.
template <class V>
SIMD_INLINE std::uint64_t sum_of_lanes(V x) {
  constexpr std::size_t lanes = sizeof(V) / sizeof(x[0]);
  std::remove_reference_t<decltype(x[0])> values[lanes];
  store(reinterpret_cast<std::byte*>(values), x);
  std::uint64_t sum = 0;
  for (const auto value : values) sum += static_cast<std::uint64_t>(value);
  return sum;
}

// The sum of the squares of words, signed or not, exactly.
template <bool is_signed>
class SquareSum {
 public:
  // 1. Squares are of signed words. Unsigned ones are less 2^15: x^2 = (x - 2^15)^2 + 2^16 (x - 2^15) + 2^30.
  // 2. Two squares make a sum of 32 bits. Two of these are added as one number of 64 bits, modulo 2^64, and the upper
  //    one once more by itself, from which the lower ones' sum follows.
  SIMD_INLINE void add(U16 x) {
    const I16 word = as<I16>(is_signed ? x : x ^ offset);
    const U64 squares = as<U64>(products_of_pairs(word, word));
    sum_ += squares;
    upper_ += squares >> 32;
    if constexpr (!is_signed) words_ += products_of_pairs(word, splat(std::int16_t{1}));
  }
  // Of at most 2^13 vectors that were added, so that no lane runs over.
  [[nodiscard]] SIMD_INLINE std::uint64_t total(std::size_t vectors) const {
    const std::uint64_t squares = sum_of_lanes(sum_ - (upper_ << 32) + upper_);
    if constexpr (is_signed) return squares;
    const std::uint64_t words = sum_of_lanes(as<I32>(words_));  // modulo 2^64
    return squares + (words << 16) + (std::uint64_t{vectors} * (sizeof(U16) / sizeof(std::uint16_t)) << 30);
  }

 private:
  static constexpr std::uint16_t offset = 0x8000;
  U64 sum_ = {}, upper_ = {};
  U32 words_ = {};
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
