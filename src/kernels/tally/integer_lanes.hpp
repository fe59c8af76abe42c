// What a tally of integers needs of vectors beyond simd.hpp: lanes of 16 or 32 bits without sign, their exact products,
// and sums of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "codec/real.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

//   products_of_pairs(a, b)     a[0] * b[0] + a[1] * b[1] and so on in 32-bit lanes; -2^15 squared twice is 2^31
//   high_product(a, b)          the upper half of each product
//   even_products(a, b)         of each second lane of 32 bits, the lower ones
//   any_greater(a, b, c, d)     whether a * b > c * d in any lane, unrounded; the lanes of b are the same, and of d
//   either_greater(a, b, c, d)  whether a > b or c > d in any lane
//   has_bits(x)                 whether any lane is not 0
//   magnitude(x)                of numbers with a sign
//
// Masks tell of each lane whether it is so:
//
//   zero_lanes(x), nonzero_lanes(x), positive_lanes(x), lanes_not_above(a, b)
//   kept_where(mask, x)         0 elsewhere
//   MaskCount                   counts the lanes of which it is so

SIMD_INLINE U32 splat(std::uint32_t x) { return x - U32{}; }

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

#if TENSORCAST_TARGET_LEVEL >= 2

SIMD_INLINE U32 products_of_pairs(I16 a, I16 b) { return (U32)_mm512_madd_epi16((__m512i)a, (__m512i)b); }
SIMD_INLINE U16 magnitude(U16 x) { return (U16)_mm512_abs_epi16((__m512i)x); }
SIMD_INLINE U32 magnitude(U32 x) { return (U32)_mm512_abs_epi32((__m512i)x); }

SIMD_INLINE __mmask32 zero_lanes(U16 x) { return _mm512_testn_epi16_mask((__m512i)x, (__m512i)x); }
SIMD_INLINE __mmask16 zero_lanes(U32 x) { return _mm512_testn_epi32_mask((__m512i)x, (__m512i)x); }
SIMD_INLINE __mmask32 nonzero_lanes(U16 x) { return _mm512_test_epi16_mask((__m512i)x, (__m512i)x); }
SIMD_INLINE __mmask16 nonzero_lanes(U32 x) { return _mm512_test_epi32_mask((__m512i)x, (__m512i)x); }
SIMD_INLINE __mmask32 positive_lanes(I16 x) { return _mm512_cmpgt_epi16_mask((__m512i)x, __m512i{}); }
SIMD_INLINE __mmask16 positive_lanes(I32 x) { return _mm512_cmpgt_epi32_mask((__m512i)x, __m512i{}); }
SIMD_INLINE __mmask32 lanes_not_above(U16 a, U16 b) { return _mm512_cmple_epu16_mask((__m512i)a, (__m512i)b); }
SIMD_INLINE __mmask16 lanes_not_above(U32 a, U32 b) { return _mm512_cmple_epu32_mask((__m512i)a, (__m512i)b); }
SIMD_INLINE bool has_bits(U16 x) { return zero_lanes(x) != 0xffffffff; }
SIMD_INLINE bool has_bits(U32 x) { return zero_lanes(x) != 0xffff; }
SIMD_INLINE U16 kept_where(__mmask32 mask, U16 x) { return (U16)_mm512_maskz_mov_epi16(mask, (__m512i)x); }
SIMD_INLINE U32 kept_where(__mmask16 mask, U32 x) { return (U32)_mm512_maskz_mov_epi32(mask, (__m512i)x); }

// By instructions that the vectors do not wait for.
template <class V>
class MaskCount {
 public:
  template <class Mask>
  SIMD_INLINE void add(Mask mask) {
    count_ += static_cast<unsigned>(__builtin_popcount(mask));
  }
  [[nodiscard]] SIMD_INLINE std::uint64_t total() const { return count_; }

 private:
  std::uint64_t count_ = 0;
};

