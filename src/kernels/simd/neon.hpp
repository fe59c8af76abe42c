// SPDX-License-Identifier: Apache-2.0
// The vocabulary of simd.hpp for AArch64's Advanced SIMD (NEON).
#pragma once

#include <arm_neon.h>

#define TENSORCAST_REGISTER_BYTES 16
#include "kernels/simd/sixteen_bytes.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

SIMD_INLINE bool any(Mask32 mask) { return vmaxvq_u32((uint32x4_t)mask) != 0; }
SIMD_INLINE bool any_64(Mask64 mask) { return any(as<Mask32>(mask)); }

inline constexpr bool has_fused_float32 = true;
// x * y + z and x * y - z, rounded once.
SIMD_INLINE F32 multiply_add(F32 x, F32 y, F32 z) {
  return (F32)vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y);
}
SIMD_INLINE F32 multiply_subtract(F32 x, F32 y, F32 z) { return multiply_add(x, y, -z); }
SIMD_INLINE F64 multiply_add(F64 x, F64 y, F64 z) {
  return (F64)vfmaq_f64((float64x2_t)z, (float64x2_t)x, (float64x2_t)y);
}
SIMD_INLINE F64 multiply_subtract(F64 x, F64 y, F64 z) { return multiply_add(x, y, -z); }

SIMD_INLINE F64 add_square(F64 sum, F64 x) { return multiply_add(x, x, sum); }

// --- 16-bit lanes

inline constexpr bool has_u16_shifts = true;
SIMD_INLINE U16 min(U16 a, U16 b) { return (U16)vminq_u16((uint16x8_t)a, (uint16x8_t)b); }
SIMD_INLINE U16 max(U16 a, U16 b) { return (U16)vmaxq_u16((uint16x8_t)a, (uint16x8_t)b); }
SIMD_INLINE U16 subtract_to_zero(U16 a, U16 b) { return (U16)vqsubq_u16((uint16x8_t)a, (uint16x8_t)b); }
SIMD_INLINE bool any_greater(I16 a, I16 b) { return any(as<Mask32>(a > b)); }
// A shift to the left by a negative count, which is read from the low byte of a lane.
SIMD_INLINE U16 shift_right_each(U16 x, U16 bits) {
  return (U16)vshlq_u16((uint16x8_t)x, (int16x8_t)(0 - min(bits, splat(std::uint16_t{16}))));
}
// --- Halves

SIMD_INLINE I32 low_u32(I64x2 x) { return (I32)vuzp1q_s32((int32x4_t)x.lo, (int32x4_t)x.hi); }
SIMD_INLINE I32 high_u32(I64x2 x) { return (I32)vuzp2q_s32((int32x4_t)x.lo, (int32x4_t)x.hi); }

// --- Loads of one unit

SIMD_INLINE F32 load_float16(const std::byte* src) { return (F32)vcvt_f32_f16((float16x4_t)load<U16h>(src)); }
SIMD_INLINE I32 load_int16(const std::byte* src) { return (I32)vmovl_s16((int16x4_t)load<U16h>(src)); }
SIMD_INLINE I32 load_uint16(const std::byte* src) { return (I32)vmovl_u16((uint16x4_t)load<U16h>(src)); }

// --- Float to float

