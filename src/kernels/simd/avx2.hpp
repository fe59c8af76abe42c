// SPDX-License-Identifier: Apache-2.0
// The vocabulary of simd.hpp for AVX2, FMA and F16C.
#pragma once

#include "kernels/simd/intrinsics.hpp"

#define TENSORCAST_REGISTER_BYTES 32
#include "kernels/simd/without_64_bit.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

SIMD_INLINE bool any(Mask32 mask) { return _mm256_movemask_ps((__m256)mask) != 0; }

inline constexpr bool has_fused_float32 = true;
// x * y + z and x * y - z, rounded once.
SIMD_INLINE F32 multiply_add(F32 x, F32 y, F32 z) { return (F32)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z); }
SIMD_INLINE F32 multiply_subtract(F32 x, F32 y, F32 z) { return (F32)_mm256_fmsub_ps((__m256)x, (__m256)y, (__m256)z); }
SIMD_INLINE F64 multiply_add(F64 x, F64 y, F64 z) { return (F64)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z); }
SIMD_INLINE F64 multiply_subtract(F64 x, F64 y, F64 z) {
  return (F64)_mm256_fmsub_pd((__m256d)x, (__m256d)y, (__m256d)z);
}

SIMD_INLINE F64 add_square(F64 sum, F64 x) { return multiply_add(x, x, sum); }

// --- 16-bit lanes

inline constexpr bool has_u16_shifts = true;
SIMD_INLINE U16 min(U16 a, U16 b) { return (U16)_mm256_min_epu16((__m256i)a, (__m256i)b); }
SIMD_INLINE U16 max(U16 a, U16 b) { return (U16)_mm256_max_epu16((__m256i)a, (__m256i)b); }
SIMD_INLINE bool any_greater(I16 a, I16 b) { return _mm256_movemask_epi8((__m256i)(a > b)) != 0; }
// Shifts by 1 to 8; other counts give 0. Takes the upper half of a product with a power of two from a table.
SIMD_INLINE U16 shift_right_each(U16 x, U16 bits) {
  const __m128i powers = _mm_setr_epi8(0, -128, 64, 32, 16, 8, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0);
  const U16 index = (min(bits, splat(std::uint16_t{15})) << 8) | 0x80;
  const __m256i factor = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(powers), (__m256i)index);
  return (U16)_mm256_mulhi_epu16((__m256i)x, factor);
}
SIMD_INLINE U16 subtract_to_zero(U16 a, U16 b) { return (U16)_mm256_subs_epu16((__m256i)a, (__m256i)b); }

// --- Halves

SIMD_INLINE __m128 lower(F32 x) { return _mm256_castps256_ps128((__m256)x); }
SIMD_INLINE __m128 upper(F32 x) { return _mm256_extractf128_ps((__m256)x, 1); }
SIMD_INLINE __m128i lower(I32 x) { return _mm256_castsi256_si128((__m256i)x); }
SIMD_INLINE __m128i upper(I32 x) { return _mm256_extracti128_si256((__m256i)x, 1); }

SIMD_INLINE I32 low_u32(I64x2 x) {
  const __m256 even = _mm256_shuffle_ps((__m256)x.lo, (__m256)x.hi, _MM_SHUFFLE(2, 0, 2, 0));
  return (I32)_mm256_permute4x64_epi64(_mm256_castps_si256(even), _MM_SHUFFLE(3, 1, 2, 0));
}
SIMD_INLINE I32 high_u32(I64x2 x) {
  const __m256 odd = _mm256_shuffle_ps((__m256)x.lo, (__m256)x.hi, _MM_SHUFFLE(3, 1, 3, 1));
  return (I32)_mm256_permute4x64_epi64(_mm256_castps_si256(odd), _MM_SHUFFLE(3, 1, 2, 0));
}

// --- Loads of one unit

