// How a block of products is made; multiply.hpp says what they are good for.
//
// Rounding to odd (p is the product to nearest, r what is missing from it to the exact product):
//   r = 0: p. Else, if p is odd, p; else the neighbour of p on the side of r, which is odd.
// So only whether r is zero, and its sign, matter. Three ways to them:
// 1. Of numbers that float32 holds. A scale of up to 24 bits: p is the nearest float32, r one fused operation. Else the
//    scale is high + low + lowest (multiply.hpp):
//      q = x * low         rounded
//      p = x * high + q    rounded; less than a last place off, as q has the sign of the rest, and nearly its size
//      f = x * high - p    exact: a multiple of the last places of x and `high`, of which it has fewer than 2^24
//      u = x * low + f     rounded
//      r = x * lowest + u  rounded
//    If u is exact, r has the right sign, and is zero only where it should be. If not, u has more than 24 bits down to
//    the last place of x * low, and is larger than x * lowest, which is below half of that place: u decides the sign.
//    All this needs |p| >= 2^-70, so that nothing underflows, or a target that sees zero anyway.
// 2. Of numbers that float64 holds, to float32: p is the nearest float64 rounded to float32, which is off by less than
//    a last place. r = x * scale - p by one fused operation.
// 3. The same of numbers that float64 holds, to float64 (multiply_odd).
// 64-bit integers are h + l, both float64: see product_of_parts.
// Integers of 32 bits and more whose products need not be rounded to odd everywhere: multiply_near.hpp.
#pragma once

#include <bit>
#include <cmath>

#include "kernels/multiply.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/wide/encode_float.hpp"
#include "kernels/wide/multiply_lanes.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

template <DType from>
inline constexpr bool is_wide_integer = !is_float<from> && bits_of<from> == 64;

// `inexact` lanes of the nearest product step to odd; only the sign of `missing` counts.
SIMD_INLINE F32 step_to_odd(F32 nearest, I32 missing, Mask32 inexact) {
  const I32 bits = as<I32>(nearest);
  return as<F32>(select(inexact, (bits + ((bits ^ missing) >> 31)) | 1, bits));
}

// --- Numbers that float32 holds: of wider integers those below 2^24, as the factor's `first` says

template <DType from>
SIMD_INLINE F32 load_float32(const std::byte* src) {
  if constexpr (is_float<from>) {
    return load_unit<from>(src);
  } else if constexpr (bits_of<from> == 16) {
    return to_f32<true>(load_unit<from>(src));  // the lanes are wider than the source
  } else {
    return to_f32<is_signed_type<from>>(load_unit<from>(src));
  }
}

// By way of float64, which needs no care about underflow.
template <bool to_odd>
[[gnu::noinline]] F32 product_by_float64(F32 x, double scale) {
  const F64x2 wide = widen(x);
  const F64x2 product = {multiply_odd(wide.lo, splat(scale)), multiply_odd(wide.hi, splat(scale))};
  return to_odd ? narrow_odd(product) : narrow(product);
}

template <DType from, ProductRounding rounding, bool has_low, bool is_limited>
class Float32Products {
 public:
  using Unit = F32;

  explicit Float32Products(const Factor& factor)
      : high_(splat(factor.high)),
        low_(splat(factor.low)),
        lowest_(splat(factor.lowest)),
        more_(splat(factor.low * (1.0F + 0x1p-21F))),
        less_(splat(factor.low * (1.0F - 0x1p-21F))),
        first_(splat(static_cast<std::int32_t>(factor.first))),
        special_(as<U32>(splat(static_cast<std::int32_t>(factor.special)))),
        special_is_large_(factor.special_is_large),
        scale_(factor.scale) {}

  // False where there is none.
  SIMD_INLINE bool block(const std::byte* src, Block<F32>& products) const {
    constexpr std::size_t unit = bytes_of<from>(kLanes);
    Mask32 doubtful = mask_if(false);
    const auto product = [&](int at) { return this->product(load_float32<from>(src + at * unit), doubtful); };
    products = {product(0), product(1), product(2), product(3)};
    if constexpr (is_limited || rounding == ProductRounding::nearest) {
      if (any(doubtful)) [[unlikely]] {
        if (special_is_large_) return false;
        const auto slow_product = [&](int at) {
          constexpr bool to_odd = rounding != ProductRounding::nearest;
          return product_by_float64<to_odd>(load_float32<from>(src + at * unit), scale_);
        };
        products = {slow_product(0), slow_product(1), slow_product(2), slow_product(3)};
      }
    }
    return true;
  }
  [[nodiscard]] static bool good() { return true; }

