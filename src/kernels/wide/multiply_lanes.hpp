// What the products need of lanes beyond simd.hpp: operations that round to odd or toward zero, and masks of 64-bit
// lanes.
//
//   unequal                                          NaN is not
//   multiply_odd                                     rounded to odd: toward zero, then a last bit of one if something
//                                                    was cut off; infinities and NaN are as they are in a product
//   narrow_odd_normal                                narrow_odd() of what is no subnormal float32, nor beyond float32
//   multiply_cut multiply_add_cut cut_to_f32         toward zero; on others than AVX-512 if the CPU does
//   add_cut                                          toward zero, of float64; not on others, as the following
//   cut_to_f64                                       toward zero too, with what is left
//   odd_where_nonzero any_nonzero                    a last bit of one there
//   multiply_narrow_odd                              the same as float32, which it is rounded to at once
#pragma once

#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// Whether what is cut off needs no CPU that rounds toward zero. To change that costs more than it seems: whatever comes
// next waits for it, loads from memory too.
inline constexpr bool cuts_by_instruction = TENSORCAST_TARGET_LEVEL >= 2;

#if TENSORCAST_TARGET_LEVEL >= 2

SIMD_INLINE Mask32 unequal(F32 a, F32 b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_OQ); }
SIMD_INLINE bool any(Mask64 mask) { return mask != 0; }