SIMD_INLINE F32 load_float16(const std::byte* src) { return (F32)_mm256_cvtph_ps((__m128i)load<U16h>(src)); }
SIMD_INLINE I32 load_int16(const std::byte* src) { return (I32)_mm256_cvtepi16_epi32((__m128i)load<U16h>(src)); }
SIMD_INLINE I32 load_uint16(const std::byte* src) { return (I32)_mm256_cvtepu16_epi32((__m128i)load<U16h>(src)); }

// --- Float to float

SIMD_INLINE U16h float16_codes(F32 x) {
  return (U16h)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
SIMD_INLINE F64x2 widen(F32 x) { return {(F64)_mm256_cvtps_pd(lower(x)), (F64)_mm256_cvtps_pd(upper(x))}; }
SIMD_INLINE F32 narrow(F64x2 x) {
  const __m128 lo = _mm256_cvtpd_ps((__m256d)x.lo);
  const __m128 hi = _mm256_cvtpd_ps((__m256d)x.hi);
  return (F32)_mm256_insertf128_ps(_mm256_castps128_ps256(lo), hi, 1);
}
template <Rounding word = Rounding::nearest_even>
SIMD_INLINE F32 round_to_integer(F32 x) {
  return (F32)_mm256_round_ps((__m256)x, rounding_mode(word));
}
template <Rounding word = Rounding::nearest_even>
SIMD_INLINE F64 round_to_integer(F64 x) {
  return (F64)_mm256_round_pd((__m256d)x, rounding_mode(word));
}

// --- Integer to integer

template <bool is_signed>
SIMD_INLINE I64x2 widen(I32 x) {
  if constexpr (is_signed) return {(I64)_mm256_cvtepi32_epi64(lower(x)), (I64)_mm256_cvtepi32_epi64(upper(x))};
  return {(I64)_mm256_cvtepu32_epi64(lower(x)), (I64)_mm256_cvtepu32_epi64(upper(x))};
}

// --- Integer to float

template <bool is_signed>
SIMD_INLINE F32 to_f32(I32 x) {
  if constexpr (is_signed) return (F32)_mm256_cvtepi32_ps((__m256i)x);
  return __builtin_convertvector(as<U32>(x), F32);
}
template <bool is_signed>
SIMD_INLINE F64x2 to_f64(I32 x) {
  if constexpr (is_signed) return {(F64)_mm256_cvtepi32_pd(lower(x)), (F64)_mm256_cvtepi32_pd(upper(x))};
  const I64x2 wide = widen<false>(x);
  constexpr std::int64_t two_52 = 0x4330000000000000;  // the integer becomes the mantissa below 2^52
  return {as<F64>(wide.lo | two_52) - 0x1p52, as<F64>(wide.hi | two_52) - 0x1p52};
}

// --- Float to integer

SIMD_INLINE I32 truncate(F32 x) { return (I32)_mm256_cvttps_epi32((__m256)x); }

// Wraps by definition, with shifts. A shift by more than the lane's width gives 0, so infinities and NaN give 0.
SIMD_INLINE I32 wrap_by_shift(F32 x) {
  const I32 bits = as<I32>(x);
  const __m256i exponent = (__m256i)((bits >> 23) & 0xff);
  const __m256i significand = (__m256i)((bits & 0x7fffff) | 0x800000);
  const I32 magnitude = (I32)(_mm256_sllv_epi32(significand, _mm256_sub_epi32(exponent, _mm256_set1_epi32(150)))) |
                        (I32)(_mm256_srlv_epi32(significand, _mm256_sub_epi32(_mm256_set1_epi32(150), exponent)));
  const I32 sign = bits >> 31;
  return negated_where(sign, magnitude);
}
SIMD_INLINE I64 wrap_by_shift(F64 x) {
  const U64 bits = as<U64>(x);
  const __m256i exponent = (__m256i)((bits >> 52) & 0x7ff);
  const __m256i significand = (__m256i)((bits & 0xfffffffffffff) | 0x10000000000000);
  const I64 magnitude = (I64)(_mm256_sllv_epi64(significand, _mm256_sub_epi64(exponent, _mm256_set1_epi64x(1075)))) |
                        (I64)(_mm256_srlv_epi64(significand, _mm256_sub_epi64(_mm256_set1_epi64x(1075), exponent)));
  const I64 sign = as<I64>(bits) < 0;
  return negated_where(sign, magnitude);
}

// The CPU converts numbers within int32, as most are. It has no instruction for larger ones, which wrap_by_shift()
// takes.
SIMD_INLINE I32 truncate(F64x2 x) {
  const __m128i lo = _mm256_cvttpd_epi32((__m256d)x.lo);
  const __m128i hi = _mm256_cvttpd_epi32((__m256d)x.hi);
  return (I32)_mm256_inserti128_si256(_mm256_castsi128_si256(lo), hi, 1);
}
SIMD_INLINE I64x2 truncate_wrapped_64(F64x2 x) {
  const I32 y = truncate(x);
  if (!any(equal(y, splat(INT32_MIN)))) [[likely]]
    return widen<true>(y);
  return {wrap_by_shift(x.lo), wrap_by_shift(x.hi)};
}
SIMD_INLINE I64x2 truncate_wrapped_64(F32 x) {
  const I32 y = truncate(x);
  if (!any(equal(y, splat(INT32_MIN)))) [[likely]]
    return widen<true>(y);
  const F64x2 wide = widen(x);
  return {wrap_by_shift(wide.lo), wrap_by_shift(wide.hi)};
}

template <bool is_signed>
SIMD_INLINE I32 truncate_wrapped_32(F64x2 x) {
  const I32 y = truncate(x);
  if (!any(equal(y, splat(INT32_MIN)))) [[likely]]
    return y;
  return low_u32({wrap_by_shift(x.lo), wrap_by_shift(x.hi)});
}

// --- Packs. The CPU's instructions work within 128 bits

SIMD_INLINE U16 order_quarters(__m256i x) { return (U16)_mm256_permute4x64_epi64(x, _MM_SHUFFLE(3, 1, 2, 0)); }
SIMD_INLINE U16 pack_u16(I32 a, I32 b) {
  return order_quarters(_mm256_packus_epi32((__m256i)(a & 0xffff), (__m256i)(b & 0xffff)));
}
template <bool is_signed>
SIMD_INLINE U16 pack_saturated(I32 a, I32 b) {
  return order_quarters(is_signed ? _mm256_packs_epi32((__m256i)a, (__m256i)b)
                                  : _mm256_packus_epi32((__m256i)a, (__m256i)b));
}
SIMD_INLINE U16 pack_high_u16(I32 a, I32 b) {
  return order_quarters(_mm256_packus_epi32((__m256i)(as<U32>(a) >> 16), (__m256i)(as<U32>(b) >> 16)));
}

SIMD_INLINE U8 order_groups(__m256i x) {
  return (U8)_mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
template <bool is_signed>
SIMD_INLINE U8 pack_bytes_saturated(const Block<I32>& x) {
  const __m256i ab = _mm256_packs_epi32((__m256i)x.a, (__m256i)x.b);
  const __m256i cd = _mm256_packs_epi32((__m256i)x.c, (__m256i)x.d);
  return order_groups(is_signed ? _mm256_packs_epi16(ab, cd) : _mm256_packus_epi16(ab, cd));
}
SIMD_INLINE U8 pack_bytes(const Block<I32>& x) {
  const Block<I32> low = map(x, [](I32 lanes) { return lanes & 0xff; });
  return order_groups(_mm256_packus_epi16(_mm256_packs_epi32((__m256i)low.a, (__m256i)low.b),
                                          _mm256_packs_epi32((__m256i)low.c, (__m256i)low.d)));
}
// Bit 7 of a byte is the sign of the lane.
SIMD_INLINE U8 pack_signs(const Block<I32>& x) { return pack_bytes_saturated<true>(x); }

SIMD_INLINE U8 pack_small(U16 a, U16 b) {  // below 256
  return (U8)order_quarters(_mm256_packus_epi16((__m256i)a, (__m256i)b));
}
SIMD_INLINE U8 pack_low_bytes(U16x2 x) { return pack_small(x.lo & 0xff, x.hi & 0xff); }
SIMD_INLINE U8 pack_high_bytes(U16x2 x) { return pack_small(x.lo >> 8, x.hi >> 8); }

SIMD_INLINE U8 pack_clamped(U16x2 x) { return pack_small(x.lo, x.hi); }
SIMD_INLINE U8 pack_with_signs(U16x2 x, U8 most, U16x2 signs, U8 sign_bit) {
  const U8 limited = min((U8)_mm256_packus_epi16((__m256i)x.lo, (__m256i)x.hi), most);
  const U8 of_signs = (U8)_mm256_packs_epi16((__m256i)signs.lo, (__m256i)signs.hi) & sign_bit;
  return (U8)order_quarters((__m256i)(limited | of_signs));
}

// Low bytes of 16-bit lanes.
SIMD_INLINE __m128i low_bytes(U16 words) {
  const __m256i packed = _mm256_packus_epi16((__m256i)(words & 0xff), _mm256_setzero_si256());
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0)));
}
SIMD_INLINE U8h pack_u4(U8 codes) {
  const __m256i pairs = _mm256_maddubs_epi16((__m256i)codes, _mm256_set1_epi16(0x1001));  // low + high * 16
  const __m256i packed = _mm256_packus_epi16(pairs, pairs);
  return (U8h)_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0)));
}
SIMD_INLINE U8q pack_u2(U8 codes) {
  const U32 pairs = as<U32>(codes) | (as<U32>(codes) >> 6);
  const __m128i low = low_bytes(as<U16>(pairs | (pairs >> 12)));  // every other byte
  const __m128i even = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, -1, -1, -1, -1, -1, -1, -1, -1);
  const long long bytes = _mm_cvtsi128_si64(_mm_shuffle_epi8(low, even));
  U8q packed;
  __builtin_memcpy(&packed, &bytes, sizeof packed);
  return packed;
}