SIMD_INLINE bool any_greater(U16 a, U16 b, U16 c, U16 d) {
  const __m512i high = _mm512_mulhi_epu16((__m512i)a, (__m512i)b);
  const __m512i other_high = _mm512_mulhi_epu16((__m512i)c, (__m512i)d);
  const __mmask32 is_equal = _mm512_cmpeq_epi16_mask(high, other_high);
  const __mmask32 low_is_greater = _mm512_mask_cmpgt_epu16_mask(is_equal, (__m512i)(a * b), (__m512i)(c * d));
  return _kortestz_mask32_u8(_mm512_cmpgt_epu16_mask(high, other_high), low_is_greater) == 0;
}
SIMD_INLINE bool either_greater(U64 a, U64 b, U64 c, U64 d) {
  const __mmask8 lower = _mm512_cmpgt_epu64_mask((__m512i)a, (__m512i)b);
  return _kortestz_mask8_u8(lower, _mm512_cmpgt_epu64_mask((__m512i)c, (__m512i)d)) == 0;
}

#else

#if TENSORCAST_TARGET_LEVEL == 1

SIMD_INLINE U32 products_of_pairs(I16 a, I16 b) { return (U32)_mm256_madd_epi16((__m256i)a, (__m256i)b); }
SIMD_INLINE U16 high_product(U16 a, U16 b) { return (U16)_mm256_mulhi_epu16((__m256i)a, (__m256i)b); }
SIMD_INLINE U16 magnitude(U16 x) { return (U16)_mm256_abs_epi16((__m256i)x); }
SIMD_INLINE U32 magnitude(U32 x) { return (U32)_mm256_abs_epi32((__m256i)x); }
template <class V>
SIMD_INLINE bool has_bits(V x) {
  return _mm256_testz_si256((__m256i)x, (__m256i)x) == 0;
}

#else

#if defined(__SSE2__)

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

SIMD_INLINE U16 magnitude(U16 x) { return as<U16>(max(as<I16>(x), as<I16>(-x))); }
SIMD_INLINE U32 magnitude(U32 x) { return as<U32>(max(as<I32>(x), as<I32>(-x))); }
template <class V>
SIMD_INLINE bool has_bits(V x) {
  return (as<U64>(x)[0] | as<U64>(x)[1]) != 0;
}

#endif

// All bits of a lane, or none.
template <class V>
SIMD_INLINE V zero_lanes(V x) {
  return as<V>(x == V{});
}
template <class V>
SIMD_INLINE V nonzero_lanes(V x) {
  return as<V>(x != V{});
}
SIMD_INLINE U16 positive_lanes(I16 x) { return as<U16>(x > I16{}); }
SIMD_INLINE U32 positive_lanes(I32 x) { return as<U32>(x > I32{}); }
template <class V>
SIMD_INLINE V lanes_not_above(V a, V b) {
  return as<V>(min(a, b) == a);
}
template <class V>
SIMD_INLINE V kept_where(V mask, V x) {
  return x & mask;
}

// Of at most 2^15 masks.
template <class V>
class MaskCount {
 public:
  SIMD_INLINE void add(V mask) { lanes_ -= mask; }
  [[nodiscard]] SIMD_INLINE std::uint64_t total() const { return sum_of_lanes(lanes_); }

 private:
  V lanes_ = {};
};

// Lower halves count where the upper ones are the same.
SIMD_INLINE bool any_greater(U16 a, U16 b, U16 c, U16 d) {
  const U16 high = high_product(a, b), other_high = high_product(c, d);
  const U16 low_is_greater = subtract_to_zero(a * b, c * d) & as<U16>(high == other_high);
  return has_bits(subtract_to_zero(high, other_high) | low_is_greater);
}
SIMD_INLINE bool either_greater(U64 a, U64 b, U64 c, U64 d) { return has_bits((a > b) | (c > d)); }

#endif

SIMD_INLINE U64 even_products(U32 a, U32 b) { return multiply_low_halves(as<U64>(a), as<U64>(b)); }
SIMD_INLINE U32 odd_lanes(U32 x) { return as<U32>(as<U64>(x) >> 32); }