 private:
  SIMD_INLINE F32 product(F32 x, Mask32& doubtful) const {
    if constexpr (is_limited) {
      doubtful = either(doubtful, greater(special_, as<U32>((as<I32>(x) & INT32_MAX) - first_)));
    }
    if constexpr (rounding == ProductRounding::none) return x * high_;
    if constexpr (rounding == ProductRounding::nearest) return nearest(x, doubtful);
    return odd(x);
  }
  SIMD_INLINE F32 odd(F32 x) const {
    if constexpr (has_low) {
      const F32 product = multiply_add(x, high_, x * low_);
      const F32 rest = multiply_add(x, low_, multiply_subtract(x, high_, product));
      return stepped(product, multiply_add(x, lowest_, rest));
    } else {
      const F32 product = x * high_;
      return stepped(product, multiply_subtract(x, high_, product));
    }
  }
  SIMD_INLINE static F32 stepped(F32 product, F32 missing) {
    return step_to_odd(product, as<I32>(missing), unequal(missing, F32{}));
  }
  // The exact product is between these two sums.
  SIMD_INLINE F32 nearest(F32 x, Mask32& doubtful) const {
    const F32 more = multiply_add(x, high_, x * more_);
    const F32 less = multiply_add(x, high_, x * less_);
    doubtful = either(doubtful, greater(as<U32>(as<I32>(more) ^ as<I32>(less)), U32{}));
    return more;
  }

  F32 high_, low_, lowest_, more_, less_;
  I32 first_;
  U32 special_;
  bool special_is_large_;
  double scale_;
};

// Numbers of 16 bits, or integers of more of which the large ones need be no more than that, times high + low, cut off:
// x * low is exact. On others than AVX-512 the CPU rounds toward zero. For floats that see what was cut off there is a
// last bit of one, if no product is at a boundary of theirs.
template <DType from, bool to_float>
class CutProducts {
 public:
  using Unit = F32;
  static constexpr DType hub = DType::float16;  // finite ones are within int32's range

  explicit CutProducts(const Factor& factor)
      : high_(splat(factor.high)),
        low_(splat(factor.low)),
        limit_(splat(static_cast<std::int16_t>(factor.first >> 16))),
        last_(splat(static_cast<std::int32_t>(factor.last))),
        is_cut_(factor.last != 0) {}

  // False where one has more digits before the point than float32: of bfloat16 alone.
  SIMD_INLINE bool block(const std::byte* src, Block<F32>& products) const {
    const auto unit = [&](int at) { return load_float32<from>(src + at * bytes_of<from>(kLanes)); };
    const Block<F32> x = {unit(0), unit(1), unit(2), unit(3)};
    if constexpr (from == DType::bfloat16) {
      const auto size = [src](int at) { return as<I16>(load<U16>(src + at * kRegisterBytes) & 0x7fff); };
      if (any_greater(max(size(0), size(1)), limit_)) [[unlikely]]
        return false;
    }
    if (to_float && !is_cut_) {
      products = map(x, [this](F32 lanes) SIMD_INLINE_LAMBDA { return lanes * high_; });
      return true;
    }
    products = map(x, [this](F32 lanes) SIMD_INLINE_LAMBDA {
      const F32 product = multiply_add_cut(lanes, high_, lanes * low_);
      return to_float ? as<F32>(as<I32>(product) | last_) : product;
    });
    return true;
  }
  [[nodiscard]] static bool good() { return true; }

 private:
  F32 high_, low_;
  I16 limit_;
  I32 last_;
  bool is_cut_;
};

// --- 64-bit integers

// x = h + l, h being x rounded. The halves of x are exact; as the upper one is zero or the larger, so is l.
struct Parts {
  F64 h, l;
};
template <bool is_signed>
SIMD_INLINE Parts parts_of(I64 x) {
  constexpr std::int64_t low_bits = 0xffffffff;
  constexpr std::int64_t two_52 = 0x4330000000000000;  // the lower half becomes the mantissa below 2^52
  const F64 low = as<F64>((x & low_bits) | two_52) - 0x1p52;
  const F64 high = to_f64<is_signed>(x & ~low_bits);
  const F64 h = high + low;
  return {h, low - (h - high)};
}

