// SPDX-License-Identifier: Apache-2.0
// Steps of quantization that instruction sets do in ways of their own.
#pragma once

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// --- Integers nearest to quotients, ties to even: the least one for NaN and what is out of range.

#if TENSORCAST_TARGET_LEVEL >= 2
inline constexpr bool has_nearest_integers = true;
SIMD_INLINE I32 nearest_integer(F32 x) { return (I32)_mm512_cvtps_epi32((__m512)x); }
SIMD_INLINE bool any_least(U8 x) { return _mm512_cmpeq_epi8_mask((__m512i)x, _mm512_set1_epi8(INT8_MIN)) != 0; }
#elif TENSORCAST_TARGET_LEVEL == 1
inline constexpr bool has_nearest_integers = true;
SIMD_INLINE I32 nearest_integer(F32 x) { return (I32)_mm256_cvtps_epi32((__m256)x); }
SIMD_INLINE bool any_least(U8 x) {
  return _mm256_movemask_epi8(_mm256_cmpeq_epi8((__m256i)x, _mm256_set1_epi8(INT8_MIN))) != 0;
}
#else
inline constexpr bool has_nearest_integers = false;
I32 nearest_integer(F32 x);
bool any_least(U8 x);
#endif

// --- Codes of floating-point types, rounded by an addition to the power of two of each number.

#if TENSORCAST_TARGET_LEVEL >= 2

inline constexpr bool has_signed_powers = true;

// The sign and power of two of each number; of smaller ones, that of `least`.
SIMD_INLINE F32 power_at_least(F32 x, F32 least) {
  const __m512 power =
      _mm512_castsi512_ps(_mm512_and_si512((__m512i)x, _mm512_set1_epi32(static_cast<int>(0xff800000))));
  return (F32)_mm512_range_ps(power, (__m512)least, 0x3);  // the larger magnitude, with the sign of the first
}

// The upper half of each lane, plus the lower one times a power of two.
template <int power>
SIMD_INLINE I32 sum_of_halves(F32 x) {
  return (I32)_mm512_madd_epi16((__m512i)x, _mm512_set1_epi32(0x10000 | 1 << power));
}

// Reports whether a number has a magnitude of 2 or more, or is NaN.
SIMD_INLINE bool any_from_two(const Block<F32>& x) {
  const __m512i three = _mm512_ternarylogic_epi32((__m512i)x.a, (__m512i)x.b, (__m512i)x.c, 0xfe);
  const __m512i all = _mm512_or_si512(three, (__m512i)x.d);
  return _mm512_test_epi32_mask(all, _mm512_set1_epi32(0x40000000)) != 0;
}

// Words in groups of four, those of the units in turns; lanes are within words.
SIMD_INLINE U16x2 grouped_words(const Block<I32>& x) {
  return {(U16)_mm512_packs_epi32((__m512i)x.a, (__m512i)x.b), (U16)_mm512_packs_epi32((__m512i)x.c, (__m512i)x.d)};
}

// Their bytes in order, at most `most`, with the signs of `words`, which are moved down by `sign_shift` bits.
template <int sign_shift>
SIMD_INLINE U8 packed_with_signs(const U16x2& grouped, U8 most, const U16x2& words, U8 sign_bit) {
  const U8 codes = min((U8)_mm512_packus_epi16((__m512i)grouped.lo, (__m512i)grouped.hi), most);
  const U8 signs = (U8)_mm512_packs_epi16((__m512i)words.lo, (__m512i)words.hi);
  return order_groups((__m512i)(codes | (as<U8>(as<U16>(signs) >> sign_shift) & sign_bit)));
}

#else

inline constexpr bool has_signed_powers = false;
F32 power_at_least(F32 x, F32 least);
template <int power>
I32 sum_of_halves(F32 x);
bool any_from_two(const Block<F32>& x);
U16x2 grouped_words(const Block<I32>& x);
template <int sign_shift>
U8 packed_with_signs(const U16x2& grouped, U8 most, const U16x2& words, U8 sign_bit);

#endif

// --- Codes of six bits in 16-bit lanes

#if TENSORCAST_TARGET_LEVEL >= 2

// 64 entries of 16 bits.
struct WordTable64 {
  __m512i lower, upper;

  SIMD_INLINE explicit WordTable64(const std::uint16_t* words)
      : lower(_mm512_loadu_si512(words)), upper(_mm512_loadu_si512(words + 32)) {}
  SIMD_INLINE U16 operator()(U16 index) const { return (U16)_mm512_permutex2var_epi16(lower, (__m512i)index, upper); }
};