SIMD_INLINE U64 multiply_low_halves(U64 x, U64 y) { return (U64)_mm256_mul_epu32((__m256i)x, (__m256i)y); }

// --- Bytes as indices

#define TENSORCAST_HAS_BYTE_LOOKUP 1
inline constexpr bool has_byte_permutes = false;

SIMD_INLINE I32 load_int8(const std::byte* src) {
  return (I32)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(src)));
}
SIMD_INLINE I32 load_uint8(const std::byte* src) {
  return (I32)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(src)));
}
SIMD_INLINE F32 load_upper_float16(const std::byte* src) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(src));
  return (F32)_mm256_cvtph_ps(_mm_unpacklo_epi8(_mm_setzero_si128(), bytes));
}
SIMD_INLINE U16 load_bytes_as_u16(const std::byte* src) { return (U16)_mm256_cvtepu8_epi16((__m128i)load<U8h>(src)); }

struct Table16 {
  __m256i entries;

  SIMD_INLINE explicit Table16(const std::byte* bytes)
      : entries(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)))) {}
  SIMD_INLINE U8 operator()(U8 index) const { return (U8)_mm256_shuffle_epi8(entries, (__m256i)index); }
};

// A byte shuffle gives 0 for a negative index, so each row of 16 entries is looked up with the index less 16 per row.
// Row r, except the first of each half, is entries(row r) XOR entries(row r - 1), so the XOR of rows 0 to r is row r's
// entry.
struct Table256 {
  __m256i rows[16];

