// SPDX-License-Identifier: Apache-2.0
// The part that instruction sets without AVX-512 share: masks are vectors.
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
SIMD_INLINE Mask32 less(F32 a, F32 b) { return a < b; }
SIMD_INLINE Mask64 less(F64 a, F64 b) { return a < b; }
SIMD_INLINE Mask32 not_equal(F32 a, F32 b) { return a != b; }
SIMD_INLINE Mask64 not_equal(F64 a, F64 b) { return a != b; }
SIMD_INLINE Mask32 mask_or(Mask32 a, Mask32 b) { return a | b; }
SIMD_INLINE Mask64 mask_or(Mask64 a, Mask64 b) { return a | b; }
SIMD_INLINE Mask32 mask_and(Mask32 a, Mask32 b) { return a & b; }
SIMD_INLINE Mask64 mask_and(Mask64 a, Mask64 b) { return a & b; }
SIMD_INLINE Mask32 mask_and_not(Mask32 a, Mask32 b) { return a & ~b; }
SIMD_INLINE Mask64 mask_and_not(Mask64 a, Mask64 b) { return a & ~b; }
bool any(Mask32 mask);
SIMD_INLINE bool any_of(Mask32 mask) { return any(mask); }
SIMD_INLINE bool any_of(Mask64 mask) { return any(as<Mask32>(mask)); }
SIMD_INLINE bool all_of(Mask32 mask) { return !any(~mask); }
SIMD_INLINE bool all_of(Mask64 mask) { return !any(as<Mask32>(~mask)); }
SIMD_INLINE I32 count_where(I32 counts, Mask32 mask) { return counts - mask; }
SIMD_INLINE I64 count_where(I64 counts, Mask64 mask) { return counts - mask; }
SIMD_INLINE F64 load_widened(const std::byte* src) { return __builtin_convertvector(load<F32h>(src), F64); }
SIMD_INLINE Mask32 mask_if(bool condition) { return splat(condition ? -1 : 0); }

SIMD_INLINE I32 select(Mask32 mask, I32 yes, I32 no) { return mask ? yes : no; }
SIMD_INLINE F32 select(Mask32 mask, F32 yes, F32 no) { return mask ? yes : no; }
SIMD_INLINE I64 select(Mask64 mask, I64 yes, I64 no) { return mask ? yes : no; }
SIMD_INLINE F64 select(Mask64 mask, F64 yes, F64 no) { return mask ? yes : no; }

// --- Minimum and maximum; clamp(NaN) is NaN

SIMD_INLINE I32 min(I32 a, I32 b) { return a < b ? a : b; }
SIMD_INLINE I32 max(I32 a, I32 b) { return a > b ? a : b; }
SIMD_INLINE U32 min(U32 a, U32 b) { return a < b ? a : b; }
SIMD_INLINE U32 max(U32 a, U32 b) { return a > b ? a : b; }
SIMD_INLINE I16 min(I16 a, I16 b) { return a < b ? a : b; }
SIMD_INLINE I16 max(I16 a, I16 b) { return a > b ? a : b; }
SIMD_INLINE I8 min(I8 a, I8 b) { return a < b ? a : b; }
SIMD_INLINE I8 max(I8 a, I8 b) { return a > b ? a : b; }
SIMD_INLINE U8 min(U8 a, U8 b) { return a < b ? a : b; }
SIMD_INLINE F64 max(F64 a, F64 b) { return a > b ? a : b; }
SIMD_INLINE F32 clamp(F32 x, F32 low, F32 high) {
  const F32 raised = low > x ? low : x;
  return high < raised ? high : raised;
}
SIMD_INLINE F64 clamp(F64 x, F64 low, F64 high) {
  const F64 raised = low > x ? low : x;
  return high < raised ? high : raised;
}

// --- 16-bit lanes

SIMD_INLINE U16 count_greater(U16 sum, I16 a, I16 b) { return sum - as<U16>(a > b); }

// --- Less than a block

// Copies `bytes` and fills the rest of `dst` with zeros.
template <std::size_t capacity>
SIMD_INLINE void copy_and_pad(std::byte* dst, const std::byte* src, std::size_t bytes) {
  __builtin_memset(dst, 0, capacity);
  __builtin_memcpy(dst, src, bytes);
}
template <std::size_t capacity>
SIMD_INLINE void copy_front(std::byte* dst, const std::byte* src, std::size_t bytes) {
  __builtin_memcpy(dst, src, bytes);
}

// --- Rounding

#define TENSORCAST_HAS_OWN_ROUNDING 0
SIMD_INLINE F32 add_nearest(F32 a, F32 b) { return a + b; }

// --- 64-bit integers

F32 narrow(F64x2 x);
I32 low_u32(I64x2 x);
I32 high_u32(I64x2 x);
bool any(Mask32 mask);
template <bool is_signed>
F32 to_f32(I32 x);
template <bool is_signed>
F64 to_f64(I64 x);
template <bool is_signed>
I32 clamped_to_int32(I64x2 x);

// Returns `x` if float64 holds it; else rounds it to odd: clears its 11 low bits and sets the bit above them. A later
// rounding to fewer bits has the same result as rounding `x` once.
template <bool is_signed>
SIMD_INLINE I64 round_to_odd_53(I64 x) {
  constexpr std::int64_t low = 0x7ff;
  const I64 odd = (x | ((x & low) + low)) & ~low;  // carries into bit 11 if any lower bit is set
  const I64 magnitude = is_signed ? x ^ (x >> 63) : x;
  return select(equal(as<I64>(as<U64>(magnitude) >> 53), I64{}), x, odd);
}

// --- Products rounded to odd

F32 multiply_subtract(F32 x, F32 y, F32 z);
F64 multiply_subtract(F64 x, F64 y, F64 z);

// 1. Computes the nearest product and its error, the exact product less the nearest one.
// 2. If the error has the other sign, takes the next number toward zero: one less as bits. From infinity, if the exact
//    product is finite, that is the largest number.
// 3. Sets the last bit if the error is not zero.
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

template <bool is_signed>
SIMD_INLINE F64x2 to_f64_odd(I64x2 x) {
  return {to_f64<is_signed>(round_to_odd_53<is_signed>(x.lo)), to_f64<is_signed>(round_to_odd_53<is_signed>(x.hi))};
}
template <bool is_signed>
SIMD_INLINE F32 to_f32(I64x2 x) {
  return narrow(to_f64_odd<is_signed>(x));
}
// For targets to which all numbers from 2^31 on are the same.
template <bool is_signed>
SIMD_INLINE F32 to_f32_clamped(I64x2 x) {
  return to_f32<true>(clamped_to_int32<is_signed>(x));
}
// Clears each bit whose neighbour two places above is set, so that no rounding carries into the first two bits of a
// positive number. Negative numbers stay negative.
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

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
