// SPDX-License-Identifier: Apache-2.0
// The vocabulary of simd.hpp for AVX-512 F, BW, CD, DQ, VL; with VBMI, bytes are packed by table.
#pragma once

#include "kernels/simd/intrinsics.hpp"

#define TENSORCAST_REGISTER_BYTES 64
#include "kernels/simd/vectors.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#define TENSORCAST_HAS_OWN_ROUNDING 1
inline constexpr int own_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

// --- Masks

using Mask32 = __mmask16;
using Mask64 = __mmask8;

SIMD_INLINE Mask32 equal(I32 a, I32 b) { return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b); }
SIMD_INLINE Mask64 equal(I64 a, I64 b) { return _mm512_cmpeq_epi64_mask((__m512i)a, (__m512i)b); }
SIMD_INLINE Mask32 greater(I32 a, I32 b) { return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b); }
SIMD_INLINE Mask32 greater(U32 a, U32 b) { return _mm512_cmpgt_epu32_mask((__m512i)a, (__m512i)b); }
SIMD_INLINE Mask32 greater_equal(F32 a, F32 b) {
  return _mm512_cmp_round_ps_mask((__m512)a, (__m512)b, _CMP_GE_OQ, _MM_FROUND_NO_EXC);
}
SIMD_INLINE Mask64 greater_equal(F64 a, F64 b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GE_OQ); }
SIMD_INLINE Mask32 is_nan(F32 x) { return greater(as<I32>(x) & INT32_MAX, splat(0x7f800000)); }
SIMD_INLINE Mask64 greater(F64 a, F64 b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ); }
SIMD_INLINE bool any(Mask32 mask) { return mask != 0; }
SIMD_INLINE Mask32 less(F32 a, F32 b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ); }
SIMD_INLINE Mask64 less(F64 a, F64 b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ); }
SIMD_INLINE Mask32 not_equal(F32 a, F32 b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_UQ); }
SIMD_INLINE Mask64 not_equal(F64 a, F64 b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_NEQ_UQ); }
// Uses mask instructions: g++ 12 would move masks to general registers and back to combine them.
SIMD_INLINE Mask32 mask_or(Mask32 a, Mask32 b) { return _kor_mask16(a, b); }
SIMD_INLINE Mask64 mask_or(Mask64 a, Mask64 b) { return _kor_mask8(a, b); }
SIMD_INLINE Mask32 mask_and(Mask32 a, Mask32 b) { return _kand_mask16(a, b); }
SIMD_INLINE Mask64 mask_and(Mask64 a, Mask64 b) { return _kand_mask8(a, b); }
SIMD_INLINE Mask32 mask_and_not(Mask32 a, Mask32 b) { return _kandn_mask16(b, a); }
SIMD_INLINE Mask64 mask_and_not(Mask64 a, Mask64 b) { return _kandn_mask8(b, a); }
SIMD_INLINE bool any_of(Mask32 mask) { return _kortestz_mask16_u8(mask, mask) == 0; }
SIMD_INLINE bool any_of(Mask64 mask) { return _kortestz_mask8_u8(mask, mask) == 0; }
SIMD_INLINE bool all_of(Mask32 mask) { return _kortestc_mask16_u8(mask, mask) != 0; }
SIMD_INLINE bool all_of(Mask64 mask) { return _kortestc_mask8_u8(mask, mask) != 0; }
SIMD_INLINE I32 count_where(I32 counts, Mask32 mask) {
  return (I32)_mm512_mask_sub_epi32((__m512i)counts, mask, (__m512i)counts, _mm512_set1_epi32(-1));
}
SIMD_INLINE I64 count_where(I64 counts, Mask64 mask) {
  return (I64)_mm512_mask_sub_epi64((__m512i)counts, mask, (__m512i)counts, _mm512_set1_epi64(-1));
}
SIMD_INLINE Mask32 mask_if(bool condition) { return condition ? 0xffff : 0; }

SIMD_INLINE I32 select(Mask32 mask, I32 yes, I32 no) {
  return (I32)_mm512_mask_mov_epi32((__m512i)no, mask, (__m512i)yes);
}
SIMD_INLINE F32 select(Mask32 mask, F32 yes, F32 no) { return (F32)_mm512_mask_mov_ps((__m512)no, mask, (__m512)yes); }
SIMD_INLINE F64 select(Mask64 mask, F64 yes, F64 no) {
  return (F64)_mm512_mask_mov_pd((__m512d)no, mask, (__m512d)yes);
}
SIMD_INLINE I64 select(Mask64 mask, I64 yes, I64 no) {
  return (I64)_mm512_mask_mov_epi64((__m512i)no, mask, (__m512i)yes);
}

// --- Minimum and maximum; clamp(NaN) is NaN

