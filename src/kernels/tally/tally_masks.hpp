// What a tally needs of vectors beyond simd.hpp: masks that are counted, and sixteen numbers as one value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/simd/simd.hpp"
#include "kernels/tally/tally.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// --- Masks. `..._of(where, ...)`: of the lanes in `where`, those for which it is true.

#if TENSORCAST_TARGET_LEVEL >= 2
SIMD_INLINE Mask32 less(F32 a, F32 b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ); }
SIMD_INLINE Mask64 less(F64 a, F64 b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ); }
SIMD_INLINE Mask32 not_less_of(Mask32 where, F32 a, F32 b) {
  return _mm512_mask_cmp_ps_mask(where, (__m512)a, (__m512)b, _CMP_NLT_UQ);
}
SIMD_INLINE Mask64 not_less_of(Mask64 where, F64 a, F64 b) {
  return _mm512_mask_cmp_pd_mask(where, (__m512d)a, (__m512d)b, _CMP_NLT_UQ);
}
SIMD_INLINE Mask32 not_less_equal_of(Mask32 where, F32 a, F32 b) {
  return _mm512_mask_cmp_ps_mask(where, (__m512)a, (__m512)b, _CMP_NLE_UQ);
}
SIMD_INLINE Mask64 not_less_equal_of(Mask64 where, F64 a, F64 b) {
  return _mm512_mask_cmp_pd_mask(where, (__m512d)a, (__m512d)b, _CMP_NLE_UQ);
}
SIMD_INLINE Mask32 not_less(F32 a, F32 b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NLT_UQ); }
SIMD_INLINE Mask64 not_less(F64 a, F64 b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_NLT_UQ); }
SIMD_INLINE Mask32 not_equal_of(Mask32 where, F32 a, F32 b) {
  return _mm512_mask_cmp_ps_mask(where, (__m512)a, (__m512)b, _CMP_NEQ_UQ);
}
SIMD_INLINE Mask64 not_equal_of(Mask64 where, F64 a, F64 b) {
  return _mm512_mask_cmp_pd_mask(where, (__m512d)a, (__m512d)b, _CMP_NEQ_UQ);
}
SIMD_INLINE Mask32 nonzero(I32 x) { return _mm512_test_epi32_mask((__m512i)x, (__m512i)x); }
SIMD_INLINE Mask64 nonzero(I64 x) { return _mm512_test_epi64_mask((__m512i)x, (__m512i)x); }
SIMD_INLINE Mask32 nonzero_of(Mask32 where, I32 x, I32 bits) {
  return _mm512_mask_test_epi32_mask(where, (__m512i)x, (__m512i)bits);
}
SIMD_INLINE Mask64 nonzero_of(Mask64 where, I64 x, I64 bits) {
  return _mm512_mask_test_epi64_mask(where, (__m512i)x, (__m512i)bits);
}
SIMD_INLINE Mask32 greater_equal_of(Mask32 where, F32 a, F32 b) {
  return _mm512_mask_cmp_ps_mask(where, (__m512)a, (__m512)b, _CMP_GE_OQ);
}
SIMD_INLINE Mask64 greater_equal_of(Mask64 where, F64 a, F64 b) {
  return _mm512_mask_cmp_pd_mask(where, (__m512d)a, (__m512d)b, _CMP_GE_OQ);
}
// By mask instructions: g++ 12 would carry masks to general registers and back to combine them.
SIMD_INLINE Mask32 united(Mask32 a, Mask32 b) { return _kor_mask16(a, b); }
SIMD_INLINE Mask64 united(Mask64 a, Mask64 b) { return _kor_mask8(a, b); }
SIMD_INLINE Mask32 common(Mask32 a, Mask32 b) { return _kand_mask16(a, b); }
SIMD_INLINE Mask64 common(Mask64 a, Mask64 b) { return _kand_mask8(a, b); }
SIMD_INLINE Mask32 without(Mask32 a, Mask32 b) { return _kandn_mask16(b, a); }
SIMD_INLINE Mask64 without(Mask64 a, Mask64 b) { return _kandn_mask8(b, a); }
SIMD_INLINE bool some(Mask32 mask) { return _kortestz_mask16_u8(mask, mask) == 0; }
SIMD_INLINE bool some(Mask64 mask) { return _kortestz_mask8_u8(mask, mask) == 0; }
SIMD_INLINE bool all(Mask32 mask) { return _kortestc_mask16_u8(mask, mask) != 0; }
SIMD_INLINE bool all(Mask64 mask) { return _kortestc_mask8_u8(mask, mask) != 0; }
SIMD_INLINE F32 kept_where(Mask32 mask, F32 x) { return (F32)_mm512_maskz_mov_ps(mask, (__m512)x); }
SIMD_INLINE F64 kept_where(Mask64 mask, F64 x) { return (F64)_mm512_maskz_mov_pd(mask, (__m512d)x); }

