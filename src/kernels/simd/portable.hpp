// SPDX-License-Identifier: Apache-2.0
// The vocabulary of simd.hpp for any CPU, in vectors of 16 bytes that the compiler lowers to the CPU's instructions.
#pragma once

#if defined(__SSSE3__)  // every Mac's
#include <tmmintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

#define TENSORCAST_REGISTER_BYTES 16
#include "kernels/simd/sixteen_bytes.hpp"
#include "kernels/simd/without_64_bit.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

SIMD_INLINE bool any(Mask32 mask) {
#if defined(__wasm_simd128__)
  return wasm_v128_any_true((v128_t)mask);
#endif
  const I64 halves = as<I64>(mask);
  return (halves[0] | halves[1]) != 0;
}

// x * y + z and x * y - z, rounded once.
SIMD_INLINE F64 multiply_add(F64 x, F64 y, F64 z) {
  return F64{__builtin_fma(x[0], y[0], z[0]), __builtin_fma(x[1], y[1], z[1])};
}
SIMD_INLINE F64 multiply_subtract(F64 x, F64 y, F64 z) {
  return F64{__builtin_fma(x[0], y[0], -z[0]), __builtin_fma(x[1], y[1], -z[1])};
}

SIMD_INLINE F64 add_square(F64 sum, F64 x) { return sum + x * x; }

// --- 16-bit lanes

inline constexpr bool has_u16_shifts = false;
U16 shift_right_each(U16 x, U16 bits);  // templates name it and never call it
SIMD_INLINE bool any_greater(I16 a, I16 b) { return any(as<Mask32>(a > b)); }
// The baseline of x86-64 lacks both, but not the saturating subtraction.
#if defined(__SSE2__)
SIMD_INLINE U16 subtract_to_zero(U16 a, U16 b) { return (U16)_mm_subs_epu16((__m128i)a, (__m128i)b); }
#else
SIMD_INLINE U16 subtract_to_zero(U16 a, U16 b) { return as<U16>(a > b) & (a - b); }
#endif
SIMD_INLINE U16 min(U16 a, U16 b) { return a - subtract_to_zero(a, b); }
SIMD_INLINE U16 max(U16 a, U16 b) { return b + subtract_to_zero(a, b); }

// --- Halves

SIMD_INLINE I32 low_u32(I64x2 x) { return __builtin_shufflevector(as<I32>(x.lo), as<I32>(x.hi), 0, 2, 4, 6); }
SIMD_INLINE I32 high_u32(I64x2 x) { return __builtin_shufflevector(as<I32>(x.lo), as<I32>(x.hi), 1, 3, 5, 7); }

template <bool is_signed>
SIMD_INLINE I64x2 widen(I32 x) {
  const I32 high = is_signed ? x >> 31 : I32{};
  return {as<I64>(__builtin_shufflevector(x, high, 0, 4, 1, 5)), as<I64>(__builtin_shufflevector(x, high, 2, 6, 3, 7))};
}

// --- Packs to 16 and 8 bits

#if defined(__SSE2__)

// The baseline of x86-64 packs with saturation only, so the low bits are sign-extended first.
SIMD_INLINE U16 pack_u16(I32 a, I32 b) {
  return (U16)_mm_packs_epi32((__m128i)((a << 16) >> 16), (__m128i)((b << 16) >> 16));
}
SIMD_INLINE U16 pack_high_u16(I32 a, I32 b) { return (U16)_mm_packs_epi32((__m128i)(a >> 16), (__m128i)(b >> 16)); }
SIMD_INLINE U8 low_bytes(U16 a, U16 b) { return (U8)_mm_packus_epi16((__m128i)(a & 0xff), (__m128i)(b & 0xff)); }

#else