SIMD_INLINE U16 added_where_negative(U16 sum, U16 x, U16 added) {
  return (U16)_mm512_mask_add_epi16((__m512i)sum, _mm512_movepi16_mask((__m512i)x), (__m512i)sum, (__m512i)added);
}
// The same where `x` is above `limit`.
SIMD_INLINE U16 added_where_above(U16 sum, U16 x, U16 limit, U16 added) {
  const __mmask32 is_above = _mm512_cmpgt_epu16_mask((__m512i)x, (__m512i)limit);
  return (U16)_mm512_mask_add_epi16((__m512i)sum, is_above, (__m512i)sum, (__m512i)added);
}
// zero - size where `x` is negative, zero + size elsewhere.
SIMD_INLINE U16 signed_from(U16 zero, U16 size, U16 x) {
  const __mmask32 is_negative = _mm512_movepi16_mask((__m512i)x);
  return (U16)_mm512_mask_sub_epi16((__m512i)(zero + size), is_negative, (__m512i)zero, (__m512i)size);
}

// --- Codes of four bits from steps: what a register's two halves have of their own, in 16-bit lanes.

// The same 32 bits in all lanes of 32; others in those of the upper half.
SIMD_INLINE U16 pairs_of(std::uint32_t both) { return (U16)_mm512_set1_epi32(static_cast<int>(both)); }
SIMD_INLINE U16 pairs_with_upper(U16 pairs, std::uint32_t upper) {
  return (U16)_mm512_mask_set1_epi32((__m512i)pairs, static_cast<__mmask16>(0xff00), static_cast<int>(upper));
}
// Entries of a table of 32 words, at any address; the same, in the lanes of the upper half alone.
SIMD_INLINE U16 words_at(const void* table, U16 index) {
  return (U16)_mm512_permutexvar_epi16((__m512i)index, _mm512_loadu_si512(table));
}
SIMD_INLINE U16 words_with_upper(U16 words, const void* table, U16 index) {
  const auto upper = static_cast<__mmask32>(0xffff0000);
  return (U16)_mm512_mask_permutexvar_epi16((__m512i)words, upper, (__m512i)index, _mm512_loadu_si512(table));
}

#endif

#if TENSORCAST_TARGET_LEVEL >= 3
// 128 entries of a byte; ignores bit 7 of an index.
struct ByteTable128 {
  __m512i lower, upper;

  SIMD_INLINE explicit ByteTable128(const std::uint8_t* bytes)
      : lower(_mm512_loadu_si512(bytes)), upper(_mm512_loadu_si512(bytes + 64)) {}
  SIMD_INLINE U8 operator()(U8 index) const { return (U8)_mm512_permutex2var_epi8(lower, (__m512i)index, upper); }
};
#endif

// --- Bytes from words, in groups of eight of the first register and the second in turns; in_order() undoes that. Packs
// of simd.hpp do both, and steps between need no order.

#if TENSORCAST_TARGET_LEVEL >= 2
SIMD_INLINE U8 grouped_bytes(U16x2 x) { return (U8)_mm512_packus_epi16((__m512i)x.lo, (__m512i)x.hi); }
SIMD_INLINE U8 grouped_signs(U16x2 x) { return (U8)_mm512_packs_epi16((__m512i)x.lo, (__m512i)x.hi); }
SIMD_INLINE U8 in_order(U8 grouped) {
  return (U8)_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), (__m512i)grouped);
}
#elif TENSORCAST_TARGET_LEVEL == 1
SIMD_INLINE U8 grouped_bytes(U16x2 x) { return (U8)_mm256_packus_epi16((__m256i)x.lo, (__m256i)x.hi); }
SIMD_INLINE U8 grouped_signs(U16x2 x) { return (U8)_mm256_packs_epi16((__m256i)x.lo, (__m256i)x.hi); }
SIMD_INLINE U8 in_order(U8 grouped) { return (U8)_mm256_permute4x64_epi64((__m256i)grouped, 0xd8); }
#else
SIMD_INLINE U8 grouped_bytes(U16x2 x) { return pack_clamped(x); }
SIMD_INLINE U8 grouped_signs(U16x2 x) { return pack_high_bytes(x); }
SIMD_INLINE U8 in_order(U8 grouped) { return grouped; }
#endif

// Reports whether a byte is below `least`, or above it by more than `most`.
SIMD_INLINE bool any_outside(U8 x, U8 least, U8 most) {
#if TENSORCAST_TARGET_LEVEL >= 2
  return _mm512_cmpgt_epu8_mask((__m512i)(x - least), (__m512i)most) != 0;
#elif TENSORCAST_TARGET_LEVEL == 1
  return _mm256_movemask_epi8((__m256i)(x - least > most)) != 0;
#else
  return any(as<Mask32>((x - least) > most));
#endif
}

// Codes of float8, before they are limited, as counting from a binade below the least normal number gives them: those
// that may be subnormal, of numbers far below that, or of infinities and NaN are outside.
template <DType to>
class NormalCodes {
  static constexpr int least = 1 << row(to).format.mantissa_bits, most = 0x80;

 public:
  SIMD_INLINE bool has_others(U8 codes) const { return any_outside(codes, least_, most_); }

 private:
  U8 least_ = constant(static_cast<std::uint8_t>(least)), most_ = constant(static_cast<std::uint8_t>(most - least));
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
