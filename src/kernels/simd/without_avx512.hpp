// What targets without AVX-512 share: masks that are vectors, and 64-bit conversions that they have no instruction for.
#pragma once

#include "kernels/simd/vectors.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// --- Masks: all ones or all zeros in a lane

using Mask32 = I32;
using Mask64 = I64;

SIMD_INLINE Mask32 equal(I32 a, I32 b) { return a == b; }
SIMD_INLINE Mask64 equal(I64 a, I64 b) { return a == b; }
SIMD_INLINE Mask32 greater(I32 a, I32 b) { return a > b; }
SIMD_INLINE Mask32 greater(U32 a, U32 b) { return a > b; }
SIMD_INLINE Mask32 greater_equal(F32 a, F32 b) { return a >= b; }
SIMD_INLINE Mask64 greater_equal(F64 a, F64 b) { return a >= b; }
SIMD_INLINE Mask32 is_nan(F32 x) { return (as<I32>(x) & INT32_MAX) > 0x7f800000; }
SIMD_INLINE Mask32 both(Mask32 a, Mask32 b) { return a & b; }
SIMD_INLINE Mask32 either(Mask32 a, Mask32 b) { return a | b; }
SIMD_INLINE Mask32 mask_if(bool condition) { return splat(condition ? -1 : 0); }

SIMD_INLINE I32 select(Mask32 mask, I32 yes, I32 no) { return mask ? yes : no; }
SIMD_INLINE F32 select(Mask32 mask, F32 yes, F32 no) { return mask ? yes : no; }
SIMD_INLINE I64 select(Mask64 mask, I64 yes, I64 no) { return mask ? yes : no; }
SIMD_INLINE F64 select(Mask64 mask, F64 yes, F64 no) { return mask ? yes : no; }

// --- Minimum and maximum; of floats, `x` where it is NaN

SIMD_INLINE I32 min(I32 a, I32 b) { return a < b ? a : b; }
SIMD_INLINE I32 max(I32 a, I32 b) { return a > b ? a : b; }
SIMD_INLINE U32 min(U32 a, U32 b) { return a < b ? a : b; }
SIMD_INLINE U32 max(U32 a, U32 b) { return a > b ? a : b; }
SIMD_INLINE I16 min(I16 a, I16 b) { return a < b ? a : b; }
SIMD_INLINE I16 max(I16 a, I16 b) { return a > b ? a : b; }
SIMD_INLINE I8 min(I8 a, I8 b) { return a < b ? a : b; }
SIMD_INLINE I8 max(I8 a, I8 b) { return a > b ? a : b; }
SIMD_INLINE U8 min(U8 a, U8 b) { return a < b ? a : b; }
SIMD_INLINE F32 clamp(F32 x, F32 low, F32 high) {
  const F32 raised = low > x ? low : x;
  return high < raised ? high : raised;
}
SIMD_INLINE F64 clamp(F64 x, F64 low, F64 high) {
  const F64 raised = low > x ? low : x;
  return high < raised ? high : raised;
}

// --- Words

SIMD_INLINE U16 count_greater(U16 sum, I16 a, I16 b) { return sum - as<U16>(a > b); }

// --- Less than a block

// Fills `dst` up to its capacity, behind `bytes` with zeros.
template <std::size_t capacity>
SIMD_INLINE void copy_and_pad(std::byte* dst, const std::byte* src, std::size_t bytes) {
  __builtin_memset(dst, 0, capacity);
  __builtin_memcpy(dst, src, bytes);
}
template <std::size_t capacity>
SIMD_INLINE void copy_front(std::byte* dst, const std::byte* src, std::size_t bytes) {
  __builtin_memcpy(dst, src, bytes);
}

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

// The same value where float64 holds it exactly, otherwise one with 11 low bits cleared and the last bit left set:
// rounded to odd, so that a later rounding to fewer bits gives what rounding `x` itself would.
template <bool is_signed>
SIMD_INLINE I64 odd_in_53_bits(I64 x) {
  constexpr std::int64_t low = 0x7ff;
  const I64 odd = (x | ((x & low) + low)) & ~low;  // carries into bit 11 if any lower bit is set
  const I64 magnitude = is_signed ? x ^ (x >> 63) : x;
  return select(equal(as<I64>(as<U64>(magnitude) >> 53), I64{}), x, odd);
}

// --- float64 to float32, rounded to odd

F32 narrow(F64x2 x);
I32 low_words(I64x2 x);
I32 high_words(I64x2 x);
bool any(Mask32 mask);
template <bool is_signed>
F32 to_f32(I32 x);

// Multiples of 2^-149 in a float64 below 2^-126, rounded to odd: the bits of a float32 subnormal, without its sign.
SIMD_INLINE I64 odd_subnormal(F64 magnitude) {
  constexpr double magic = 0x1p-97;  // its last bit is worth 2^-149
  const F64 sum = magnitude + magic;
  const F64 nearest = sum - magic;
  I64 count = as<I64>(sum) & 0xfffffffffffff;
  count += nearest > magnitude;         // minus one where the sum was rounded up
  count |= (nearest != magnitude) & 1;  // something was cut off
  return count;
}

