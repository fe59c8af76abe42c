// SPDX-License-Identifier: Apache-2.0
// Conversions between 64-bit integers, float64 and float32 for instruction sets that lack them.
#pragma once

#include "kernels/simd/without_avx512.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// --- 64-bit integers to float64: each half is put below a power of two as its mantissa, then the two are added.
// Both halves are exact, so the addition is the only rounding.

template <bool is_signed>
SIMD_INLINE F64 to_f64(I64 x) {
  constexpr std::int64_t two_52 = 0x4330000000000000;
  constexpr std::int64_t two_84 = 0x4530000000000000;
  const I64 low = (x & 0xffffffff) | two_52;
  I64 high = as<I64>(as<U64>(x) >> 32);
  if constexpr (is_signed) high ^= 0x80000000;  // offset by 2^63, so that the half is not negative
  const double offset = is_signed ? 0x1p84 + 0x1p63 + 0x1p52 : 0x1p84 + 0x1p52;
  return (as<F64>(high | two_84) - offset) + as<F64>(low);
}

// --- float64 to float32, rounded to odd

// Counts the multiples of 2^-149 in a float64 below 2^-126, rounded to odd: the bits of a float32 subnormal without its
// sign.
SIMD_INLINE I64 odd_subnormal(F64 magnitude) {
  constexpr double magic = 0x1p-97;  // its last bit is worth 2^-149
  const F64 sum = magnitude + magic;
  const F64 nearest = sum - magic;
  I64 count = as<I64>(sum) & 0xfffffffffffff;
  count += nearest > magnitude;         // minus one if the sum was rounded up
  count |= (nearest != magnitude) & 1;  // inexact
  return count;
}

SIMD_INLINE F32 narrow_odd(F64x2 x) {
  const F32 normal = narrow({round_to_odd_24(x.lo), round_to_odd_24(x.hi)});
  const I64x2 bits = {as<I64>(x.lo), as<I64>(x.hi)};
  const F64x2 magnitude = {as<F64>(bits.lo & INT64_MAX), as<F64>(bits.hi & INT64_MAX)};
  const Mask32 subnormal = low_u32({magnitude.lo < 0x1p-126, magnitude.hi < 0x1p-126});
  const Mask32 zero = low_u32({magnitude.lo == 0.0, magnitude.hi == 0.0});
  if (!any(subnormal & ~zero)) [[likely]]
    return normal;
  const I32 sign = low_u32({bits.lo >> 32, bits.hi >> 32}) & INT32_MIN;
  const I32 count = low_u32({odd_subnormal(magnitude.lo), odd_subnormal(magnitude.hi)});
  return select(subnormal, as<F32>(count | sign), normal);
}

// --- 64-bit integers to fewer bits

// 0 if int32 holds the number.
template <bool is_signed>
SIMD_INLINE I32 beyond_low_u32(I32 low, I32 high) {
  return is_signed ? high ^ (low >> 31) : high | (low >> 31);
}

// Clamps to int32. Unsigned numbers have 31 bits.
template <bool is_signed>
SIMD_INLINE I32 clamped_to_int32(I64x2 x) {
  const I32 low = low_u32(x);
  const I32 high = high_u32(x);
  const I32 limit = is_signed ? (high >> 31) ^ INT32_MAX : splat(INT32_MAX);
  return select(equal(beyond_low_u32<is_signed>(low, high), I32{}), low, limit);
}
// Works in 32-bit lanes, of which a register has twice as many:
// 1. Takes all bits of small numbers, the bits from 11 on of middle ones, and the bits from 33 on of large ones. Sets
//    the last bit if any dropped bit is set. At least 10 bits are left.
// 2. Converts them to float32 and multiplies by the power of two of the first bit taken.
template <bool is_signed>
SIMD_INLINE F32 to_f32_odd(I64x2 x) {
  constexpr int few = 11, many = 33;
  const I32 low = low_u32(x);
  const I32 high = high_u32(x);
  const Mask32 is_small = equal(beyond_low_u32<is_signed>(low, high), I32{});
  if (is_signed && !any(~is_small)) [[likely]]  // not for unsigned numbers, which are often large
    return to_f32<true>(round_to_odd_24<true>(low));

  const I32 middle = as<I32>(as<U32>(low) >> few | as<U32>(high) << (32 - few));
  const I32 upper = is_signed ? high >> (many - 32) : as<I32>(as<U32>(high) >> (many - 32));
  const I32 beyond_middle =
      as<I32>(as<U32>(high) >> (few - 1)) ^ (is_signed ? as<I32>(as<U32>(high >> 31) >> (few - 1)) : I32{});
  const Mask32 is_middle = equal(beyond_middle, I32{});
  const I32 kept = select(is_middle, middle, upper);
  const I32 cut = select(is_middle, low & ((1 << few) - 1), low | (high & 1));
  const I32 odd = kept | as<I32>(min(as<U32>(cut), U32{} + 1));

  const F32 number = to_f32<true>(round_to_odd_24<true>(select(is_small, low, odd)));
  const I32 exponent = select(is_middle, splat(few << 23), splat(many << 23));
  return as<F32>(as<I32>(number) + (exponent & ~is_small));
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
