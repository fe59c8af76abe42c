// SPDX-License-Identifier: Apache-2.0
// Every hub to every integer target. Integers keep their low bits; floats are truncated or rounded, then wrapped or
// saturated.
#pragma once

#include <limits>

#include "kernels/encode/encode_float.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// Stores the low bits of bytes as a type of 8 bits or fewer.
template <DType to>
SIMD_INLINE void store_low_bits(std::byte* dst, U8 x) {
  if constexpr (bits_of<to> == 8) {
    store(dst, x);
  } else if constexpr (bits_of<to> == 4) {
    store(dst, pack_u4(x & 0xf));
  } else {
    static_assert(bits_of<to> == 2);
    store(dst, pack_u2(x & 0x3));
  }
}

// Stores the low bits of each lane, packed as the target's elements are.
template <DType to>
SIMD_INLINE void store_low_bits(std::byte* dst, const Block<I32>& x) {
  if constexpr (bits_of<to> == 32) {
    store_units(dst, x);
  } else if constexpr (bits_of<to> == 16) {
    store(dst, pack_u16(x.a, x.b));
    store(dst + kRegisterBytes, pack_u16(x.c, x.d));
  } else {
    store_low_bits<to>(dst, pack_bytes(x));
  }
}

// Stores each lane clamped to the target's range. Packing saturates at no cost, except to types under 8 bits.
template <DType to>
SIMD_INLINE void store_saturated(std::byte* dst, const Block<I32>& x) {
  constexpr bool is_signed = is_signed_type<to>;
  constexpr int bits = bits_of<to>;
  if constexpr (bits == 32) {
    store_units(dst, x);
  } else if constexpr (bits == 16) {
    store(dst, pack_saturated<is_signed>(x.a, x.b));
    store(dst + kRegisterBytes, pack_saturated<is_signed>(x.c, x.d));
  } else {
    U8 bytes = pack_bytes_saturated<is_signed>(x);
    if constexpr (bits < 8 && is_signed) {
      constexpr std::int8_t most = (1 << (bits - 1)) - 1;
      bytes = as<U8>(min(max(as<I8>(bytes), splat(std::int8_t{-most - 1})), splat(most)));
    } else if constexpr (bits < 8) {
      bytes = min(bytes, splat(std::uint8_t{(1 << bits) - 1}));
    }
    store_low_bits<to>(dst, bytes);
  }
}

// Integers to integers.
template <DType from, DType to>
struct IntegerEncoder {
  explicit IntegerEncoder(const Policy&) {}

  template <class Unit>
  SIMD_INLINE void store_block(std::byte* dst, const Block<Unit>& x) const {
    if constexpr (bits_of<to> == 64 && bits_of<from> == 64) {
      store_unit_pairs(dst, x);
    } else if constexpr (bits_of<to> == 64) {
      store_unit_pairs(dst, map(x, [](Unit unit) { return widen<is_signed_type<from>>(unit); }));
    } else if constexpr (bits_of<from> == 64) {
      store_low_bits<to>(dst, map(x, [](Unit unit) { return low_u32(unit); }));
    } else {
      store_low_bits<to>(dst, x);
    }
  }
};

// Reports whether numbers are rounded by a word other than the two that all encoders know.
inline bool is_rare_word(Rounding word) {
  return word != Rounding::automatic && word != Rounding::nearest_even && word != Rounding::toward_zero;
}

// Float lanes rounded to integers by a word, in the default floating-point environment. NaN and infinities stay.
// nearest_away: by less than one half away from zero; truncation then cuts the rest.
template <class Lanes>
SIMD_INLINE Lanes round_by_word(Lanes x, Rounding word) {
  using Number = std::remove_cvref_t<decltype(x[0])>;
  using Bits = std::conditional_t<sizeof(Number) == 4, I32, I64>;
  constexpr auto before_half = static_cast<Number>(sizeof(Number) == 4 ? 0x1.fffffep-2 : 0x1.fffffffffffffp-2);
  if (word == Rounding::nearest_away) {
    const Bits sign = as<Bits>(x) & as<Bits>(splat(Number{-0.0}));
    return x + as<Lanes>(as<Bits>(splat(before_half)) | sign);
  }
  const Lanes above = round_to_integer<Rounding::toward_positive>(x);
  if (word == Rounding::toward_positive) return above;
  const Lanes below = round_to_integer<Rounding::toward_negative>(x);
  if (word == Rounding::toward_negative) return below;
  const Lanes half = below * Number{0.5};  // to odd
  return select(not_equal(half, round_to_integer(half)), below, above);
}