// The exact product is p + r, r = h * scale - p + l * scale. The first difference is exact; r is rounded once, and so
// has the right sign. It is at most one and a half last places of p.
// - To odd, for a later rounding that keeps 32 bits or fewer: what is cut off shows in the last bits of p, unless the
//   last 20 are all zero; then r decides. In doubt only where p is next to such a number, which r may cross.
// - To nearest: p + r rounded, if r made a little larger and a little smaller gives the same. Where l is zero, it is p.
// Negative lanes of `doubt`: another way must be found.
template <ProductRounding rounding>
SIMD_INLINE F64 product_of_parts(const Parts& x, F64 scale, I64& doubt) {
  const F64 product = x.h * scale;
  if constexpr (rounding == ProductRounding::none) return product;
  const F64 missing = multiply_add(x.l, scale, multiply_subtract(x.h, scale, product));
  const I64 bits = as<I64>(product);
  if constexpr (rounding == ProductRounding::nearest) {
    const F64 more = multiply_add(missing, splat(1.0 + 0x1p-48), product);
    const F64 less = multiply_add(missing, splat(1.0 - 0x1p-48), product);
    const I64 beyond = -(as<I64>(x.l) & INT64_MAX);  // negative where float64 does not hold x; else p is the answer
    doubt |= beyond & -(as<I64>(more - less) & INT64_MAX);
    return as<F64>(bits ^ ((bits ^ as<I64>(more)) & (beyond >> 63)));
  } else {
    const I64 inexact = -(as<I64>(missing) & INT64_MAX);           // negative lanes
    const I64 place = ((bits + 1) & 0xfffff) ^ 1;                  // 0 where the last 20 bits are zero
    doubt |= inexact & (place - 4) & -place;                       // 1 to 3
    const I64 back = (inexact & (bits ^ as<I64>(missing))) >> 63;  // nearer to zero
    return as<F64>((bits + back) | as<I64>(as<U64>(inexact) >> 63));
  }
}

#if TENSORCAST_TARGET_LEVEL >= 2
// Of a number that has it, but for zero.
SIMD_INLINE F64 with_sign_of(F64 x, F64 number) { return as<F64>(as<I64>(number) | (as<I64>(x) & INT64_MIN)); }

// With x = h + l, h being x cut off, and l a float64 too:
// - To nearest: l * scale and what is missing from h * scale, rounded to odd together, so that adding them to that is
//   the only rounding that counts. Where l is zero they may be at a midpoint, and need no rounding to odd.
template <bool is_signed>
SIMD_INLINE F64 nearest_product(I64 x, F64 scale) {
  I64 rest;
  const F64 h = cut_to_f64<is_signed>(x, rest);
  const F64 product = h * scale;
  const F64 missing = multiply_add_cut(to_f64<true>(rest), scale, multiply_subtract(h, scale, product));
  return with_sign_of(product, product + odd_where_nonzero(missing, rest));
}
// - Rounded to odd, but for the last places, where no product is a float32 or a midpoint of two: all are cut off.
template <bool is_signed>
SIMD_INLINE F64 inexact_product(I64 x, F64 scale) {
  I64 rest;
  const F64 h = cut_to_f64<is_signed>(x, rest);
  const F64 product = multiply_cut(h, scale);
  const F64 missing = multiply_add_cut(to_f64<true>(rest), scale, multiply_subtract(h, scale, product));
  return as<F64>(as<I64>(with_sign_of(product, add_cut(product, missing))) | 1);
}
#endif

SIMD_INLINE bool any_negative(I64 x) { return any(greater(I32{}, high_words({x, x}))); }

// --- Numbers that float64 holds, and 64-bit integers

template <DType from>
SIMD_INLINE F64x2 load_float64(const std::byte* src) {
  if constexpr (from == DType::float64) {
    return load_unit<from>(src);
  } else if constexpr (is_float<from>) {
    return widen(load_unit<from>(src));
  } else if constexpr (bits_of<from> == 16) {
    return to_f64<true>(load_unit<from>(src));  // the lanes are wider than the source
  } else if constexpr (bits_of<from> == 64) {
    const auto x = load_unit<from>(src);
    return {to_f64<is_signed_type<from>>(x.lo), to_f64<is_signed_type<from>>(x.hi)};
  } else {
    return to_f64<is_signed_type<from>>(load_unit<from>(src));
  }
}

