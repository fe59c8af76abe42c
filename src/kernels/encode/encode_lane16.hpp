// SPDX-License-Identifier: Apache-2.0
// Sources of 16 bits to float8 and float4, in 16-bit lanes: a register has twice as many of them as of float32.
#pragma once

#include "codec/policy.hpp"
#include "kernels/encode/blocks.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using codec::Policy;

// The pairs that are encoded here.
template <DType from, DType to>
inline constexpr bool in_lanes16 =
    bits_of<from> == 16 &&
    (to == DType::float4_e2m1fn || (to == DType::float8_e8m0fnu && from == DType::bfloat16) ||
     (has_u16_shifts && is_float<from> && is_float<to> && bits_of<to> == 8 && row(to).format.has_sign));

SIMD_INLINE U16x2 load_u16x2(const std::byte* src) { return {load<U16>(src), load<U16>(src + kRegisterBytes)}; }

// All ones if a lane is greater than the limit.
SIMD_INLINE U8 bytes_greater(const U16x2& x, I16 limit) {
  return pack_low_bytes(
      {0 - count_greater(U16{}, as<I16>(x.lo), limit), 0 - count_greater(U16{}, as<I16>(x.hi), limit)});
}

// The target's codes for NaN and infinities `x`, which have these magnitudes. Infinities become NaN if the target has
// no infinity.
template <DType from, DType to>
SIMD_INLINE U8 special_codes(const U16x2& x, const U16x2& magnitudes, U8 signs, U8 float4_nan) {
  constexpr FloatFormat format = row(to).format;
  if constexpr (bits_of<to> == 4) {
    return float4_nan;
  } else if constexpr (format.nonfinite == NonFinite::nan_all_ones) {
    return signs | 0x7f;
  } else if constexpr (format.nonfinite == NonFinite::ieee) {  // the quiet bit of NaN, then the payload's first
    constexpr int payload_bits = format.mantissa_bits - 1;
    constexpr int first = row(from).format.mantissa_bits - 1 - payload_bits;
    constexpr auto payload = static_cast<std::uint16_t>((1 << payload_bits) - 1);
    constexpr auto infinity = static_cast<std::uint8_t>(format.largest_code() + 1);
    constexpr auto infinity_of_source = static_cast<std::int16_t>(row(from).format.largest_code() + 1);
    const U8 quiet =
        bytes_greater(magnitudes, splat(infinity_of_source)) & static_cast<std::uint8_t>(1 << payload_bits);
    return signs | quiet | infinity | pack_low_bytes({(x.lo >> first) & payload, (x.hi >> first) & payload});
  } else if constexpr (format.nonfinite == NonFinite::nan_and_infinity) {
    constexpr auto infinity = static_cast<std::uint8_t>(format.largest_code() + 1);
    constexpr auto infinity_of_source = static_cast<std::int16_t>(row(from).format.largest_code() + 1);
    const U8 is_nan = bytes_greater(magnitudes, splat(infinity_of_source));
    return (is_nan & 0x80) | ((signs | infinity) & ~is_nan);
  } else {
    return splat(std::uint8_t{0x80});
  }
}

// Moves signs from the top bits of bytes to the place of the target's sign. If the target has one zero, it gets none.
template <DType to>
SIMD_INLINE U8 sign_bits(U8 codes, U8 signs) {
  if constexpr (bits_of<to> == 4) return as<U8>(as<U16>(signs) >> 4);
  if constexpr (!row(to).format.has_negative_zero()) return signs & as<U8>(codes != 0);
  return signs;
}

// `by_word`: of floats, by a word of D16 that is neither automatic nor stochastic.
template <DType from, DType to, bool by_word = false>
class Lane16Encoder {
  static constexpr FloatFormat source = row(from).format;
  static constexpr FloatFormat format = row(to).format;
  static constexpr bool four_bits = bits_of<to> == 4;
  // Codes are rounded in the upper byte of a lane, where the bits below them are in the lower one.
  static constexpr bool in_upper_byte = !four_bits || by_word;
  // Bits of the source's mantissa that the target lacks. For integers, this and the next constants mean nothing.
  static constexpr int dropped_bits = is_float<from> ? source.mantissa_bits - format.mantissa_bits : 0;
  static constexpr int infinity = ((1 << source.exponent_bits) - 1) << source.mantissa_bits;
  static constexpr int one_exponent = 1 << source.mantissa_bits;
  // The bits of a power of two in the source.
  static constexpr int power(int exponent) { return (exponent + source.bias) * one_exponent; }
  static constexpr int largest =
      power(format.max_exponent()) | static_cast<int>(format.largest_code() & ((1U << format.mantissa_bits) - 1))
                                         << dropped_bits;
  static constexpr int after_largest = largest + (1 << dropped_bits);
  // Half a unit of the last place, at the place where the code is rounded.
  static constexpr int half = in_upper_byte ? 0x80 : dropped_bits > 0 ? 1 << (dropped_bits - 1) : 0;
  static constexpr int least = format.min_exponent() + source.bias;  // exponent field of the smallest normal number