SIMD_INLINE I32 min(I32 a, I32 b) { return (I32)_mm512_min_epi32((__m512i)a, (__m512i)b); }
SIMD_INLINE I32 max(I32 a, I32 b) { return (I32)_mm512_max_epi32((__m512i)a, (__m512i)b); }
SIMD_INLINE U32 min(U32 a, U32 b) { return (U32)_mm512_min_epu32((__m512i)a, (__m512i)b); }
SIMD_INLINE U32 max(U32 a, U32 b) { return (U32)_mm512_max_epu32((__m512i)a, (__m512i)b); }
SIMD_INLINE I16 min(I16 a, I16 b) { return (I16)_mm512_min_epi16((__m512i)a, (__m512i)b); }
SIMD_INLINE I16 max(I16 a, I16 b) { return (I16)_mm512_max_epi16((__m512i)a, (__m512i)b); }
SIMD_INLINE U16 min(U16 a, U16 b) { return (U16)_mm512_min_epu16((__m512i)a, (__m512i)b); }
SIMD_INLINE U16 max(U16 a, U16 b) { return (U16)_mm512_max_epu16((__m512i)a, (__m512i)b); }
SIMD_INLINE I8 min(I8 a, I8 b) { return (I8)_mm512_min_epi8((__m512i)a, (__m512i)b); }
SIMD_INLINE I8 max(I8 a, I8 b) { return (I8)_mm512_max_epi8((__m512i)a, (__m512i)b); }
SIMD_INLINE U8 min(U8 a, U8 b) { return (U8)_mm512_min_epu8((__m512i)a, (__m512i)b); }
SIMD_INLINE F64 max(F64 a, F64 b) { return (F64)_mm512_max_pd((__m512d)a, (__m512d)b); }
SIMD_INLINE F32 clamp(F32 x, F32 low, F32 high) {
  return (F32)_mm512_min_ps((__m512)high, _mm512_max_ps((__m512)low, (__m512)x));
}
SIMD_INLINE F64 clamp(F64 x, F64 low, F64 high) {
  return (F64)_mm512_min_pd((__m512d)high, _mm512_max_pd((__m512d)low, (__m512d)x));
}

inline constexpr bool has_fused_float32 = true;
// x * y + z and x * y - z, rounded once.
SIMD_INLINE F32 multiply_add(F32 x, F32 y, F32 z) { return (F32)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)z); }
SIMD_INLINE F32 multiply_subtract(F32 x, F32 y, F32 z) { return (F32)_mm512_fmsub_ps((__m512)x, (__m512)y, (__m512)z); }
SIMD_INLINE F64 multiply_add(F64 x, F64 y, F64 z) { return (F64)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)z); }
SIMD_INLINE F64 multiply_subtract(F64 x, F64 y, F64 z) {
  return (F64)_mm512_fmsub_pd((__m512d)x, (__m512d)y, (__m512d)z);
}

SIMD_INLINE F64 add_square(F64 sum, F64 x) { return multiply_add(x, x, sum); }