  SIMD_INLINE explicit Table256(const std::byte* bytes) {
    for (int row = 0; row < 16; ++row) {
      const __m256i entries = Table16(bytes + row * 16).entries;
      rows[row] = row % 8 == 0 ? entries : _mm256_xor_si256(entries, Table16(bytes + row * 16 - 16).entries);
    }
  }
  SIMD_INLINE U8 operator()(U8 index) const {
    __m256i rest = (__m256i)(index & 0x7f);
    __m256i lower = _mm256_shuffle_epi8(rows[0], rest), upper = _mm256_shuffle_epi8(rows[8], rest);
#pragma GCC unroll 8
    for (int row = 1; row < 8; ++row) {
      rest = keep_in_register(
          _mm256_sub_epi8(rest, _mm256_set1_epi8(16)));  // g++ would balance the chain, and run out of registers
      lower = keep_in_register(_mm256_xor_si256(lower, _mm256_shuffle_epi8(rows[row], rest)));
      upper = keep_in_register(_mm256_xor_si256(upper, _mm256_shuffle_epi8(rows[row + 8], rest)));
    }
    return (U8)_mm256_blendv_epi8(lower, upper, (__m256i)index);
  }
};

// As Table256, for entries below 16: each byte holds an entry of the lower half and, in its high bits, one of the
// upper.
struct NibbleTable256 {
  __m256i rows[8];