SIMD_INLINE U16h float16_codes(F32 x) { return (U16h)vcvt_f16_f32((float32x4_t)x); }
SIMD_INLINE F64x2 widen(F32 x) {
  return {(F64)vcvt_f64_f32(vget_low_f32((float32x4_t)x)), (F64)vcvt_high_f64_f32((float32x4_t)x)};
}
SIMD_INLINE F32 narrow(F64x2 x) { return (F32)vcvt_high_f32_f64(vcvt_f32_f64((float64x2_t)x.lo), (float64x2_t)x.hi); }
SIMD_INLINE F32 narrow_odd(F64x2 x) {
  return (F32)vcvtx_high_f32_f64(vcvtx_f32_f64((float64x2_t)x.lo), (float64x2_t)x.hi);
}
template <Rounding word = Rounding::nearest_even>
SIMD_INLINE F32 round_to_integer(F32 x) {
  if constexpr (word == Rounding::toward_positive) return (F32)vrndpq_f32((float32x4_t)x);
  if constexpr (word == Rounding::toward_negative) return (F32)vrndmq_f32((float32x4_t)x);
  return (F32)vrndnq_f32((float32x4_t)x);
}
template <Rounding word = Rounding::nearest_even>
SIMD_INLINE F64 round_to_integer(F64 x) {
  if constexpr (word == Rounding::toward_positive) return (F64)vrndpq_f64((float64x2_t)x);
  if constexpr (word == Rounding::toward_negative) return (F64)vrndmq_f64((float64x2_t)x);
  return (F64)vrndnq_f64((float64x2_t)x);
}

// --- Integer to integer

template <bool is_signed>
SIMD_INLINE I64x2 widen(I32 x) {
  if constexpr (is_signed) return {(I64)vmovl_s32(vget_low_s32((int32x4_t)x)), (I64)vmovl_high_s32((int32x4_t)x)};
  return {(I64)vmovl_u32(vget_low_u32((uint32x4_t)x)), (I64)vmovl_high_u32((uint32x4_t)x)};
}
template <bool is_signed>
SIMD_INLINE I32 clamped_to_int32(I64x2 x) {
  if constexpr (is_signed) return (I32)vqmovn_high_s64(vqmovn_s64((int64x2_t)x.lo), (int64x2_t)x.hi);
  const U32 words = (U32)vqmovn_high_u64(vqmovn_u64((uint64x2_t)x.lo), (uint64x2_t)x.hi);
  return as<I32>(min(words, U32{} + INT32_MAX));
}

// --- Integer to float

template <bool is_signed>
SIMD_INLINE F32 to_f32(I32 x) {
  return (F32)(is_signed ? vcvtq_f32_s32((int32x4_t)x) : vcvtq_f32_u32((uint32x4_t)x));
}
template <bool is_signed>
SIMD_INLINE F64 to_f64(I64 x) {
  return (F64)(is_signed ? vcvtq_f64_s64((int64x2_t)x) : vcvtq_f64_u64((uint64x2_t)x));
}
template <bool is_signed>
SIMD_INLINE F64x2 to_f64(I32 x) {
  const I64x2 wide = widen<is_signed>(x);
  return {to_f64<true>(wide.lo), to_f64<true>(wide.hi)};
}
template <bool is_signed>
SIMD_INLINE F32 to_f32_odd(I64x2 x) {
  return narrow_odd(to_f64_odd<is_signed>(x));
}

// --- Float to integer. The CPU saturates, and makes 0 of NaN.

SIMD_INLINE I32 truncate(F32 x) {
  const Mask32 in_range = (Mask32)vcaltq_f32((float32x4_t)x, (float32x4_t)splat(0x1p31F));
  return select(in_range, (I32)vcvtq_s32_f32((float32x4_t)x), splat(INT32_MIN));
}
SIMD_INLINE Mask64 is_below(F64 x, double limit) {  // its magnitude
  return (Mask64)vcaltq_f64((float64x2_t)x, (float64x2_t)splat(limit));
}
SIMD_INLINE I64x2 truncate_saturated_64(F64x2 x) {
  return {(I64)vcvtq_s64_f64((float64x2_t)x.lo), (I64)vcvtq_s64_f64((float64x2_t)x.hi)};
}
SIMD_INLINE I32 truncate(F64x2 x) {
  const Mask32 in_range = low_u32({is_below(x.lo, 0x1p31), is_below(x.hi, 0x1p31)});
  return select(in_range, low_u32(truncate_saturated_64(x)), splat(INT32_MIN));
}