// x * y rounded to odd: toward zero, then sets the last bit if the product is inexact.
SIMD_INLINE F32 multiply_odd(F32 x, F32 y) {
  const __m512 cut = _mm512_mul_round_ps((__m512)x, (__m512)y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __m512 missing = _mm512_fmsub_ps((__m512)x, (__m512)y, cut);
  const __mmask16 inexact = _mm512_cmp_ps_mask(missing, _mm512_setzero_ps(), _CMP_NEQ_OQ);
  const __m512i bits = _mm512_castps_si512(cut);
  return (F32)_mm512_mask_or_epi32(bits, inexact, bits, _mm512_set1_epi32(1));
}
SIMD_INLINE F64 multiply_odd(F64 x, F64 y) {
  const __m512d cut = _mm512_mul_round_pd((__m512d)x, (__m512d)y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __m512d missing = _mm512_fmsub_pd((__m512d)x, (__m512d)y, cut);
  const __mmask8 inexact = _mm512_cmp_pd_mask(missing, _mm512_setzero_pd(), _CMP_NEQ_OQ);
  const __m512i bits = _mm512_castpd_si512(cut);
  return (F64)_mm512_mask_or_epi64(bits, inexact, bits, _mm512_set1_epi64(1));
}

// --- 16-bit lanes

inline constexpr bool has_u16_shifts = true;
SIMD_INLINE U16 subtract_to_zero(U16 a, U16 b) { return (U16)_mm512_subs_epu16((__m512i)a, (__m512i)b); }
SIMD_INLINE U16 count_greater(U16 sum, I16 a, I16 b) {
  const __mmask32 is_greater = _mm512_cmpgt_epi16_mask((__m512i)a, (__m512i)b);
  return (U16)_mm512_mask_sub_epi16((__m512i)sum, is_greater, (__m512i)sum, _mm512_set1_epi16(-1));
}
SIMD_INLINE bool any_greater(I16 a, I16 b) { return _mm512_cmpgt_epi16_mask((__m512i)a, (__m512i)b) != 0; }
SIMD_INLINE U16 shift_right_each(U16 x, U16 bits) { return (U16)_mm512_srlv_epi16((__m512i)x, (__m512i)bits); }

// --- Halves

SIMD_INLINE __m256 lower(F32 x) { return _mm512_castps512_ps256((__m512)x); }
SIMD_INLINE __m256 upper(F32 x) { return _mm512_extractf32x8_ps((__m512)x, 1); }
SIMD_INLINE __m256i lower(I32 x) { return _mm512_castsi512_si256((__m512i)x); }
SIMD_INLINE __m256i upper(I32 x) { return _mm512_extracti32x8_epi32((__m512i)x, 1); }
SIMD_INLINE F32 join(__m256 lo, __m256 hi) { return (F32)_mm512_insertf32x8(_mm512_castps256_ps512(lo), hi, 1); }

SIMD_INLINE I32 low_u32(I64x2 x) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return (I32)_mm512_permutex2var_epi32((__m512i)x.lo, even, (__m512i)x.hi);
}
SIMD_INLINE I32 high_u32(I64x2 x) {
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return (I32)_mm512_permutex2var_epi32((__m512i)x.lo, odd, (__m512i)x.hi);
}

// --- Loads of one unit

SIMD_INLINE F32 float16_numbers(__m256i codes) { return (F32)_mm512_cvt_roundph_ps(codes, _MM_FROUND_NO_EXC); }
SIMD_INLINE F32 load_float16(const std::byte* src) { return float16_numbers((__m256i)load<U16h>(src)); }
SIMD_INLINE I32 load_int16(const std::byte* src) { return (I32)_mm512_cvtepi16_epi32((__m256i)load<U16h>(src)); }
SIMD_INLINE I32 load_uint16(const std::byte* src) { return (I32)_mm512_cvtepu16_epi32((__m256i)load<U16h>(src)); }

// --- Float to float

// The intrinsic of g++ 12 may trap, whatever its argument says.
SIMD_INLINE U16h float16_codes(F32 x) {
  __m256i codes;
  asm("vcvtps2ph $0, %{sae%}, %1, %0" : "=v"(codes) : "v"(x));
  return (U16h)codes;
}
SIMD_INLINE F32 add_nearest(F32 a, F32 b) { return (F32)_mm512_add_round_ps((__m512)a, (__m512)b, own_nearest); }
SIMD_INLINE F64x2 widen(F32 x) { return {(F64)_mm512_cvtps_pd(lower(x)), (F64)_mm512_cvtps_pd(upper(x))}; }
SIMD_INLINE F64 load_widened(const std::byte* src) { return (F64)_mm512_cvtps_pd((__m256)load<F32h>(src)); }
SIMD_INLINE F32 narrow(F64x2 x) { return join(_mm512_cvtpd_ps((__m512d)x.lo), _mm512_cvtpd_ps((__m512d)x.hi)); }

// Rounds toward zero, then sets the last bit if the result is inexact.
SIMD_INLINE __m256 narrow_odd_half(F64 x) {
  const __m256 cut = _mm512_cvt_roundpd_ps((__m512d)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __mmask8 inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd(cut), (__m512d)x, _CMP_NEQ_OQ);
  const __m256i bits = _mm256_castps_si256(cut);
  return _mm256_castsi256_ps(_mm256_mask_or_epi32(bits, inexact, bits, _mm256_set1_epi32(1)));
}
SIMD_INLINE F32 narrow_odd(F64x2 x) { return join(narrow_odd_half(x.lo), narrow_odd_half(x.hi)); }

template <Rounding word = Rounding::nearest_even>
SIMD_INLINE F32 round_to_integer(F32 x) {
  return (F32)_mm512_roundscale_ps((__m512)x, rounding_mode(word));
}
template <Rounding word = Rounding::nearest_even>
SIMD_INLINE F64 round_to_integer(F64 x) {
  return (F64)_mm512_roundscale_pd((__m512d)x, rounding_mode(word));
}

// --- Integer to float

template <bool is_signed>
SIMD_INLINE F32 to_f32(I32 x) {
  return (F32)(is_signed ? _mm512_cvtepi32_ps((__m512i)x) : _mm512_cvtepu32_ps((__m512i)x));
}
template <bool is_signed>
SIMD_INLINE F64x2 to_f64(I32 x) {
  if constexpr (is_signed) return {(F64)_mm512_cvtepi32_pd(lower(x)), (F64)_mm512_cvtepi32_pd(upper(x))};
  return {(F64)_mm512_cvtepu32_pd(lower(x)), (F64)_mm512_cvtepu32_pd(upper(x))};
}
template <bool is_signed>
SIMD_INLINE F64 to_f64(I64 x) {
  return (F64)(is_signed ? _mm512_cvtepi64_pd((__m512i)x) : _mm512_cvtepu64_pd((__m512i)x));
}
template <bool is_signed>
SIMD_INLINE F32 to_f32(I64x2 x) {
  if constexpr (is_signed) return join(_mm512_cvtepi64_ps((__m512i)x.lo), _mm512_cvtepi64_ps((__m512i)x.hi));
  return join(_mm512_cvtepu64_ps((__m512i)x.lo), _mm512_cvtepu64_ps((__m512i)x.hi));
}
template <bool is_signed>
SIMD_INLINE F32 to_f32_clamped(I64x2 x) {
  return to_f32<is_signed>(x);
}
template <bool is_signed>
SIMD_INLINE F32 to_f32_leading(I32 x) {
  constexpr int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  return (F32)(is_signed ? _mm512_cvt_roundepi32_ps((__m512i)x, toward_zero)
                         : _mm512_cvt_roundepu32_ps((__m512i)x, toward_zero));
}
template <bool is_signed>
SIMD_INLINE F32 to_f32_leading(I64x2 x) {
  constexpr int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  if constexpr (is_signed) {
    return join(_mm512_cvt_roundepi64_ps((__m512i)x.lo, toward_zero),
                _mm512_cvt_roundepi64_ps((__m512i)x.hi, toward_zero));
  }
  return join(_mm512_cvt_roundepu64_ps((__m512i)x.lo, toward_zero),
              _mm512_cvt_roundepu64_ps((__m512i)x.hi, toward_zero));
}
template <bool is_signed>
SIMD_INLINE __m256 to_f32_odd_half(__m512i x) {
  constexpr int toward_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  const __m256 cut = is_signed ? _mm512_cvt_roundepi64_ps(x, toward_zero) : _mm512_cvt_roundepu64_ps(x, toward_zero);
  const __m512i back = is_signed ? _mm512_cvttps_epi64(cut) : _mm512_cvttps_epu64(cut);
  const __m256i bits = _mm256_castps_si256(cut);
  const __mmask8 inexact = _mm512_cmpneq_epi64_mask(back, x);
  return _mm256_castsi256_ps(_mm256_mask_or_epi32(bits, inexact, bits, _mm256_set1_epi32(1)));
}
template <bool is_signed>
SIMD_INLINE F32 to_f32_odd(I64x2 x) {
  return join(to_f32_odd_half<is_signed>((__m512i)x.lo), to_f32_odd_half<is_signed>((__m512i)x.hi));
}

// --- Integer to integer

template <bool is_signed>
SIMD_INLINE I32 clamped_to_int32(I64x2 x) {
  const auto half = [](I64 lanes) {
    return is_signed ? _mm512_cvtsepi64_epi32((__m512i)lanes)
                     : _mm256_min_epu32(_mm512_cvtusepi64_epi32((__m512i)lanes), _mm256_set1_epi32(INT32_MAX));
  };
  return (I32)_mm512_inserti64x4(_mm512_castsi256_si512(half(x.lo)), half(x.hi), 1);
}
template <bool is_signed>
SIMD_INLINE I64x2 widen(I32 x) {
  if constexpr (is_signed) return {(I64)_mm512_cvtepi32_epi64(lower(x)), (I64)_mm512_cvtepi32_epi64(upper(x))};
  return {(I64)_mm512_cvtepu32_epi64(lower(x)), (I64)_mm512_cvtepu32_epi64(upper(x))};
}

// --- Float to integer

SIMD_INLINE I32 truncate(F32 x) { return (I32)_mm512_cvtt_roundps_epi32((__m512)x, _MM_FROUND_NO_EXC); }
SIMD_INLINE I32 truncate(F64x2 x) {
  const __m512i lo = _mm512_castsi256_si512(_mm512_cvttpd_epi32((__m512d)x.lo));
  return (I32)_mm512_inserti64x4(lo, _mm512_cvttpd_epi32((__m512d)x.hi), 1);
}

// Wraps by definition, with shifts. A shift by more than the lane's width gives 0, so infinities and NaN give 0.
SIMD_INLINE I32 wrap_by_shift(F32 x) {
  const I32 bits = as<I32>(x);
  const __m512i exponent = (__m512i)((bits >> 23) & 0xff);
  const __m512i significand = (__m512i)((bits & 0x7fffff) | 0x800000);
  const I32 magnitude = (I32)(_mm512_sllv_epi32(significand, _mm512_sub_epi32(exponent, _mm512_set1_epi32(150)))) |
                        (I32)(_mm512_srlv_epi32(significand, _mm512_sub_epi32(_mm512_set1_epi32(150), exponent)));
  const I32 sign = bits >> 31;
  return negated_where(sign, magnitude);
}
SIMD_INLINE I64 wrap_by_shift(F64 x) {
  const I64 bits = as<I64>(x);
  const __m512i exponent = (__m512i)((bits >> 52) & 0x7ff);
  const __m512i significand = (__m512i)((bits & 0xfffffffffffff) | 0x10000000000000);
  const I64 magnitude = (I64)(_mm512_sllv_epi64(significand, _mm512_sub_epi64(exponent, _mm512_set1_epi64(1075)))) |
                        (I64)(_mm512_srlv_epi64(significand, _mm512_sub_epi64(_mm512_set1_epi64(1075), exponent)));
  const I64 sign = bits >> 63;
  return negated_where(sign, magnitude);
}

SIMD_INLINE I64x2 truncate_wrapped_64(F64x2 x) {
  const I64x2 y = {(I64)_mm512_cvttpd_epi64((__m512d)x.lo), (I64)_mm512_cvttpd_epi64((__m512d)x.hi)};
  const I64 out_of_range = splat(INT64_MIN);
  if ((equal(y.lo, out_of_range) | equal(y.hi, out_of_range)) == 0) [[likely]]
    return y;
  return {wrap_by_shift(x.lo), wrap_by_shift(x.hi)};
}
SIMD_INLINE I64x2 truncate_wrapped_64(F32 x) {
  const I64x2 y = {(I64)_mm512_cvttps_epi64(lower(x)), (I64)_mm512_cvttps_epi64(upper(x))};
  const I64 out_of_range = splat(INT64_MIN);
  if ((equal(y.lo, out_of_range) | equal(y.hi, out_of_range)) == 0) [[likely]]
    return y;
  const F64x2 wide = widen(x);
  return {wrap_by_shift(wide.lo), wrap_by_shift(wide.hi)};
}
template <bool is_signed>
SIMD_INLINE I32 truncate_wrapped_32(F64x2 x) {
  return low_u32(truncate_wrapped_64(x));
}

// --- Less than a block

SIMD_INLINE __mmask64 first_bytes(std::size_t bytes) {
  return bytes >= 64 ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1;
}
// Copies `bytes` and fills the rest of `dst` with zeros.
template <std::size_t capacity>
SIMD_INLINE void copy_and_pad(std::byte* dst, const std::byte* src, std::size_t bytes) {
  for (std::size_t at = 0; at < capacity; at += 64) {
    const std::size_t left = bytes > at ? bytes - at : 0;
    _mm512_store_si512(dst + at, _mm512_maskz_loadu_epi8(first_bytes(left), src + at));
  }
}
template <std::size_t capacity>
SIMD_INLINE void copy_front(std::byte* dst, const std::byte* src, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) {
    _mm512_mask_storeu_epi8(dst + at, first_bytes(bytes - at), _mm512_load_si512(src + at));
  }
}