 public:
  explicit Lane16Encoder(const Policy& policy)
      // The code after the largest is the infinity or NaN that overflow becomes.
      : limit_(constant(limit_of(policy, Rounding::toward_negative))),
        special_above_(as<I16>(constant(has_special_infinity(policy) ? infinity - 1 : infinity))),
        float4_nan_(splat(static_cast<std::uint8_t>(policy.float4_nan_is_zero ? 0x8 : 0x7))),
        word_(policy, limit_of(policy, Rounding::toward_positive) - limit_of(policy, Rounding::toward_negative)) {}

  SIMD_INLINE void store_block(std::byte* dst, const U16x2& x) const {
    const U16x2 magnitudes = {magnitude(x.lo), magnitude(x.hi)};
    U8 codes;
    if constexpr (in_upper_byte) {
      codes = pack_high_bytes({upper_code(magnitudes.lo, x.lo), upper_code(magnitudes.hi, x.hi)});
    } else {
      codes = pack_low_bytes({float4_code(magnitudes.lo), float4_code(magnitudes.hi)});
    }
    if constexpr (is_signed_type<from>) {
      const U8 signs = pack_high_bytes(x) & sign_;
      codes |= sign_bits<to>(codes, signs);
      if constexpr (is_float<from>) {
        const I16 greatest = as<I16>(max(magnitudes.lo, magnitudes.hi));
        if (any_greater(greatest, special_above_)) [[unlikely]]
          codes = with_nan(codes, x, magnitudes, signs);
      }
    }
    if constexpr (four_bits) {
      store(dst, pack_u4(codes));
    } else {
      store(dst, codes);
    }
  }

 private:
  static constexpr std::uint16_t word(int x) { return static_cast<std::uint16_t>(x); }

  static U16 constant(int x) { return keep_in_register(splat(static_cast<std::uint16_t>(x))); }

  // `down`: the word by which the numbers' size becomes less.
  static constexpr int limit_of(const Policy& policy, Rounding down) {
    const Rounding word = policy.rounding;
    const bool leads_to_zero = word == Rounding::toward_zero || word == Rounding::to_odd || word == down;
    const bool stays = by_word && (leads_to_zero || !format.has_nan());
    return policy.saturate || stays ? largest : after_largest;
  }
  // Reports whether infinities are encoded with NaN, not as numbers. By a word, the limit of numbers is not theirs.
  static constexpr bool has_special_infinity(const Policy& policy) {
    const bool stays = by_word ? !policy.saturate || policy.keeps_infinity : policy.saturate && policy.keeps_infinity;
    return format.has_nan() && stays;
  }

  // What a word adds to a size in the upper byte of a lane, and the sizes that it limits.
  struct Word {
    Word(const Policy& policy, int limit_difference)
        : negative_more(constant(limit_difference)),
          added(constant(policy.rounding == Rounding::nearest_away ? 0x80 : 0)),
          flip(constant(policy.rounding == Rounding::toward_positive ? -1 : 0)),
          added_up(constant(is_directed(policy.rounding) ? 0xff : 0)),
          odd(constant(policy.rounding == Rounding::to_odd ? 0x100 : 0)) {}

    static constexpr bool is_directed(Rounding word) {
      return word == Rounding::toward_positive || word == Rounding::toward_negative;
    }
    SIMD_INLINE U16 limit(U16 positive, U16 x) const { return positive + (negative(x) & negative_more); }
    SIMD_INLINE U16 rounded(U16 exact, U16 x) const {
      const U16 sum = exact + (added | ((negative(x) ^ flip) & added_up));
      return sum | (((exact & 0xff) + 0xff) & odd);
    }
    SIMD_INLINE static U16 negative(U16 x) { return as<U16>(as<I16>(x) >> 15); }

    U16 negative_more, added, flip, added_up, odd;
  };
  struct NearestEven {
    NearestEven(const Policy&, int) {}
  };