// Wraps by definition, with shifts to the left by the low byte of a lane; negative counts shift to the right. A shift
// by more than the lane's width gives 0, so infinities and NaN give 0.
SIMD_INLINE I32 wrap_by_shift(F32 x) {
  const I32 bits = as<I32>(x);
  const I32 shift = max(((bits >> 23) & 0xff) - 150, splat(-32));
  const uint32x4_t significand = (uint32x4_t)((bits & 0x7fffff) | 0x800000);
  return negated_where(bits >> 31, (I32)vshlq_u32(significand, (int32x4_t)shift));
}
SIMD_INLINE I64 wrap_by_shift(F64 x) {
  const I64 bits = as<I64>(x);
  const I64 exponent = ((bits >> 52) & 0x7ff) - 1075;
  const I64 low = splat(std::int64_t{-64}), high = splat(std::int64_t{64});
  const I64 shift = exponent < low ? low : exponent > high ? high : exponent;
  const uint64x2_t significand = (uint64x2_t)((bits & 0xfffffffffffff) | 0x10000000000000);
  return negated_where(bits >> 63, (I64)vshlq_u64(significand, (int64x2_t)shift));
}

SIMD_INLINE I64x2 truncate_wrapped_64(F64x2 x) {
  if (!any_64(~(is_below(x.lo, 0x1p63) & is_below(x.hi, 0x1p63)))) [[likely]]
    return truncate_saturated_64(x);
  return {wrap_by_shift(x.lo), wrap_by_shift(x.hi)};
}
SIMD_INLINE I64x2 truncate_wrapped_64(F32 x) { return truncate_wrapped_64(widen(x)); }
template <bool is_signed>
SIMD_INLINE I32 truncate_wrapped_32(F64x2 x) {
  return low_u32(truncate_wrapped_64(x));
}

// --- Packs

SIMD_INLINE U16 pack_u16(I32 a, I32 b) { return (U16)vuzp1q_u16((uint16x8_t)a, (uint16x8_t)b); }
SIMD_INLINE U16 pack_high_u16(I32 a, I32 b) { return (U16)vuzp2q_u16((uint16x8_t)a, (uint16x8_t)b); }
SIMD_INLINE U8 pack_low_bytes(U16x2 x) { return (U8)vuzp1q_u8((uint8x16_t)x.lo, (uint8x16_t)x.hi); }
SIMD_INLINE U8 pack_high_bytes(U16x2 x) { return (U8)vuzp2q_u8((uint8x16_t)x.lo, (uint8x16_t)x.hi); }
SIMD_INLINE U8 pack_bytes(const Block<I32>& x) { return pack_low_bytes({pack_u16(x.a, x.b), pack_u16(x.c, x.d)}); }
// Bit 7 of a byte is the sign of the lane.
SIMD_INLINE U8 pack_signs(const Block<I32>& x) {
  return pack_high_bytes({pack_high_u16(x.a, x.b), pack_high_u16(x.c, x.d)});
}

template <bool is_signed>
SIMD_INLINE U16 pack_saturated(I32 a, I32 b) {
  const int32x4_t lo = (int32x4_t)a, hi = (int32x4_t)b;
  if constexpr (is_signed) return (U16)vqmovn_high_s32(vqmovn_s32(lo), hi);
  return (U16)vqmovun_high_s32(vqmovun_s32(lo), hi);
}
template <bool is_signed>
SIMD_INLINE U8 pack_bytes_saturated(const Block<I32>& x) {
  const int16x8_t lo = (int16x8_t)pack_saturated<true>(x.a, x.b), hi = (int16x8_t)pack_saturated<true>(x.c, x.d);
  if constexpr (is_signed) return (U8)vqmovn_high_s16(vqmovn_s16(lo), hi);
  return (U8)vqmovun_high_s16(vqmovun_s16(lo), hi);
}

SIMD_INLINE U8h pack_u4(U8 codes) {
  const U16 pairs = as<U16>(codes);
  return (U8h)vmovn_u16((uint16x8_t)(pairs | (pairs >> 4)));
}