// To float64. Rounded to odd, of integers only those that float64 holds: `greatest` sees to that.
template <DType from, ProductRounding rounding>
class Float64Products {
  static constexpr bool in_parts = is_wide_integer<from> && rounding != ProductRounding::odd;

 public:
  using Unit = F64x2;

  explicit Float64Products(const Factor& factor) : scale_(splat(factor.scale)), greatest_(splat(factor.greatest)) {}

  SIMD_INLINE bool block(const std::byte* src, Block<F64x2>& products) {
    constexpr std::size_t unit = bytes_of<from>(kLanes);
#if TENSORCAST_TARGET_LEVEL >= 2
    if constexpr (in_parts && rounding == ProductRounding::nearest && is_signed_type<from>) {
      I64 rests = {};  // of most blocks float64 holds all
      products = map(load_block<from>(src), [&](I64x2 x) SIMD_INLINE_LAMBDA {
        return F64x2{quick_product(x.lo, rests), quick_product(x.hi, rests)};
      });
      if (!any_nonzero(rests)) [[likely]]
        return true;
    }
#endif
    products = {product(src), product(src + unit), product(src + 2 * unit), product(src + 3 * unit)};
    return rounding != ProductRounding::odd || !any(too_great_);
  }
  [[nodiscard]] bool good() const { return !any_negative(doubt_); }

 private:
  SIMD_INLINE F64x2 product(const std::byte* src) {
    if constexpr (in_parts) {
      const auto x = load_unit<from>(src);
#if TENSORCAST_TARGET_LEVEL >= 2
      constexpr bool is_signed = is_signed_type<from>;
      if constexpr (rounding == ProductRounding::nearest)
        return {nearest_product<is_signed>(x.lo, scale_), nearest_product<is_signed>(x.hi, scale_)};
#endif
      return {product_of_parts<rounding>(parts_of<is_signed_type<from>>(x.lo), scale_, doubt_),
              product_of_parts<rounding>(parts_of<is_signed_type<from>>(x.hi), scale_, doubt_)};
    } else {
      const F64x2 x = load_float64<from>(src);
      return {product(x.lo), product(x.hi)};
    }
  }
#if TENSORCAST_TARGET_LEVEL >= 2
  SIMD_INLINE F64 quick_product(I64 x, I64& rests) const {
    I64 rest;
    const F64 cut = cut_to_f64<true>(x, rest);
    rests |= rest;
    return cut * scale_;
  }
#endif
  SIMD_INLINE F64 product(F64 x) {
    if constexpr (rounding != ProductRounding::odd) return x * scale_;
    too_great_ = either(too_great_, greater(as<F64>(as<I64>(x) & INT64_MAX), greatest_));
    return multiply_odd(x, scale_);
  }

  F64 scale_;
  F64 greatest_;
  Mask64 too_great_ = {};
  I64 doubt_ = {};
};

// The same, cut off: on others than AVX-512 by a CPU that rounds toward zero.
template <DType from>
class WideCutProducts {
  static constexpr bool is_limited = is_float<from> || is_wide_integer<from>;

 public:
  using Unit = F64x2;

  explicit WideCutProducts(const Factor& factor)
      : scale_(splat(factor.scale)), greatest_(splat(std::bit_cast<std::int64_t>(factor.greatest))) {}

  // False where one is too great to have all its digits before the point; NaN counts as such.
  SIMD_INLINE bool block(const std::byte* src, Block<F64x2>& products) const {
    constexpr std::size_t unit = bytes_of<from>(kLanes);
    const Block<F64x2> x = {load_float64<from>(src), load_float64<from>(src + unit), load_float64<from>(src + 2 * unit),
                            load_float64<from>(src + 3 * unit)};
    products = map(x, [this](F64x2 y) SIMD_INLINE_LAMBDA {
      return F64x2{multiply_cut(y.lo, scale_), multiply_cut(y.hi, scale_)};
    });
    return !is_limited || !any_negative(room(x.a) | room(x.b) | room(x.c) | room(x.d));
  }

 private:
  SIMD_INLINE I64 room(F64x2 x) const {
    return (greatest_ - (as<I64>(x.lo) & INT64_MAX)) | (greatest_ - (as<I64>(x.hi) & INT64_MAX));
  }