SIMD_INLINE F32 narrow_odd(F64x2 x) {
  const F32 normal = narrow({odd_in_24_bits(x.lo), odd_in_24_bits(x.hi)});
  const I64x2 bits = {as<I64>(x.lo), as<I64>(x.hi)};
  const F64x2 magnitude = {as<F64>(bits.lo & INT64_MAX), as<F64>(bits.hi & INT64_MAX)};
  const Mask32 subnormal = low_words({magnitude.lo < 0x1p-126, magnitude.hi < 0x1p-126});
  const Mask32 zero = low_words({magnitude.lo == 0.0, magnitude.hi == 0.0});
  if (!any(subnormal & ~zero)) [[likely]]
    return normal;
  const I32 sign = low_words({bits.lo >> 32, bits.hi >> 32}) & INT32_MIN;
  const I32 count = low_words({odd_subnormal(magnitude.lo), odd_subnormal(magnitude.hi)});
  return select(subnormal, as<F32>(count | sign), normal);
}

// --- Products rounded to odd

F32 multiply_subtract(F32 x, F32 y, F32 z);
F64 multiply_subtract(F64 x, F64 y, F64 z);

// 1. The nearest product, and what is missing from it to the exact one.
// 2. If that has the other sign, the exact product is nearer to zero, and so is the next number: one less as bits. For
//    infinity where the exact product is finite, that is the largest number.
// 3. If something is missing, the last bit is set.
template <class Bits, class Floats>
SIMD_INLINE Floats multiply_odd(Floats x, Floats y) {
  const Floats product = x * y;
  const Floats missing = multiply_subtract(x, y, product);
  const Bits bits = as<Bits>(product);
  const Bits inexact = as<Bits>((missing < 0) | (missing > 0));
  return as<Floats>((bits + (inexact & ((bits ^ as<Bits>(missing)) < 0))) | (inexact & 1));
}
SIMD_INLINE F32 multiply_odd(F32 x, F32 y) { return multiply_odd<I32>(x, y); }
SIMD_INLINE F64 multiply_odd(F64 x, F64 y) { return multiply_odd<I64>(x, y); }

// --- 64-bit integers to float32

template <bool is_signed>
SIMD_INLINE F64x2 to_f64_odd(I64x2 x) {
  return {to_f64<is_signed>(odd_in_53_bits<is_signed>(x.lo)), to_f64<is_signed>(odd_in_53_bits<is_signed>(x.hi))};
}
template <bool is_signed>
SIMD_INLINE F32 to_f32(I64x2 x) {
  return narrow(to_f64_odd<is_signed>(x));
}
// 0 where all of a number is in the low word, as int32.
template <bool is_signed>
SIMD_INLINE I32 beyond_low_word(I32 low, I32 high) {
  return is_signed ? high ^ (low >> 31) : high | (low >> 31);
}

// As far as 31 bits go.
template <bool is_signed>
SIMD_INLINE I32 saturated_words(I64x2 x) {
  const I32 low = low_words(x);
  const I32 high = high_words(x);
  const I32 limit = is_signed ? (high >> 31) ^ INT32_MAX : splat(INT32_MAX);
  return select(equal(beyond_low_word<is_signed>(low, high), I32{}), low, limit);
}
// Where 2^31 and all beyond are the same to the target.
template <bool is_signed>
SIMD_INLINE F32 to_f32_clamped(I64x2 x) {
  return to_f32<true>(saturated_words<is_signed>(x));
}
// A bit is cleared where the one two places above is set, so that no rounding carries into the first two of a positive
// number. Negative numbers stay so.
template <class Lanes>
SIMD_INLINE Lanes without_carry(Lanes x) {
  return x & ~(x >> 2);
}
template <bool is_signed>
SIMD_INLINE F32 to_f32_leading(I32 x) {
  return to_f32<is_signed>(as<I32>(without_carry(as<U32>(x))));
}
template <bool is_signed>
SIMD_INLINE F32 to_f32_leading(I64x2 x) {
  return narrow({to_f64<is_signed>(as<I64>(without_carry(as<U64>(x.lo)))),
                 to_f64<is_signed>(as<I64>(without_carry(as<U64>(x.hi))))});
}
// In lanes of 32 bits, of which a register has twice as many:
// 1. All bits of small numbers; of others those from bit 11 on, or of large ones from bit 33 on, and the last one set
//    if something was cut off. At least 10 bits are left.
// 2. As float32, times the power of two that was cut off.
template <bool is_signed>
SIMD_INLINE F32 to_f32_odd(I64x2 x) {
  constexpr int few = 11, many = 33;
  const I32 low = low_words(x);
  const I32 high = high_words(x);
  const Mask32 is_small = equal(beyond_low_word<is_signed>(low, high), I32{});
  if (is_signed && !any(~is_small)) [[likely]]  // unsigned numbers may as well be negative ones
    return to_f32<true>(odd_in_24_bits<true>(low));

  const I32 middle = as<I32>(as<U32>(low) >> few | as<U32>(high) << (32 - few));
  const I32 upper = is_signed ? high >> (many - 32) : as<I32>(as<U32>(high) >> (many - 32));
  const I32 beyond_middle =
      as<I32>(as<U32>(high) >> (few - 1)) ^ (is_signed ? as<I32>(as<U32>(high >> 31) >> (few - 1)) : I32{});
  const Mask32 is_middle = equal(beyond_middle, I32{});
  const I32 kept = select(is_middle, middle, upper);
  const I32 cut = select(is_middle, low & ((1 << few) - 1), low | (high & 1));
  const I32 odd = kept | as<I32>(min(as<U32>(cut), U32{} + 1));

  const F32 number = to_f32<true>(odd_in_24_bits<true>(select(is_small, low, odd)));
  const I32 exponent = select(is_middle, splat(few << 23), splat(many << 23));
  return as<F32>(as<I32>(number) + (exponent & ~is_small));
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