SIMD_INLINE U64 multiply_low_halves(U64 x, U64 y) {
  return (U64)vmull_u32(vmovn_u64((uint64x2_t)x), vmovn_u64((uint64x2_t)y));
}

// --- Bytes as indices

#define TENSORCAST_HAS_BYTE_LOOKUP 1
inline constexpr bool has_byte_permutes = true;

SIMD_INLINE uint8x8_t load_four_bytes(const std::byte* src) {
  std::uint32_t bytes;
  __builtin_memcpy(&bytes, src, sizeof bytes);
  return vcreate_u8(bytes);
}
SIMD_INLINE I32 load_int8(const std::byte* src) {
  return (I32)vmovl_s16(vget_low_s16(vmovl_s8((int8x8_t)load_four_bytes(src))));
}
SIMD_INLINE I32 load_uint8(const std::byte* src) {
  return (I32)vmovl_u16(vget_low_u16(vmovl_u8(load_four_bytes(src))));
}
SIMD_INLINE F32 load_upper_float16(const std::byte* src) {
  return (F32)vcvt_f32_f16((float16x4_t)vshl_n_u16(vget_low_u16(vmovl_u8(load_four_bytes(src))), 8));
}
SIMD_INLINE U16 load_bytes_as_u16(const std::byte* src) { return (U16)vmovl_u8((uint8x8_t)load<U8h>(src)); }

struct Table16 {
  uint8x16_t entries;

  SIMD_INLINE explicit Table16(const std::byte* bytes) : entries((uint8x16_t)load<U8>(bytes)) {}
  SIMD_INLINE U8 operator()(U8 index) const { return (U8)vqtbl1q_u8(entries, (uint8x16_t)index); }
};

// A lookup in a quarter keeps the bytes whose index is 64 or more.
struct Table256 {
  uint8x16x4_t quarters[4];

  SIMD_INLINE explicit Table256(const std::byte* bytes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) quarters[i] = vld1q_u8_x4(reinterpret_cast<const std::uint8_t*>(bytes) + i * 64);
  }
  SIMD_INLINE U8 operator()(U8 index) const {
    uint8x16_t found = vqtbl4q_u8(quarters[0], (uint8x16_t)index);
#pragma GCC unroll 3
    for (int i = 1; i < 4; ++i) found = vqtbx4q_u8(found, quarters[i], (uint8x16_t)(index - std::uint8_t(i * 64)));
    return (U8)found;
  }
};

using NibbleTable256 = Table256;

// Merges the low or high units of two registers.
template <int unit_bytes>
SIMD_INLINE U8 interleave_low(U8 a, U8 b) {
  if constexpr (unit_bytes == 1) return (U8)vzip1q_u8((uint8x16_t)a, (uint8x16_t)b);
  if constexpr (unit_bytes == 2) return (U8)vzip1q_u16((uint16x8_t)a, (uint16x8_t)b);
  if constexpr (unit_bytes == 4) return (U8)vzip1q_u32((uint32x4_t)a, (uint32x4_t)b);
}
template <int unit_bytes>
SIMD_INLINE U8 interleave_high(U8 a, U8 b) {
  if constexpr (unit_bytes == 1) return (U8)vzip2q_u8((uint8x16_t)a, (uint8x16_t)b);
  if constexpr (unit_bytes == 2) return (U8)vzip2q_u16((uint16x8_t)a, (uint16x8_t)b);
  if constexpr (unit_bytes == 4) return (U8)vzip2q_u32((uint32x4_t)a, (uint32x4_t)b);
}
template <int registers>
SIMD_INLINE U8 order_for_interleaving(U8 bytes) {
  return bytes;
}

// --- Ordinary stores: those that may bypass the cache are a hint that CPUs treat in their own ways

SIMD_INLINE void stream_line(const std::byte* src, std::byte* dst) { __builtin_memcpy(dst, src, line_bytes); }
SIMD_INLINE void wait_for_streams() {}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