  F64 scale_;
  I64 greatest_;
};

// Of float32, cut off, as integers: products with a scale a little less and a little more than the exact one, which are
// on both sides of the exact product, rounded or not. Where both have the same digits before the point, so has that.
class BetweenProducts {
 public:
  using Unit = I32;

  explicit BetweenProducts(const Factor& factor)
      : less_(splat(static_cast<float>(factor.scale * (1.0 - 0x1p-22)))),
        more_(splat(static_cast<float>(factor.scale * (1.0 + 0x1p-22)))) {}

  // False where one differs, is beyond int32, or NaN.
  SIMD_INLINE bool block(const std::byte* src, Block<I32>& products) const {
    const Block<F32> x = load_block<DType::float32>(src);
    products = map(x, [this](F32 lanes) SIMD_INLINE_LAMBDA { return truncate(lanes * less_); });
    const Block<I32> others = map(x, [this](F32 lanes) SIMD_INLINE_LAMBDA { return truncate(lanes * more_); });
    const I32 differing =
        (products.a ^ others.a) | (products.b ^ others.b) | (products.c ^ others.c) | (products.d ^ others.d);
    const I32 least = min(min(products.a, products.b), min(products.c, products.d));
    return !any(either(greater(as<U32>(differing), U32{}), equal(least, splat(INT32_MIN))));
  }

 private:
  F32 less_, more_;
};

// Unsigned 32-bit integers, cut off: below 2^52, which is added, the last place is worth one. The integers are modulo
// 2^32. On others than AVX-512 the CPU rounds toward zero.
class ShortWholeProducts {
 public:
  using Unit = I64x2;

  explicit ShortWholeProducts(const Factor& factor)
      : scale_(splat(std::fabs(factor.scale))), is_negative_(factor.scale < 0.0) {}

  SIMD_INLINE bool block(const std::byte* src, Block<I64x2>& products) const {
    products = map(load_block<DType::uint32>(src), [this](I32 unit) SIMD_INLINE_LAMBDA {
      const F64x2 x = to_f64<false>(unit);
      return I64x2{product(x.lo), product(x.hi)};
    });
    if (is_negative_) [[unlikely]]
      products = map(products, [](I64x2 x) SIMD_INLINE_LAMBDA { return I64x2{-x.lo, -x.hi}; });
    return true;
  }

 private:
  SIMD_INLINE I64 product(F64 x) const { return as<I64>(multiply_add_cut(x, scale_, splat(0x1p52))); }

  F64 scale_;
  bool is_negative_;
};

// Unsigned 64-bit integers x of any size times a scale below 1, cut off, as integers. The scale is m / 2^(53 + shift),
// m being its significand as an integer of 53 bits.
class WholeProducts {
 public:
  using Unit = I64x2;

  // From 2^-64 to 1.
  static bool takes(double scale) { return std::fabs(scale) >= 0x1p-64 && std::fabs(scale) < 1.0; }

  explicit WholeProducts(const Factor& factor) {
    const auto bits = std::bit_cast<std::uint64_t>(factor.scale);
    const int field = static_cast<int>(bits >> 52 & 0x7ff);
    const std::uint64_t fraction = bits & 0xfffffffffffff;
    shift_ = 1022 - field;
#if TENSORCAST_TARGET_LEVEL == 3
    fraction_ = U64{} + fraction;
#else
    const std::uint64_t significand = fraction | 0x10000000000000;
    factor_low_ = U64{} + (significand << 11 & low_half);
    factor_high_ = U64{} + (significand >> 21);
#endif
    is_negative_ = bits >> 63 != 0;
  }

  SIMD_INLINE bool block(const std::byte* src, Block<I64x2>& products) const {
    products = map(load_block<DType::uint64>(src), [this](I64x2 x) SIMD_INLINE_LAMBDA {
      return I64x2{product(as<U64>(x.lo)), product(as<U64>(x.hi))};
    });
    if (is_negative_) [[unlikely]]
      products = map(products, [](I64x2 x) SIMD_INLINE_LAMBDA { return I64x2{-x.lo, -x.hi}; });
    return true;
  }