  SIMD_INLINE U16 magnitude(U16 x) const {
    if constexpr (is_float<from>) return x & magnitude_;
    if constexpr (is_signed_type<from>) return min(x, 0 - x);  // unsigned, so 2^15 is its own magnitude
    return x;
  }

  // Rounding to nearest even adds this and nearly half a unit of the last place.
  SIMD_INLINE U16 odd(U16 code) const { return code & last_bit_; }

  // 0, 0.5, 1, 1.5, 2, 3, 4 and 6 are codes 0 to 7; ties go to even codes.
  SIMD_INLINE U16 float4_code(U16 x) const {
    if constexpr (!is_float<from>) {
      const U16 small = min(x, splat(word(7)));
      return count_greater(min(small, splat(word(2))) + min(small, splat(word(4))), as<I16>(small),
                           splat(std::int16_t{5}));
    } else if constexpr (least == 1) {
      return min((x + below_half_ + odd(x >> dropped_bits)) >> dropped_bits, largest_code_);
    } else {
      // 1. From 1 on: the exponent and one mantissa bit, rounded to nearest even. Below 1: at most the result of
      // step 2.
      const U16 normal = subtract_to_zero(x + odd(x >> dropped_bits), base_) >> dropped_bits;
      // 2. Codes 0, 1 and 2, by the two midpoints between them; the second midpoint rounds up.
      const U16 subnormal = count_greater(count_greater(U16{}, as<I16>(x), quarter_), as<I16>(x), three_quarters_);
      return min(max(normal, subnormal), largest_code_);
    }
  }

  // The code is in the upper byte of each lane. `x`: the magnitude and its sign.
  SIMD_INLINE U16 upper_code(U16 magnitude, U16 x) const {
    if constexpr (by_word) return word_.rounded(exact(min(magnitude, word_.limit(limit_, x))), x);
    const U16 code = exact(min(magnitude, limit_));
    return code + below_half_ + odd(code >> 8);  // to nearest even
  }

  // Puts the last bit of the code at bit 8.
  SIMD_INLINE static U16 placed(U16 x) {
    constexpr int left = 8 - dropped_bits;
    if constexpr (left >= 0) return x << left;
    return x >> -left;
  }

  // A size in the target's form, with the bits that it lacks below bit 8.
  SIMD_INLINE U16 exact(U16 limited) const {
    if constexpr (!in_upper_byte) {
      return limited;
    } else if constexpr (least == 1) {  // the formats have the same exponents, subnormals included
      return placed(limited);
    } else if constexpr (least == 0) {  // one binade of the source's subnormals is normal in the target
      return placed(limited + min(limited, leading_bit_));
    } else {
      // 1. Bits that step 3 shifts out are below half of the last place but must break ties, so the lowest bits are
      //    first combined into one sticky bit.
      U16 x = limited;
      if constexpr (source.mantissa_bits > 7) {
        constexpr std::uint16_t sticky = word((1 << (dropped_bits - 2)) - 1);
        x = (x | ((x & sticky) + sticky)) & word(~sticky);
      }
      // 2. Normal in the target: the exponent counts from the smallest normal number's, which has field 1.
      const U16 normal = placed(subtract_to_zero(dropped_bits > 8 ? x : limited, base_));
      // 3. Subnormal: the significand, shifted by the exponent. By a word it never becomes zero, but zero does.
      const U16 significand = placed((x & mantissa_) | leading_bit_);
      const U16 field = limited >> source.mantissa_bits;
      const U16 drop = subtract_to_zero(least_field_, field);
      U16 subnormal;
      if constexpr (by_word) {
        constexpr int below_half = format.mantissa_bits + 2;
        static_assert(least >= below_half, "the source's subnormals are below half of the least number");
        subnormal = min(shift_right_each(significand, min(drop, splat(word(below_half)))), limited);
      } else {
        subnormal = shift_right_each(significand, drop);
      }
      // 4. The subnormal result is right up to the smallest normal binade, and never too large above it.
      return max(normal, subnormal);
    }
  }

  SIMD_INLINE U8 with_nan(U8 codes, const U16x2& x, const U16x2& magnitudes, U8 signs) const {
    const U8 where = bytes_greater(magnitudes, special_above_);
    return (codes & ~where) | (special_codes<from, to>(x, magnitudes, signs, float4_nan_) & where);
  }