// --- Packs

SIMD_INLINE U16 pack_u16(I32 a, I32 b) {
  const __m512i even = _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26, 24,
                                        22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return (U16)_mm512_permutex2var_epi16((__m512i)a, even, (__m512i)b);
}
template <bool is_signed>
SIMD_INLINE U16 pack_saturated(I32 a, I32 b) {
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  const __m512i packed =
      is_signed ? _mm512_packs_epi32((__m512i)a, (__m512i)b) : _mm512_packus_epi32((__m512i)a, (__m512i)b);
  return (U16)_mm512_permutexvar_epi64(order, packed);
}
SIMD_INLINE U16 pack_high_u16(I32 a, I32 b) {
  const __m512i odd = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27, 25,
                                       23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return (U16)_mm512_permutex2var_epi16((__m512i)a, odd, (__m512i)b);
}

// Packs work within 128 bits and leave groups of four bytes in the order a b c d, a b c d, ...
SIMD_INLINE U8 order_groups(__m512i x) {
  const __m512i transposed = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return (U8)_mm512_permutexvar_epi32(transposed, x);
}
template <bool is_signed>
SIMD_INLINE U8 pack_bytes_saturated(const Block<I32>& x) {
  const __m512i ab = _mm512_packs_epi32((__m512i)x.a, (__m512i)x.b);
  const __m512i cd = _mm512_packs_epi32((__m512i)x.c, (__m512i)x.d);
  return order_groups(is_signed ? _mm512_packs_epi16(ab, cd) : _mm512_packus_epi16(ab, cd));
}