// Floats to integers. Options are tested in branches that go the same way for the whole call. `by_word`: the policy's
// word is a rare one, and the floating-point environment is the default.
template <DType from, DType to, bool by_word = false>
class FloatToIntegerEncoder {
  static constexpr int bits = bits_of<to>;
  static constexpr bool is_signed = is_signed_type<to>;
  static constexpr bool from_float64 = from == DType::float64;
  static constexpr bool through_int32 = is_signed || bits < 32;
  // Whether saturation tests each unit, not each block. On large tensors, testing blocks takes 1.25 of the time for
  // these pairs; in the cache, and for all other pairs, less.
  static constexpr bool tests_each_unit = from == DType::float32 && bits >= 16;
  using Hub = std::conditional_t<from_float64, F64x2, F32>;

  static constexpr double power(int exponent) { return exponent == 0 ? 1.0 : 2.0 * power(exponent - 1); }
  static constexpr double lowest = is_signed ? -power(bits - 1) : 0.0;
  static constexpr double highest = power(is_signed ? bits - 1 : bits) - 1.0;  // exact up to 32 bits

 public:
  explicit FloatToIntegerEncoder(const Policy& policy)
      : saturates_(policy.range == codec::RangeRule::saturate),
        rounds_(policy.rounding == Rounding::nearest_even),
        word_(policy.rounding) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<Hub>& input) const {
    Block<Hub> x = input;
    if constexpr (by_word) {
      x = rounded_by_word(x);
    } else if (rounds_) [[unlikely]]
      x = map(x, [](Hub unit) SIMD_INLINE_LAMBDA { return rounded(unit); });
    if constexpr (bits == 64) {
      store_unit_pairs(dst, map(x, [this](Hub unit) SIMD_INLINE_LAMBDA { return truncate_64(unit); }));
    } else if (saturates_) {
      store_saturated<to>(dst, truncate_saturated(x));
    } else {
      store_low_bits<to>(dst, map(x, [](Hub unit) SIMD_INLINE_LAMBDA { return truncate_32(unit); }));
    }
  }

 private:
  SIMD_INLINE static F32 rounded(F32 x) { return round_to_integer(x); }
  SIMD_INLINE static F64x2 rounded(F64x2 x) { return {round_to_integer(x.lo), round_to_integer(x.hi)}; }

  // A loop-invariant branch for each word, so that a block runs through one of them.
  SIMD_INLINE Block<Hub> rounded_by_word(const Block<Hub>& x) const {
    const auto by = [&x](Rounding word) SIMD_INLINE_LAMBDA {
      return map(x, [word](Hub unit) SIMD_INLINE_LAMBDA { return rounded_by_word(unit, word); });
    };
    if (word_ == Rounding::nearest_away) return by(Rounding::nearest_away);
    if (word_ == Rounding::toward_positive) return by(Rounding::toward_positive);
    if (word_ == Rounding::toward_negative) return by(Rounding::toward_negative);
    return by(Rounding::to_odd);
  }
  SIMD_INLINE static F32 rounded_by_word(F32 x, Rounding word) { return round_by_word(x, word); }
  SIMD_INLINE static F64x2 rounded_by_word(F64x2 x, Rounding word) {
    return {round_by_word(x.lo, word), round_by_word(x.hi, word)};
  }

  // --- Wrapped: the low 32 bits of the result; the target keeps its own low bits of them

  SIMD_INLINE static I32 truncate_32(F64x2 x) { return truncate_wrapped_32<through_int32>(x); }
  SIMD_INLINE static I32 truncate_32(F32 x) {
    F32 shifted = x;
    // Half of uint32's range is out of int32's: subtracting 2^32, which is exact there, keeps the low bits.
    if constexpr (bits == 32 && !is_signed) shifted = select(greater_equal(x, splat(0x1p31F)), x - 0x1p32F, x);
    const I32 truncated = truncate(shifted);
    // A float32 out of int32's range is a multiple of 256, infinity or NaN: the low byte is 0 in each case. All finite
    // float16 are in the range.
    if constexpr (bits <= 8 || (bits == 16 && from == DType::float16)) return truncated;
    if (any(equal(truncated, splat(INT32_MIN)))) [[unlikely]]
      return wrap_by_shift(x);
    return truncated;
  }

  // --- Saturated

  // 1. The CPU truncates to int32. Negative numbers become 0 before, unless packing does it.
  // 2. The CPU returns INT32_MIN for NaN and out of range; only then are limits applied. Testing a block costs less
  // than
  //    clamping each value.
  SIMD_INLINE static Block<I32> truncate_saturated(const Block<Hub>& input) {
    if constexpr (from_float64 && !through_int32) {
      return map(input, [](Hub unit) SIMD_INLINE_LAMBDA { return truncate_wrapped_32<false>(limited(unit)); });
    } else {
      Block<Hub> x = input;
      if constexpr (!through_int32) x = map(x, [](Hub unit) SIMD_INLINE_LAMBDA { return not_negative(unit); });
      if constexpr (tests_each_unit) {
        return map(x, [](Hub unit) SIMD_INLINE_LAMBDA {
          const I32 y = truncate(unit);
          if (any(equal(y, splat(INT32_MIN)))) [[unlikely]]
            return saturated_32(unit, y);
          return y;
        });
      }
      Block<I32> y = map(x, [](Hub unit) SIMD_INLINE_LAMBDA { return truncate(unit); });
      const I32 least = min(min(y.a, y.b), min(y.c, y.d));
      if (any(equal(least, splat(INT32_MIN)))) [[unlikely]]
        y = {saturated_32(x.a, y.a), saturated_32(x.b, y.b), saturated_32(x.c, y.c), saturated_32(x.d, y.d)};
      return y;
    }
  }
  // Lanes with a sign become 0: as integers they are negative.
  SIMD_INLINE static F32 not_negative(F32 x) { return as<F32>(max(as<I32>(x), I32{})); }

  // `y` is `x` truncated, right if int32 holds it.
  SIMD_INLINE static I32 saturated_32(F32 x, I32 y) {
    I32 above = splat(INT32_MAX);
    if constexpr (!through_int32) {
      const I32 upper_half = truncate(x - 0x1p31F) ^ INT32_MIN;
      above = select(greater_equal(x, splat(0x1p32F)), splat(-1), upper_half);
    }
    return select(is_nan(x), I32{}, select(greater_equal(x, splat(0x1p31F)), above, y));
  }
  SIMD_INLINE static I32 saturated_32(F64x2 x, I32) { return truncate(limited(x)); }

  // Clamps to the target's range; NaN becomes 0.
  SIMD_INLINE static F64x2 limited(F64x2 x) { return {limited(x.lo), limited(x.hi)}; }
  SIMD_INLINE static F64 limited(F64 x) {
    const F64 number = as<F64>(select(greater_equal(x, x), as<I64>(x), I64{}));
    return clamp(number, splat(lowest), splat(highest));
  }

  // --- 64 bits

  SIMD_INLINE I64x2 truncate_64(F64x2 x) const {
    const I64x2 y = truncate_wrapped_64(x);
    return saturates_ ? saturated_64(x, y) : y;
  }
  // A float32 below 2^63 needs no test but of its sign.
  SIMD_INLINE I64x2 truncate_64(F32 x) const {
    constexpr std::int32_t below_2_63 = 0x5effffff;
    const I64x2 y = truncate_wrapped_64(saturates_ && !is_signed ? not_negative(x) : x);
    if (saturates_ && any(greater(as<I32>(x) & INT32_MAX, splat(below_2_63)))) [[unlikely]]
      return saturated_64(widen(x), y);
    return y;
  }
  SIMD_INLINE static I64x2 saturated_64(F64x2 x, I64x2 wrapped) {
    return {saturated(wrapped.lo, x.lo), saturated(wrapped.hi, x.hi)};
  }
  SIMD_INLINE static I64 saturated(I64 wrapped, F64 x) {
    constexpr std::int64_t all_ones = is_signed ? INT64_MAX : -1;
    constexpr std::int64_t least = is_signed ? INT64_MIN : 0;
    const I64 not_above = select(greater_equal(x, splat(highest + 1.0)), splat(all_ones), wrapped);
    return select(greater_equal(splat(lowest), x), splat(least), not_above);  // NaN compares as false: 0
  }

  bool saturates_;
  bool rounds_;
  Rounding word_;
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