SIMD_INLINE U16 pack_u16(I32 a, I32 b) {
  return __builtin_shufflevector(as<U16>(a), as<U16>(b), 0, 2, 4, 6, 8, 10, 12, 14);
}
SIMD_INLINE U16 pack_high_u16(I32 a, I32 b) { return pack_u16(as<I32>(as<U32>(a) >> 16), as<I32>(as<U32>(b) >> 16)); }
SIMD_INLINE U8 low_bytes(U16 a, U16 b) {
  return __builtin_shufflevector(as<U8>(a), as<U8>(b), 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

#endif

SIMD_INLINE U8 pack_low_bytes(U16x2 x) { return low_bytes(x.lo, x.hi); }
SIMD_INLINE U8 pack_high_bytes(U16x2 x) { return low_bytes(x.lo >> 8, x.hi >> 8); }
SIMD_INLINE U8 pack_bytes(const Block<I32>& x) { return low_bytes(pack_u16(x.a, x.b), pack_u16(x.c, x.d)); }

template <bool is_signed>
SIMD_INLINE U16 pack_saturated(I32 a, I32 b) {
#if defined(__SSE2__)
  if constexpr (is_signed) return (U16)_mm_packs_epi32((__m128i)a, (__m128i)b);
#endif
  const I32 least = splat(is_signed ? INT16_MIN : 0), most = splat(is_signed ? INT16_MAX : UINT16_MAX);
  return pack_u16(min(max(a, least), most), min(max(b, least), most));
}
template <bool is_signed>
SIMD_INLINE U8 pack_bytes_saturated(const Block<I32>& x) {
  const I16 least = splat(std::int16_t{is_signed ? INT8_MIN : 0}),
            most = splat(std::int16_t{is_signed ? INT8_MAX : UINT8_MAX});
  const I16 ab = as<I16>(pack_saturated<true>(x.a, x.b)), cd = as<I16>(pack_saturated<true>(x.c, x.d));
  return low_bytes(as<U16>(min(max(ab, least), most)), as<U16>(min(max(cd, least), most)));
}

// --- Loads of one unit

#if defined(__SSE2__)
SIMD_INLINE I32 load_uint16(const std::byte* src) {
  return (I32)_mm_unpacklo_epi16(_mm_loadu_si64(src), _mm_setzero_si128());
}
SIMD_INLINE I32 load_int16(const std::byte* src) { return (load_uint16(src) << 16) >> 16; }
#else
SIMD_INLINE I32 load_int16(const std::byte* src) { return __builtin_convertvector(load<I16h>(src), I32); }
SIMD_INLINE I32 load_uint16(const std::byte* src) { return __builtin_convertvector(load<U16h>(src), I32); }
#endif

// float16: the exponent is 112 too small when its bits stand where float32 has them; a multiplication puts that right,
// subnormals included. Infinities and NaN get the exponent of all ones, NaN also the quiet bit.
SIMD_INLINE F32 widen_float16(I32 code) {
  const I32 magnitude = code & 0x7fff;
  I32 bits = as<I32>(as<F32>(magnitude << 13) * 0x1p112F);
  bits |= greater(magnitude, splat(0x7bff)) & 0x7f800000;
  bits |= greater(magnitude, splat(0x7c00)) & 0x00400000;
  return as<F32>(bits | ((code & 0x8000) << 16));
}
SIMD_INLINE F32 load_float16(const std::byte* src) { return widen_float16(load_uint16(src)); }

// --- Float to float

SIMD_INLINE F64x2 widen(F32 x) {
  return {__builtin_convertvector(__builtin_shufflevector(x, x, 0, 1), F64),
          __builtin_convertvector(__builtin_shufflevector(x, x, 2, 3), F64)};
}
SIMD_INLINE F32 narrow(F64x2 x) {
  return __builtin_shufflevector(__builtin_convertvector(x.lo, F32h), __builtin_convertvector(x.hi, F32h), 0, 1, 2, 3);
}
inline constexpr bool has_fused_float32 = false;
// Rounded twice: the product is exact in float64, where the sum is rounded, and then to float32. That keeps the sum's
// sign and never makes it zero.
SIMD_INLINE F32 multiply_add(F32 x, F32 y, F32 z) {
  const F64x2 a = widen(x), b = widen(y), c = widen(z);
  return narrow({a.lo * b.lo + c.lo, a.hi * b.hi + c.hi});
}
SIMD_INLINE F32 multiply_subtract(F32 x, F32 y, F32 z) { return multiply_add(x, y, -z); }

// The method of FloatEncoder (encode/encode_float.hpp), with float16's infinity and payloads.
SIMD_INLINE U16h float16_codes(F32 x) {
  const I32 bits = as<I32>(x);
  const I32 magnitude = min(bits & INT32_MAX, splat(0x47800000));  // 65536 is already the code of infinity
  const I32 exponent = max(magnitude & 0x7f800000, splat(113 << 23));
  const I32 quantum = exponent + (13 << 23);
  const I32 rounded = as<I32>(as<F32>(magnitude) + as<F32>(quantum));
  const I32 number = rounded - quantum + (exponent >> 13) - (113 << 10);
  const I32 nan = ((bits >> 13) & 0x3ff) | 0x7e00;
  const I32 code = select(is_nan(x), nan, number) | ((bits >> 16) & 0x8000);
  const U16 codes = pack_u16(code, code);
  return __builtin_shufflevector(codes, codes, 0, 1, 2, 3);
}

// A power of two whose last bit is worth one makes the addition round to an integer.
template <Rounding word = Rounding::nearest_even, class Lanes>
SIMD_INLINE Lanes round_to_integer(Lanes x) {
  using Number = std::remove_cvref_t<decltype(x[0])>;
  using Bits = std::conditional_t<sizeof(Number) == 4, I32, I64>;
  constexpr auto power = static_cast<Number>(sizeof(Number) == 4 ? 0x1p23 : 0x1p52);
  const Bits sign = as<Bits>(x) & as<Bits>(splat(Number{-0.0}));
  const Lanes magnitude = as<Lanes>(as<Bits>(x) ^ sign);
  const Lanes rounded = as<Lanes>(as<Bits>((magnitude + power) - power) | sign);
  const Lanes nearest = select(magnitude < power, rounded, x);
  if constexpr (word == Rounding::toward_positive) return select(nearest < x, nearest + Number{1}, nearest);
  if constexpr (word == Rounding::toward_negative) return select(x < nearest, nearest - Number{1}, nearest);
  return nearest;
}

// --- Integer to float

template <bool is_signed>
SIMD_INLINE F32 to_f32(I32 x) {
  if constexpr (is_signed) return __builtin_convertvector(x, F32);
  return __builtin_convertvector(as<U32>(x), F32);
}
template <bool is_signed>
SIMD_INLINE F64x2 to_f64(I32 x) {
  const I64x2 wide = widen<is_signed>(x);
  return {to_f64<true>(wide.lo), to_f64<true>(wide.hi)};
}

// --- Float to integer

// INT32_MIN where out of range, and for NaN.
SIMD_INLINE I32 truncate(F32 x) {
  const Mask32 in_range = (x >= -0x1p31F) & (x < 0x1p31F);
  const I32 y = __builtin_convertvector(select(in_range, x, F32{}), I32);
  return select(in_range, y, splat(INT32_MIN));
}

SIMD_INLINE I32 truncate(F64x2 x) {
  const Mask64 lo = (x.lo > -0x1p31 - 1.0) & (x.lo < 0x1p31), hi = (x.hi > -0x1p31 - 1.0) & (x.hi < 0x1p31);
  const I64x2 y = {__builtin_convertvector(select(lo, x.lo, F64{}), I64),
                   __builtin_convertvector(select(hi, x.hi, F64{}), I64)};
  return select(low_u32({lo, hi}), low_u32(y), splat(INT32_MIN));
}

// Wraps by definition: shifts the significand to its place and drops the bits outside.
SIMD_INLINE std::uint64_t wrap_one(std::uint64_t significand, int shift, bool negative) {
  std::uint64_t magnitude = 0;
  if (shift >= 0 && shift < 64) magnitude = significand << shift;
  if (shift < 0 && shift > -64) magnitude = significand >> -shift;
  return negative ? 0 - magnitude : magnitude;
}
SIMD_INLINE I32 wrap_by_shift(F32 x) {
  U32 bits = as<U32>(x);
  for (int i = 0; i < kLanes; ++i) {
    const std::uint32_t b = bits[i];
    bits[i] = static_cast<std::uint32_t>(
        wrap_one((b & 0x7fffff) | 0x800000, static_cast<int>((b >> 23) & 0xff) - 150, b >> 31 != 0));
  }
  return as<I32>(bits);
}
SIMD_INLINE I64 wrap_by_shift(F64 x) {
  U64 bits = as<U64>(x);
  for (int i = 0; i < kLanes / 2; ++i) {
    const std::uint64_t b = bits[i];
    bits[i] =
        wrap_one((b & 0xfffffffffffff) | 0x10000000000000, static_cast<int>((b >> 52) & 0x7ff) - 1075, b >> 63 != 0);
  }
  return as<I64>(bits);
}

SIMD_INLINE I64x2 truncate_wrapped_64(F64x2 x) { return {wrap_by_shift(x.lo), wrap_by_shift(x.hi)}; }
SIMD_INLINE I64x2 truncate_wrapped_64(F32 x) { return truncate_wrapped_64(widen(x)); }
template <bool is_signed>
SIMD_INLINE I32 truncate_wrapped_32(F64x2 x) {
  return low_u32(truncate_wrapped_64(x));
}

// --- Packs to bytes and less

// Bit 7 of a byte is the sign of the lane.
SIMD_INLINE U8 pack_signs(const Block<I32>& x) {
  return pack_bytes(map(x, [](I32 lanes) { return as<I32>(as<U32>(lanes) >> 24); }));
}

SIMD_INLINE U8h pack_u4(U8 codes) {
  const U16 pairs = as<U16>(codes);
  const U8 packed = low_bytes(pairs | (pairs >> 4), pairs);
  return __builtin_shufflevector(packed, packed, 0, 1, 2, 3, 4, 5, 6, 7);
}

#if defined(__SSE2__)
SIMD_INLINE U64 multiply_low_halves(U64 x, U64 y) { return (U64)_mm_mul_epu32((__m128i)x, (__m128i)y); }
#else
SIMD_INLINE U64 multiply_low_halves(U64 x, U64 y) { return (x & 0xffffffff) * (y & 0xffffffff); }
#endif

// --- Bytes as indices: only loads

#define TENSORCAST_HAS_BYTE_LOOKUP 0
inline constexpr bool has_byte_permutes = false;

SIMD_INLINE I32 load_int8(const std::byte* src) {
  return I32{} + I32{(std::int8_t)src[0], (std::int8_t)src[1], (std::int8_t)src[2], (std::int8_t)src[3]};
}
SIMD_INLINE I32 load_uint8(const std::byte* src) { return load_int8(src) & 0xff; }
SIMD_INLINE F32 load_upper_float16(const std::byte* src) { return widen_float16(load_uint8(src) << 8); }

// --- Stores that bypass the cache, if the baseline has them

#if defined(__SSE2__)
SIMD_INLINE void stream_line(const std::byte* src, std::byte* dst) {
  const auto* const from = reinterpret_cast<const __m128i*>(src);
  auto* const to = reinterpret_cast<__m128i*>(dst);
  const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2),
                d = _mm_loadu_si128(from + 3);
  _mm_stream_si128(to, a);
  _mm_stream_si128(to + 1, b);
  _mm_stream_si128(to + 2, c);
  _mm_stream_si128(to + 3, d);
}
SIMD_INLINE void wait_for_streams() { _mm_sfence(); }
#else
SIMD_INLINE void stream_line(const std::byte* src, std::byte* dst) { __builtin_memcpy(dst, src, line_bytes); }
SIMD_INLINE void wait_for_streams() {}
#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