 private:
#if TENSORCAST_TARGET_LEVEL == 3
  // m = 2^52 + f: x * m / 2^52 is x + y, with y = x * f / 2^52 of the upper 12 bits of x and the lower 52, the latter
  // cut off. Half the sum needs no 65th bit.
  SIMD_INLINE I64 product(U64 x) const {
    const __m512i f = (__m512i)fraction_;
    const __m512i upper = _mm512_mullo_epi64((__m512i)(x >> 52), f);
    const U64 y = (U64)_mm512_madd52hi_epu64(upper, (__m512i)x, f);
    return as<I64>(((x & y) + ((x ^ y) >> 1)) >> shift_);
  }

  U64 fraction_;
#else
  static constexpr std::uint64_t low_half = 0xffffffff;

  // The upper half of x * m * 2^11, in halves of 32 bits. No sum here is 2^64 or more.
  SIMD_INLINE I64 product(U64 x) const {
    const U64 high = x >> 32;
    const U64 cross = multiply_low_halves(high, factor_low_);
    const U64 middle =
        multiply_low_halves(x, factor_high_) + (cross & low_half) + (multiply_low_halves(x, factor_low_) >> 32);
    const U64 upper = multiply_low_halves(high, factor_high_) + (cross >> 32) + (middle >> 32);
    return as<I64>(upper >> shift_);
  }

  U64 factor_low_, factor_high_;
#endif
  int shift_;
  bool is_negative_;
};

// To float32, from what float32 does not hold.
template <DType from, ProductRounding rounding, bool is_limited>
class NarrowedProducts {
  static constexpr bool to_odd = rounding == ProductRounding::odd;

 public:
  using Unit = F32;

  explicit NarrowedProducts(const Factor& factor) : scale_(splat(factor.scale)) {}

  SIMD_INLINE bool block(const std::byte* src, Block<F32>& products) {
    constexpr std::size_t unit = bytes_of<from>(kLanes);
    products = {product(src), product(src + unit), product(src + 2 * unit), product(src + 3 * unit)};
    return true;
  }
  [[nodiscard]] bool good() const { return !any_negative(doubt_); }

 private:
  SIMD_INLINE F32 product(const std::byte* src) {
#if TENSORCAST_TARGET_LEVEL >= 2
    if constexpr (rounding == ProductRounding::near && is_wide_integer<from>) {
      const auto x = load_unit<from>(src);
      constexpr bool is_signed = is_signed_type<from>;
      return narrow({inexact_product<is_signed>(x.lo, scale_), inexact_product<is_signed>(x.hi, scale_)});
    } else if constexpr (rounding == ProductRounding::near) {
      const F64x2 x = load_float64<from>(src);
      return narrow(
          {as<F64>(as<I64>(multiply_cut(x.lo, scale_)) | 1), as<F64>(as<I64>(multiply_cut(x.hi, scale_)) | 1)});
    } else
#endif
        if constexpr (is_wide_integer<from>) {
      const auto x = load_unit<from>(src);
      const F64x2 y = {product_of_parts<ProductRounding::odd>(parts_of<is_signed_type<from>>(x.lo), scale_, doubt_),
                       product_of_parts<ProductRounding::odd>(parts_of<is_signed_type<from>>(x.hi), scale_, doubt_)};
      if (!to_odd) return narrow(y);
      return is_limited ? narrow_odd({within_float32(y.lo), within_float32(y.hi)}) : narrow_odd_normal(y);
    } else {
      const F64x2 x = load_float64<from>(src);
      return to_odd ? odd(x) : narrow({multiply_odd(x.lo, scale_), multiply_odd(x.hi, scale_)});
    }
  }
  SIMD_INLINE F32 odd(F64x2 x) const {
#if TENSORCAST_TARGET_LEVEL >= 2
    if constexpr (!is_limited) return multiply_narrow_odd(x, scale_);
#endif
    const F32 nearest = narrow({x.lo * scale_, x.hi * scale_});
    const F64x2 back = widen(nearest);
    const I32 missing = high_words(
        {as<I64>(multiply_subtract(x.lo, scale_, back.lo)), as<I64>(multiply_subtract(x.hi, scale_, back.hi))});
    // Neither zero, or so tiny that the product is nothing to the target, nor NaN.
    return step_to_odd(nearest, missing, greater(as<U32>(splat(0x7ff00000)), as<U32>((missing & INT32_MAX) - 1)));
  }

  F64 scale_;
  I64 doubt_ = {};
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