  SIMD_INLINE explicit NibbleTable256(const std::byte* bytes) {
    __m256i before = _mm256_setzero_si256();
    for (int row = 0; row < 8; ++row) {
      const __m256i upper = Table16(bytes + 128 + row * 16).entries;
      const __m256i entries = _mm256_or_si256(Table16(bytes + row * 16).entries, _mm256_slli_epi16(upper, 4));
      rows[row] = _mm256_xor_si256(entries, before);
      before = entries;
    }
  }
  SIMD_INLINE U8 operator()(U8 index) const {
    __m256i rest = (__m256i)(index & 0x7f);
    __m256i both = _mm256_shuffle_epi8(rows[0], rest);
#pragma GCC unroll 8
    for (int row = 1; row < 8; ++row) {
      rest = keep_in_register(_mm256_sub_epi8(rest, _mm256_set1_epi8(16)));
      both = keep_in_register(_mm256_xor_si256(both, _mm256_shuffle_epi8(rows[row], rest)));
    }
    return (U8)_mm256_blendv_epi8(both, _mm256_srli_epi16(both, 4), (__m256i)index) & 0xf;
  }
};

// Merges the low or high units of each 128 bits of two registers.
template <int unit_bytes>
SIMD_INLINE U8 interleave_low(U8 a, U8 b) {
  if constexpr (unit_bytes == 1) return (U8)_mm256_unpacklo_epi8((__m256i)a, (__m256i)b);
  if constexpr (unit_bytes == 2) return (U8)_mm256_unpacklo_epi16((__m256i)a, (__m256i)b);
  if constexpr (unit_bytes == 4) return (U8)_mm256_unpacklo_epi32((__m256i)a, (__m256i)b);
}
template <int unit_bytes>
SIMD_INLINE U8 interleave_high(U8 a, U8 b) {
  if constexpr (unit_bytes == 1) return (U8)_mm256_unpackhi_epi8((__m256i)a, (__m256i)b);
  if constexpr (unit_bytes == 2) return (U8)_mm256_unpackhi_epi16((__m256i)a, (__m256i)b);
  if constexpr (unit_bytes == 4) return (U8)_mm256_unpackhi_epi32((__m256i)a, (__m256i)b);
}
// Bytes in the order in which that many interleaved registers come out consecutive.
template <int registers>
SIMD_INLINE U8 order_for_interleaving(U8 bytes) {
  __m256i x = (__m256i)bytes;
  if constexpr (registers == 4) x = _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  if constexpr (registers == 8) {
    const __m128i even_u16 = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    x = _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(even_u16));
  }
  if constexpr (registers == 2 || registers == 8) x = _mm256_permute4x64_epi64(x, _MM_SHUFFLE(3, 1, 2, 0));
  return (U8)x;
}

// --- Stores that bypass the cache

SIMD_INLINE void stream_line(const std::byte* src, std::byte* dst) {
  const auto* const from = reinterpret_cast<const __m256i*>(src);
  auto* const to = reinterpret_cast<__m256i*>(dst);
  const __m256i low = _mm256_loadu_si256(from), high = _mm256_loadu_si256(from + 1);
  _mm256_stream_si256(to, low);
  _mm256_stream_si256(to + 1, high);
}
SIMD_INLINE void wait_for_streams() { _mm_sfence(); }

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