template <class Mask>
class LaneCount {
 public:
  SIMD_INLINE void add(Mask32 mask) {
    lanes_ = (I32)_mm512_mask_sub_epi32((__m512i)lanes_, mask, (__m512i)lanes_, _mm512_set1_epi32(-1));
  }
  [[nodiscard]] std::uint64_t total() const {
    return static_cast<std::uint64_t>(static_cast<unsigned>(_mm512_reduce_add_epi32((__m512i)lanes_)));
  }

 private:
  I32 lanes_ = {};
};

// Plus one where a is b.
SIMD_INLINE U8 count_equal(U8 sum, U8 a, U8 b) {
  const __mmask64 is_equal = _mm512_cmpeq_epi8_mask((__m512i)a, (__m512i)b);
  return (U8)_mm512_mask_sub_epi8((__m512i)sum, is_equal, (__m512i)sum, _mm512_set1_epi8(-1));
}

// |x| or `limit`, whichever is smaller; `limit` where x is NaN.
SIMD_INLINE F32 smaller_magnitude(F32 x, F32 limit) { return (F32)_mm512_range_ps((__m512)x, (__m512)limit, 0b1010); }
SIMD_INLINE F64 smaller_magnitude(F64 x, F64 limit) { return (F64)_mm512_range_pd((__m512d)x, (__m512d)limit, 0b1010); }
SIMD_INLINE F64 greater_of(F64 a, F64 b) { return (F64)_mm512_max_pd((__m512d)a, (__m512d)b); }
// |x|, or `largest` if that is greater.
SIMD_INLINE F32 with_magnitude_of(F32 largest, F32 x) {
  return (F32)_mm512_range_ps((__m512)x, (__m512)largest, 0b1011);
}
SIMD_INLINE F64 load_widened(const float* values) { return (F64)_mm512_cvtps_pd(_mm256_loadu_ps(values)); }

#else

SIMD_INLINE Mask32 less(F32 a, F32 b) { return a < b; }
SIMD_INLINE Mask64 less(F64 a, F64 b) { return a < b; }
SIMD_INLINE Mask32 not_less_of(Mask32 where, F32 a, F32 b) { return where & ~(a < b); }
SIMD_INLINE Mask64 not_less_of(Mask64 where, F64 a, F64 b) { return where & ~(a < b); }
SIMD_INLINE Mask32 not_less_equal_of(Mask32 where, F32 a, F32 b) { return where & ~(a <= b); }
SIMD_INLINE Mask64 not_less_equal_of(Mask64 where, F64 a, F64 b) { return where & ~(a <= b); }
SIMD_INLINE Mask32 not_less(F32 a, F32 b) { return ~(a < b); }
SIMD_INLINE Mask64 not_less(F64 a, F64 b) { return ~(a < b); }
SIMD_INLINE Mask32 not_equal_of(Mask32 where, F32 a, F32 b) { return where & (a != b); }
SIMD_INLINE Mask64 not_equal_of(Mask64 where, F64 a, F64 b) { return where & (a != b); }
SIMD_INLINE Mask32 nonzero(I32 x) { return x != 0; }
SIMD_INLINE Mask64 nonzero(I64 x) { return x != 0; }
SIMD_INLINE Mask32 nonzero_of(Mask32 where, I32 x, I32 bits) { return where & ((x & bits) != 0); }
SIMD_INLINE Mask64 nonzero_of(Mask64 where, I64 x, I64 bits) { return where & ((x & bits) != 0); }
SIMD_INLINE Mask32 greater_equal_of(Mask32 where, F32 a, F32 b) { return where & (a >= b); }
SIMD_INLINE Mask64 greater_equal_of(Mask64 where, F64 a, F64 b) { return where & (a >= b); }
SIMD_INLINE Mask32 united(Mask32 a, Mask32 b) { return a | b; }
SIMD_INLINE Mask64 united(Mask64 a, Mask64 b) { return a | b; }
SIMD_INLINE Mask32 common(Mask32 a, Mask32 b) { return a & b; }
SIMD_INLINE Mask64 common(Mask64 a, Mask64 b) { return a & b; }
SIMD_INLINE Mask32 without(Mask32 a, Mask32 b) { return a & ~b; }
SIMD_INLINE Mask64 without(Mask64 a, Mask64 b) { return a & ~b; }
SIMD_INLINE bool some(Mask32 mask) { return any(mask); }
SIMD_INLINE F32 kept_where(Mask32 mask, F32 x) { return as<F32>(as<I32>(x) & mask); }
SIMD_INLINE F64 kept_where(Mask64 mask, F64 x) { return as<F64>(as<I64>(x) & mask); }