#if defined(__AVX512VBMI__)
template <int byte>
SIMD_INLINE U8 pack_byte(const Block<I32>& x) {
  alignas(64) static constexpr struct Index {
    std::uint8_t at[64] = {};
    constexpr Index() {
      for (int i = 0; i < 64; ++i) at[i] = static_cast<std::uint8_t>(i % 32 * 4 + byte);
    }
  } index;
  const __m512i pick = _mm512_load_si512(index.at);
  const __m512i ab = _mm512_permutex2var_epi8((__m512i)x.a, pick, (__m512i)x.b);
  const __m512i cd = _mm512_permutex2var_epi8((__m512i)x.c, pick, (__m512i)x.d);
  return (U8)_mm512_inserti64x4(ab, _mm512_castsi512_si256(cd), 1);
}
SIMD_INLINE U8 pack_bytes(const Block<I32>& x) { return pack_byte<0>(x); }

// Where that byte of each 16-bit lane is.
template <int byte>
SIMD_INLINE __m512i places_of_byte() {
  alignas(64) static constexpr struct Index {
    std::uint8_t at[64] = {};
    constexpr Index() {
      for (int i = 0; i < 64; ++i) at[i] = static_cast<std::uint8_t>(i * 2 + byte);
    }
  } index;
  return _mm512_load_si512(index.at);
}
template <int byte>
SIMD_INLINE U8 pack_byte(U16x2 x) {
  return (U8)_mm512_permutex2var_epi8((__m512i)x.lo, places_of_byte<byte>(), (__m512i)x.hi);
}
SIMD_INLINE U8 pack_low_bytes(U16x2 x) { return pack_byte<0>(x); }
SIMD_INLINE U8 pack_high_bytes(U16x2 x) { return pack_byte<1>(x); }
#else
SIMD_INLINE U8 pack_small(U16 a, U16 b) {  // below 256
  const __m512i packed = _mm512_packus_epi16((__m512i)a, (__m512i)b);
  return (U8)_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), packed);
}
SIMD_INLINE U8 pack_low_bytes(U16x2 x) { return pack_small(x.lo & 0xff, x.hi & 0xff); }
SIMD_INLINE U8 pack_high_bytes(U16x2 x) { return pack_small(x.lo >> 8, x.hi >> 8); }