SIMD_INLINE bool any_greater(U32 a, U32 b, U32 c, U32 d) {
  return either_greater(even_products(a, b), even_products(c, d), even_products(odd_lanes(a), b),
                        even_products(odd_lanes(c), d));
}

// Adds 64-bit lanes up, exactly: modulo 2^64, and once more the upper halves by themselves, from which the lower ones'
// sum follows. Of at most 2^15 vectors, so that no half runs over.
class LaneSum {
 public:
  SIMD_INLINE void add(U64 x) {
    sum_ += x;
    upper_ += x >> 32;
  }
  [[nodiscard]] SIMD_INLINE codec::uint128 of_lanes() const {
    return (codec::uint128{sum_of_lanes(upper_)} << 32) + sum_of_lanes(sum_ - (upper_ << 32));
  }
  [[nodiscard]] SIMD_INLINE std::uint64_t of_halves() const {
    return sum_of_lanes(sum_ - (upper_ << 32)) + sum_of_lanes(upper_);
  }

 private:
  U64 sum_ = {}, upper_ = {};
};

// The sum of the squares of lanes, exactly, of at most 2^13 vectors. `is_half`: lanes are no more than half their
// range.
template <class V, bool is_half>
class SquareSum;

// Squares are of signed words. Larger ones are less 2^15: x^2 = (x - 2^15)^2 + 2^16 (x - 2^15) + 2^30.
template <bool is_half>
class SquareSum<U16, is_half> {
 public:
  SIMD_INLINE void add(U16 x) {
    const I16 word = as<I16>(is_half ? x : x ^ 0x8000);
    pairs_.add(as<U64>(products_of_pairs(word, word)));
    if constexpr (!is_half) words_ += products_of_pairs(word, splat(std::int16_t{1}));
  }
  [[nodiscard]] SIMD_INLINE codec::uint128 total(std::size_t vectors) const {
    if constexpr (is_half) return pairs_.of_halves();
    const std::uint64_t words = sum_of_lanes(as<I32>(words_));  // modulo 2^64
    return pairs_.of_halves() + (words << 16) + (vectors * (sizeof(U16) / sizeof(std::uint16_t)) << 30);
  }

 private:
  LaneSum pairs_;
  U32 words_ = {};
};

template <bool is_half>
class SquareSum<U32, is_half> {
 public:
  SIMD_INLINE void add(U32 x) {
    const U64 even = even_products(x, x), odd = even_products(odd_lanes(x), odd_lanes(x));
    if constexpr (is_half) {
      sum_.add(even + odd);
    } else {
      sum_.add(even);
      sum_.add(odd);
    }
  }
  [[nodiscard]] SIMD_INLINE codec::uint128 total(std::size_t) const { return sum_.of_lanes(); }

 private:
  LaneSum sum_;
};

// The sum of the lanes themselves, exactly, of at most 2^13 vectors.
template <class V, bool is_signed>
class NumberSum;

template <bool is_signed>
class NumberSum<U16, is_signed> {
 public:
  SIMD_INLINE void add(U16 x) {
    words_ += products_of_pairs(as<I16>(is_signed ? x : x ^ 0x8000), splat(std::int16_t{1}));
  }
  [[nodiscard]] SIMD_INLINE std::int64_t total(std::size_t vectors) const {
    const auto words = static_cast<std::int64_t>(sum_of_lanes(as<I32>(words_)));
    return is_signed ? words : words + static_cast<std::int64_t>(vectors * (sizeof(U16) / sizeof(std::uint16_t)) << 15);
  }

 private:
  U32 words_ = {};
};

template <bool is_signed>
class NumberSum<U32, is_signed> {
 public:
  SIMD_INLINE void add(U32 x) { sum_.add(as<U64>(is_signed ? x ^ 0x80000000 : x)); }
  [[nodiscard]] SIMD_INLINE std::int64_t total(std::size_t vectors) const {
    const auto sum = static_cast<std::int64_t>(sum_.of_halves());
    return is_signed ? sum - static_cast<std::int64_t>(vectors * (sizeof(U32) / sizeof(std::uint32_t)) << 31) : sum;
  }

 private:
  LaneSum sum_;
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