template <class Mask>
class LaneCount {
 public:
  SIMD_INLINE void add(Mask mask) { lanes_ -= mask; }
  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < sizeof(Mask) / sizeof(lanes_[0]); ++i) sum += static_cast<std::uint64_t>(lanes_[i]);
    return sum;
  }

 private:
  Mask lanes_ = {};
};

SIMD_INLINE U8 count_equal(U8 sum, U8 a, U8 b) { return sum - as<U8>(a == b); }

SIMD_INLINE F64 greater_of(F64 a, F64 b) { return a > b ? a : b; }
SIMD_INLINE F32 smaller_magnitude(F32 x, F32 limit) {
  const F32 magnitude = as<F32>(as<I32>(x) & INT32_MAX);
  return magnitude < limit ? magnitude : limit;
}
SIMD_INLINE F64 smaller_magnitude(F64 x, F64 limit) {
  const F64 magnitude = as<F64>(as<I64>(x) & INT64_MAX);
  return magnitude < limit ? magnitude : limit;
}
SIMD_INLINE F32 with_magnitude_of(F32 largest, F32 x) { return as<F32>(max(as<I32>(largest), as<I32>(x) & INT32_MAX)); }
#if TENSORCAST_TARGET_LEVEL == 1
SIMD_INLINE bool some(Mask64 mask) { return _mm256_movemask_pd((__m256d)mask) != 0; }
SIMD_INLINE bool all(Mask32 mask) { return _mm256_movemask_ps((__m256)mask) == 0xff; }
SIMD_INLINE bool all(Mask64 mask) { return _mm256_movemask_pd((__m256d)mask) == 0xf; }
SIMD_INLINE F64 load_widened(const float* values) { return (F64)_mm256_cvtps_pd(_mm_loadu_ps(values)); }
#else
SIMD_INLINE bool some(Mask64 mask) { return (mask[0] | mask[1]) != 0; }
SIMD_INLINE bool all(Mask64 mask) { return (mask[0] & mask[1]) != 0; }
SIMD_INLINE bool all(Mask32 mask) {
  const I64 halves = as<I64>(mask);
  return (halves[0] & halves[1]) == -1;
}
SIMD_INLINE F64 load_widened(const float* values) {
  return __builtin_convertvector(load<F32h>(reinterpret_cast<const std::byte*>(values)), F64);
}
#endif

#endif

// Of numbers that are not NaN and have no sign.
SIMD_INLINE F32 greater_magnitude(F32 a, F32 b) { return as<F32>(max(as<I32>(a), as<I32>(b))); }
SIMD_INLINE F64 greater_magnitude(F64 a, F64 b) { return greater_of(a, b); }
SIMD_INLINE F32 magnitude_of(F32 x) { return as<F32>(as<I32>(x) & INT32_MAX); }
SIMD_INLINE F64 magnitude_of(F64 x) { return as<F64>(as<I64>(x) & INT64_MAX); }

// --- Types that go with a vector of floats

template <class V>
struct Lanes;
template <>
struct Lanes<F32> {
  using Mask = Mask32;
  using Bits = I32;
  using Number = float;
  static constexpr std::int32_t magnitude_bits = INT32_MAX;
  static constexpr int count = kLanes;
};
template <>
struct Lanes<F64> {
  using Mask = Mask64;
  using Bits = I64;
  using Number = double;
  static constexpr std::int64_t magnitude_bits = INT64_MAX;
  static constexpr int count = kLanes / 2;
};

// Of numbers that are not NaN and have no sign: half of the lanes against the other half, and so on.
template <class V>
SIMD_INLINE typename Lanes<V>::Number greatest_lane(V x) {
#if TENSORCAST_TARGET_LEVEL >= 2
  if constexpr (std::is_same_v<V, F32>) return _mm512_reduce_max_ps((__m512)x);
  if constexpr (std::is_same_v<V, F64>) return _mm512_reduce_max_pd((__m512d)x);
#endif
  typename Lanes<V>::Number lanes[Lanes<V>::count];
  store(reinterpret_cast<std::byte*>(lanes), x);
  for (int half = Lanes<V>::count / 2; half != 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] = lanes[i] < lanes[i + half] ? lanes[i + half] : lanes[i];
  }
  return lanes[0];
}