SIMD_INLINE U8 pack_bytes(const Block<I32>& x) {
  const Block<I32> low = map(x, [](I32 lanes) { return lanes & 0xff; });
  return order_groups(_mm512_packus_epi16(_mm512_packs_epi32((__m512i)low.a, (__m512i)low.b),
                                          _mm512_packs_epi32((__m512i)low.c, (__m512i)low.d)));
}
#endif

// Bit 7 of a byte is the sign of the lane. A byte permutation of two registers would be three operations.
SIMD_INLINE U8 pack_signs(const Block<I32>& x) { return pack_bytes_saturated<true>(x); }

SIMD_INLINE U8 pack_clamped(U16x2 x) {
  return (U8)_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                                      _mm512_packus_epi16((__m512i)x.lo, (__m512i)x.hi));
}
SIMD_INLINE U8 pack_with_signs(U16x2 x, U8 most, U16x2 signs, U8 sign_bit) {
  const U8 limited = min((U8)_mm512_packus_epi16((__m512i)x.lo, (__m512i)x.hi), most);
  const U8 packed = limited | ((U8)_mm512_packs_epi16((__m512i)signs.lo, (__m512i)signs.hi) & sign_bit);
  return (U8)_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), (__m512i)packed);
}

SIMD_INLINE U8h pack_u4(U8 codes) {
  const __m512i pairs = _mm512_maddubs_epi16((__m512i)codes, _mm512_set1_epi16(0x1001));  // low + high * 16
#if defined(__AVX512VBMI__)
  return (U8h)_mm512_castsi512_si256(_mm512_permutexvar_epi8(places_of_byte<0>(), pairs));
#else
  return (U8h)_mm512_cvtepi16_epi8(pairs);
#endif
}
// Of codes in groups of eight, as grouped_bytes() gives them.
SIMD_INLINE U8h pack_grouped_u4(U8 codes) {
#if defined(__AVX512VBMI__)
  alignas(64) static constexpr struct Index {
    std::uint8_t at[64] = {};
    constexpr Index() {
      for (int i = 0; i < 32; ++i) at[i] = static_cast<std::uint8_t>(i % 16 / 4 * 16 + i / 16 * 8 + i % 4 * 2);
    }
  } index;
  const __m512i pairs = _mm512_maddubs_epi16((__m512i)codes, _mm512_set1_epi16(0x1001));
  return (U8h)_mm512_castsi512_si256(_mm512_permutexvar_epi8(_mm512_load_si512(index.at), pairs));
#else
  return pack_u4((U8)_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), (__m512i)codes));