  // 1.0 less two units of the last place, as its code is 2, and less the half unit that rounding would add.
  static constexpr int float4_base =
      power(0) - (dropped_bits > 0 ? (2 << dropped_bits) + (1 << (dropped_bits - 1)) - 1 : 0);

  U16 limit_;
  I16 special_above_;
  U8 float4_nan_;
  U16 last_bit_ = constant(1);
  U16 below_half_ = constant(half - 1);
  U8 sign_ = keep_in_register(splat(std::uint8_t{0x80}));
  U16 magnitude_ = constant(0x7fff);
  // float4
  I16 quarter_ = as<I16>(constant(power(-2)));
  I16 three_quarters_ = as<I16>(constant((power(-1) | one_exponent >> 1) - 1));
  U16 largest_code_ = constant(7);
  // Codes in the upper byte; the others have a base too.
  U16 base_ = constant(in_upper_byte ? (least - 1) * one_exponent : float4_base);
  U16 least_field_ = constant(least);
  U16 leading_bit_ = constant(1 << source.mantissa_bits);
  U16 mantissa_ = constant((1 << source.mantissa_bits) - 1);
  [[no_unique_address]] std::conditional_t<by_word, Word, NearestEven> word_;
};

// float4 from integers of 32 and 64 bits. Numbers out of the range of 16 bits are out of float4's too.
template <DType from>
class Float4OfIntegerEncoder {
  static constexpr bool is_signed = is_signed_type<from>;

 public:
  explicit Float4OfIntegerEncoder(const Policy& policy) : lane16_(policy) {}

  template <class Unit>
  SIMD_INLINE void store_block(std::byte* dst, const Block<Unit>& x) const {
    const Block<I32> lanes = map(x, [](Unit unit) { return within_int32(unit); });
    lane16_.store_block(dst, {pack_saturated<true>(lanes.a, lanes.b), pack_saturated<true>(lanes.c, lanes.d)});
  }

 private:
  SIMD_INLINE static I32 within_int32(I32 x) {
    if constexpr (is_signed) return x;
    return as<I32>(min(as<U32>(x), as<U32>(splat(INT32_MAX))));
  }
  SIMD_INLINE static I32 within_int32(I64x2 x) { return clamped_to_int32<is_signed>(x); }

  Lane16Encoder<is_signed ? DType::int16 : DType::uint16, DType::float4_e2m1fn> lane16_;
};

// float8_e8m0fnu from bfloat16, which is the upper half of a float32.
template <>
class Lane16Encoder<DType::bfloat16, DType::float8_e8m0fnu> {
  static constexpr std::int16_t least = 0x0040;
  static constexpr std::int16_t largest = 0x7f00;

 public:
  explicit Lane16Encoder(const Policy& policy)
      : round_up_(splat(static_cast<std::int16_t>(policy.e8m0_rounding == RoundMode::up     ? 0x7f
                                                  : policy.e8m0_rounding == RoundMode::down ? 0
                                                                                            : 0x40))),
        nan_above_(splat(static_cast<std::int16_t>(policy.saturate && policy.keeps_infinity ? 0x7f7f : 0x7f80))),
        makes_nan_(!policy.saturate) {}

  SIMD_INLINE void store_block(std::byte* dst, const U16x2& x) const {
    U8 codes = pack_low_bytes({code(as<I16>(x.lo)), code(as<I16>(x.hi))});
    const I16 greatest = max(as<I16>(x.lo & 0x7fff), as<I16>(x.hi & 0x7fff));
    if (makes_nan_ || any_greater(greatest, nan_above_)) [[unlikely]]
      codes |= pack_low_bytes({nan_lanes(as<I16>(x.lo)), nan_lanes(as<I16>(x.hi))});
    store(dst, codes);
  }

 private:
  SIMD_INLINE U16 code(I16 x) const {
    const I16 clamped = min(max(x, splat(least)), splat(largest));
    const I16 normal = clamped + min(clamped - 0x80, I16{});
    return as<U16>((normal + round_up_) >> 7);
  }
  // All ones in lanes that become NaN: NaN, infinities that are kept and, without saturation, numbers out of range.
  SIMD_INLINE U16 nan_lanes(I16 x) const {
    U16 count = count_greater(U16{}, x & INT16_MAX, nan_above_);
    if (makes_nan_) {
      count = count_greater(count, splat(least), x);
      count = count_greater(count, x, splat(largest));
    }
    return 0 - min(count, U16{} + 1);
  }

  I16 round_up_;
  I16 nan_above_;
  bool makes_nan_;
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