// The sum and the square of `x`, which is exact where it comes from a float32. Else it is rounded first, as not all
// targets can add it unrounded.
template <class From>
SIMD_INLINE F64 add_square(F64 sum, F64 x) {
  constexpr bool is_fused = TENSORCAST_TARGET_LEVEL != 0;  // where there is an instruction for it
  if constexpr (sizeof(typename Lanes<From>::Number) == 4 && is_fused) return multiply_add(x, x, sum);
  return sum + x * x;
}

// Of a number with so few digits that float32 has the square: then it is all the same whether it is rounded.
SIMD_INLINE F32 plus_exact_square(F32 sum, F32 x) {
  if constexpr (TENSORCAST_TARGET_LEVEL != 0) return multiply_add(x, x, sum);
  return sum + x * x;
}

// One number of each chain.
template <class V>
struct Group {
  static constexpr int lanes = Lanes<V>::count;
  static constexpr int registers = static_cast<int>(tally_chains) / lanes;

  V at[registers];
};
using Floats = Group<F32>;
using Doubles = Group<F64>;

template <class V>
SIMD_INLINE Group<V> load_group(const typename Lanes<V>::Number* values) {
  Group<V> out;
#pragma GCC unroll 8
  for (int r = 0; r < Group<V>::registers; ++r) {
    out.at[r] = load<V>(reinterpret_cast<const std::byte*>(values + r * Group<V>::lanes));
  }
  return out;
}
SIMD_INLINE void store_group(double* values, const Doubles& x) {
#pragma GCC unroll 8
  for (int r = 0; r < Doubles::registers; ++r) {
    store(reinterpret_cast<std::byte*>(values + r * Doubles::lanes), x.at[r]);
  }
}
SIMD_INLINE Doubles load_widened_group(const float* values) {
  Doubles out;
#pragma GCC unroll 8
  for (int r = 0; r < Doubles::registers; ++r) out.at[r] = load_widened(values + r * Doubles::lanes);
  return out;
}
SIMD_INLINE Doubles widen(const Floats& x) {
  Doubles out;
#pragma GCC unroll 4
  for (int r = 0; r < Floats::registers; ++r) {
    const F64x2 wide = widen(x.at[r]);
    out.at[2 * r] = wide.lo;
    out.at[2 * r + 1] = wide.hi;
  }
  return out;
}
SIMD_INLINE Doubles widen(const Doubles& x) { return x; }

// --- Sums of two

struct SplitF64 {
  F64 high, low;
};

// The nearest float64, and what it lacks.
#if TENSORCAST_TARGET_LEVEL >= 2
// As an integer again, modulo 2^64, it is that much less than `x`.
template <bool is_signed>
SIMD_INLINE SplitF64 split_integer(I64 x) {
  if constexpr (is_signed) {
    const __m512d high = _mm512_cvtepi64_pd((__m512i)x);
    const U64 low = as<U64>(x) - (U64)_mm512_cvttpd_epi64(high);  // 2^63 becomes -2^63
    return {(F64)high, (F64)_mm512_cvtepi64_pd((__m512i)low)};
  } else {
    const __m512d high = _mm512_cvtepu64_pd((__m512i)x);
    const __mmask8 fits = _mm512_cmp_pd_mask(high, _mm512_set1_pd(0x1p64), _CMP_LT_OQ);
    const U64 low = as<U64>(x) - (U64)_mm512_maskz_cvttpd_epu64(fits, high);
    return {(F64)high, (F64)_mm512_cvtepi64_pd((__m512i)low)};
  }
}
#else
// Each half of an integer is put below a power of two as its mantissa, which then is subtracted: both are exact, and so
// is what their rounded sum lacks.
template <bool is_signed>
SIMD_INLINE SplitF64 split_integer(I64 x) {
  constexpr std::int64_t two_52 = 0x4330000000000000;
  constexpr std::int64_t two_84 = 0x4530000000000000;
  const F64 lower = as<F64>((x & 0xffffffff) | two_52) - 0x1p52;
  I64 upper_bits = as<I64>(as<U64>(x) >> 32);
  if constexpr (is_signed) upper_bits ^= 0x80000000;  // offset by 2^63, so that the half is not negative
  const F64 upper = as<F64>(upper_bits | two_84) - (is_signed ? 0x1p84 + 0x1p63 : 0x1p84);
  const F64 sum = upper + lower;
  return {sum, lower - (sum - upper)};
}
#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