#endif
}
// Of words below 16.
SIMD_INLINE U8h pack_u4(U16x2 codes) {
  return pack_grouped_u4((U8)_mm512_packus_epi16((__m512i)codes.lo, (__m512i)codes.hi));
}
SIMD_INLINE U8q pack_u2(U8 codes) {
  const U32 pairs = as<U32>(codes) | (as<U32>(codes) >> 6);
  return (U8q)_mm512_cvtepi32_epi8((__m512i)(pairs | (pairs >> 12)));
}

SIMD_INLINE U64 multiply_low_halves(U64 x, U64 y) { return (U64)_mm512_mul_epu32((__m512i)x, (__m512i)y); }

// --- Bytes as indices

#define TENSORCAST_HAS_BYTE_LOOKUP 1

SIMD_INLINE I32 load_int8(const std::byte* src) { return (I32)_mm512_cvtepi8_epi32((__m128i)load<U8q>(src)); }
SIMD_INLINE I32 load_uint8(const std::byte* src) { return (I32)_mm512_cvtepu8_epi32((__m128i)load<U8q>(src)); }
SIMD_INLINE F32 load_upper_float16(const std::byte* src) {
  const __m256i words = _mm256_cvtepu8_epi16((__m128i)load<U8q>(src));
  return (F32)_mm512_cvtph_ps(_mm256_slli_epi16(words, 8));
}
SIMD_INLINE U16 load_bytes_as_u16(const std::byte* src) { return (U16)_mm512_cvtepu8_epi16((__m256i)load<U8h>(src)); }

// 16 bytes as they are, then shifted by four bits, each in a lane of 16 bits. Or first eight and then eight of them.
SIMD_INLINE U16 load_nibbles_as_u16(const std::byte* src) {
  const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src)));
  const __m512i shifts =
      _mm512_setr_epi64(0, 0, 0, 0, 0x4000400040004, 0x4000400040004, 0x4000400040004, 0x4000400040004);
  return (U16)_mm512_srlv_epi16(_mm512_cvtepu8_epi16(twice), shifts);
}
SIMD_INLINE U16 load_runs_of_nibbles_as_u16(const std::byte* src) {
  const __m256i twice =
      _mm256_permute4x64_epi64(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src))), 0x50);
  const __m512i shifts =
      _mm512_setr_epi64(0, 0, 0x4000400040004, 0x4000400040004, 0, 0, 0x4000400040004, 0x4000400040004);
  return (U16)_mm512_srlv_epi16(_mm512_cvtepu8_epi16(twice), shifts);
}
// A number of float16 in all lanes.
SIMD_INLINE F32 splat_float16(const std::byte* src) {
  short bits;
  __builtin_memcpy(&bits, src, sizeof bits);
  return (F32)_mm512_cvtph_ps(_mm256_set1_epi16(bits));
}
template <class Bytes16>
SIMD_INLINE I32 widen_bytes(Bytes16 bytes) {
  return (I32)_mm512_cvtepu8_epi32((__m128i)bytes);
}
SIMD_INLINE F32 permute(F32 lanes, I32 index) { return (F32)_mm512_permutexvar_ps((__m512i)index, (__m512)lanes); }
// Bits of `yes` where `mask` has ones, of `no` elsewhere.
SIMD_INLINE U16 select_bits(U16 mask, U16 yes, U16 no) {
  return (U16)_mm512_ternarylogic_epi32((__m512i)mask, (__m512i)yes, (__m512i)no, 0xca);
}
// Adds `bit` to the lanes whose bit of `where` is set.
SIMD_INLINE U16 with_bit_where(U16 x, std::uint32_t where, std::int16_t bit) {
  return (U16)_mm512_mask_add_epi16((__m512i)x, where, (__m512i)x, _mm512_set1_epi16(bit));
}
// The nearest bfloat16, ties to even, in the upper half of each lane; lower halves are anything. NaN has no payload.
SIMD_INLINE U32 to_upper_bfloat16(F32 x) {
  const __m512i bits = (__m512i)x;
  const __mmask16 is_odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  const __m512i up = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
  return (U32)_mm512_mask_add_epi32(up, is_odd, bits, _mm512_set1_epi32(0x8000));
}

struct Table16 {
  __m512i entries;

  SIMD_INLINE explicit Table16(const std::byte* bytes)
      : entries(_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)))) {}
  SIMD_INLINE U8 operator()(U8 index) const { return (U8)_mm512_shuffle_epi8(entries, (__m512i)index); }
};

// 32 entries of 16 bits; the lookup ignores other bits of the lanes of an index.
struct WordTable32 {
  __m512i entries;