SIMD_INLINE F64 multiply_odd(F64 x, F64 y) {
  const __m512d cut = _mm512_mul_round_pd((__m512d)x, (__m512d)y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __m512d missing = _mm512_fmsub_pd((__m512d)x, (__m512d)y, cut);
  const __mmask8 inexact = _mm512_cmp_pd_mask(missing, _mm512_setzero_pd(), _CMP_NEQ_OQ);
  const __m512i bits = _mm512_castpd_si512(cut);
  return (F64)_mm512_mask_or_epi64(bits, inexact, bits, _mm512_set1_epi64(1));
}

SIMD_INLINE F32 multiply_cut(F32 x, F32 y) {
  return (F32)_mm512_mul_round_ps((__m512)x, (__m512)y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
SIMD_INLINE F32 multiply_add_cut(F32 x, F32 y, F32 z) {
  return (F32)_mm512_fmadd_round_ps((__m512)x, (__m512)y, (__m512)z, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
template <bool is_signed, class Unit>
SIMD_INLINE F32 cut_to_f32(Unit x) {
  return to_f32_leading<is_signed>(x);
}
SIMD_INLINE F64 multiply_cut(F64 x, F64 y) {
  return (F64)_mm512_mul_round_pd((__m512d)x, (__m512d)y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
SIMD_INLINE F64 multiply_add_cut(F64 x, F64 y, F64 z) {
  return (F64)_mm512_fmadd_round_pd((__m512d)x, (__m512d)y, (__m512d)z, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
SIMD_INLINE F64 add_cut(F64 x, F64 y) {
  return (F64)_mm512_add_round_pd((__m512d)x, (__m512d)y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
template <bool is_signed>
SIMD_INLINE F64 cut_to_f64(I64 x, I64& rest) {
  constexpr int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  const __m512i lanes = (__m512i)x;
  const __m512d cut =
      is_signed ? _mm512_cvt_roundepi64_pd(lanes, toward_zero) : _mm512_cvt_roundepu64_pd(lanes, toward_zero);
  rest = (I64)_mm512_sub_epi64(lanes, is_signed ? _mm512_cvttpd_epi64(cut) : _mm512_cvttpd_epu64(cut));
  return (F64)cut;
}

SIMD_INLINE bool any_nonzero(I64 x) { return _mm512_test_epi64_mask((__m512i)x, (__m512i)x) != 0; }
SIMD_INLINE F64 odd_where_nonzero(F64 x, I64 where) {
  const __mmask8 is_nonzero = _mm512_test_epi64_mask((__m512i)where, (__m512i)where);
  return (F64)_mm512_mask_or_epi64((__m512i)x, is_nonzero, (__m512i)x, _mm512_set1_epi64(1));
}

SIMD_INLINE __m256 narrow_odd_normal_half(__m512d x) {
  const __m256i bits = _mm256_castps_si256(_mm512_cvt_roundpd_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
  const __mmask8 inexact = _mm512_test_epi64_mask(_mm512_castpd_si512(x), _mm512_set1_epi64(0x1fffffff));
  return _mm256_castsi256_ps(_mm256_mask_or_epi32(bits, inexact, bits, _mm256_set1_epi32(1)));
}
SIMD_INLINE F32 narrow_odd_normal(F64x2 x) {
  return join(narrow_odd_normal_half((__m512d)x.lo), narrow_odd_normal_half((__m512d)x.hi));
}

// Where the product is no subnormal float32, or the target takes that as zero.
SIMD_INLINE __m256 multiply_narrow_odd_half(__m512d x, __m512d y) {
  constexpr int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  const __m512d cut = _mm512_mul_round_pd(x, y, toward_zero);
  const __mmask8 first = _mm512_cmp_pd_mask(_mm512_fmsub_pd(x, y, cut), _mm512_setzero_pd(), _CMP_NEQ_OQ);
  const __mmask8 second = _mm512_test_epi64_mask(_mm512_castpd_si512(cut), _mm512_set1_epi64(0x1fffffff));
  const __m256i bits = _mm256_castps_si256(_mm512_cvt_roundpd_ps(cut, toward_zero));
  return _mm256_castsi256_ps(
      _mm256_mask_or_epi32(bits, static_cast<__mmask8>(first | second), bits, _mm256_set1_epi32(1)));
}
SIMD_INLINE F32 multiply_narrow_odd(F64x2 x, F64 y) {
  return join(multiply_narrow_odd_half((__m512d)x.lo, (__m512d)y), multiply_narrow_odd_half((__m512d)x.hi, (__m512d)y));
}

#else

SIMD_INLINE Mask32 unequal(F32 a, F32 b) { return (a < b) | (a > b); }
SIMD_INLINE F32 multiply_cut(F32 x, F32 y) { return x * y; }
SIMD_INLINE F64 multiply_cut(F64 x, F64 y) { return x * y; }
SIMD_INLINE F32 multiply_add_cut(F32 x, F32 y, F32 z) { return multiply_add(x, y, z); }
SIMD_INLINE F64 multiply_add_cut(F64 x, F64 y, F64 z) { return multiply_add(x, y, z); }
template <bool is_signed, class Unit>
SIMD_INLINE F32 cut_to_f32(Unit x) {
  return to_f32<is_signed>(x);
}
SIMD_INLINE Mask64 greater(F64 a, F64 b) { return a > b; }
SIMD_INLINE Mask64 either(Mask64 a, Mask64 b) { return a | b; }

#if TENSORCAST_TARGET_LEVEL == 1

SIMD_INLINE bool any(Mask64 mask) { return _mm256_movemask_pd((__m256d)mask) != 0; }

#else

SIMD_INLINE bool any(Mask64 mask) { return (mask[0] | mask[1]) != 0; }

#endif

SIMD_INLINE F32 narrow_odd_normal(F64x2 x) { return narrow({odd_in_24_bits(x.lo), odd_in_24_bits(x.hi)}); }

// 1. The nearest product, and what is missing from it to the exact one: a float64, unless the product is tiny.
// 2. Missing in the other direction: the exact product is nearer to zero, and so is the next float64. Infinity, where
//    the exact product is finite, becomes the largest finite number.
// 3. Something missing: the last bit is one.
SIMD_INLINE F64 multiply_odd(F64 x, F64 y) {
  const F64 product = x * y;
  const F64 missing = multiply_subtract(x, y, product);
  const I64 bits = as<I64>(product);
  const I64 inexact = as<I64>((missing < 0.0) | (missing > 0.0));
  return as<F64>((bits + (inexact & ((bits ^ as<I64>(missing)) < 0))) | (inexact & 1));
}

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