  SIMD_INLINE static WordTable32 of_halves(const std::uint16_t* low, const std::uint16_t* high) {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low));
    return {_mm512_inserti64x4(_mm512_castsi256_si512(first),
                               _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high)), 1)};
  }
  // From the upper halves of lanes: 16 entries twice, or 32.
  SIMD_INLINE static WordTable32 of_upper(U32 x) {
    const __m512i odd = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 31, 29, 27, 25, 23,
                                         21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    return {_mm512_permutexvar_epi16(odd, (__m512i)x)};
  }
  SIMD_INLINE static WordTable32 of_uppers(U32 a, U32 b) { return {(__m512i)pack_high_u16(as<I32>(a), as<I32>(b))}; }
  SIMD_INLINE U16 operator()(U16 index) const { return (U16)_mm512_permutexvar_epi16((__m512i)index, entries); }
};

struct Table256 {
  __m512i quarters[4];

  SIMD_INLINE explicit Table256(const std::byte* bytes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) quarters[i] = _mm512_loadu_si512(bytes + i * 64);
  }
#if defined(__AVX512VBMI__)
  // A lookup in two registers ignores bit 7.
  SIMD_INLINE U8 operator()(U8 index) const {
    const __m512i lower = _mm512_permutex2var_epi8(quarters[0], (__m512i)index, quarters[1]);
    const __m512i upper = _mm512_permutex2var_epi8(quarters[2], (__m512i)index, quarters[3]);
    return (U8)_mm512_mask_blend_epi8(_mm512_movepi8_mask((__m512i)index), lower, upper);
  }
#else
  SIMD_INLINE U8 operator()(U8 index) const {
    const U16 words = as<U16>(index);
    return as<U8>((entry(words & 0xff) & 0xff) | entry(words >> 8) << 8);
  }

 private:
  // The index is in the low byte of each lane. A unit of the table has two entries; the lookup ignores bit 6.
  SIMD_INLINE U16 entry(U16 index) const {
    const __m512i word = (__m512i)(index >> 1);
    const __m512i lower = _mm512_permutex2var_epi16(quarters[0], word, quarters[1]);
    const __m512i upper = _mm512_permutex2var_epi16(quarters[2], word, quarters[3]);
    const __mmask32 is_upper = _mm512_test_epi16_mask(word, _mm512_set1_epi16(0x40));
    return shift_right_each((U16)_mm512_mask_blend_epi16(is_upper, lower, upper), (index & 1) << 3);
  }
#endif
};
#if defined(__AVX512VBMI__)
inline constexpr bool has_byte_permutes = true;
#else
inline constexpr bool has_byte_permutes = false;
#endif

using NibbleTable256 = Table256;

// Merges the low or high units of each 128 bits of two registers.
template <int unit_bytes>
SIMD_INLINE U8 interleave_low(U8 a, U8 b) {
  if constexpr (unit_bytes == 1) return (U8)_mm512_unpacklo_epi8((__m512i)a, (__m512i)b);
  if constexpr (unit_bytes == 2) return (U8)_mm512_unpacklo_epi16((__m512i)a, (__m512i)b);
  if constexpr (unit_bytes == 4) return (U8)_mm512_unpacklo_epi32((__m512i)a, (__m512i)b);
}
template <int unit_bytes>
SIMD_INLINE U8 interleave_high(U8 a, U8 b) {
  if constexpr (unit_bytes == 1) return (U8)_mm512_unpackhi_epi8((__m512i)a, (__m512i)b);
  if constexpr (unit_bytes == 2) return (U8)_mm512_unpackhi_epi16((__m512i)a, (__m512i)b);
  if constexpr (unit_bytes == 4) return (U8)_mm512_unpackhi_epi32((__m512i)a, (__m512i)b);
}
// Bytes in the order in which that many interleaved registers come out consecutive: chunk k of 128-bit lane l becomes
// lane l of register k.
template <int registers>
SIMD_INLINE U8 order_for_interleaving(U8 bytes) {
  __m512i x = (__m512i)bytes;
  if constexpr (registers == 2) x = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), x);
  if constexpr (registers == 4) x = (__m512i)order_groups(x);
  if constexpr (registers == 8) {
    const __m512i words = _mm512_set_epi16(31, 27, 23, 19, 15, 11, 7, 3, 30, 26, 22, 18, 14, 10, 6, 2, 29, 25, 21, 17,
                                           13, 9, 5, 1, 28, 24, 20, 16, 12, 8, 4, 0);
    x = _mm512_permutexvar_epi16(words, x);
  }
  return (U8)x;
}

// --- Stores that bypass the cache

SIMD_INLINE void stream_line(const std::byte* src, std::byte* dst) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(dst), _mm512_loadu_si512(src));
}
SIMD_INLINE void wait_for_streams() { _mm_sfence(); }

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
