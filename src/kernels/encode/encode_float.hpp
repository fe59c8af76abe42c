// SPDX-License-Identifier: Apache-2.0
// Every hub to every floating-point target and to bool, rounded once.
#pragma once

#include <type_traits>

#include "codec/policy.hpp"
#include "kernels/encode/encode_lane16.hpp"
#include "kernels/simd/six_bit_registers.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using codec::Policy;

// --- Step one: float32 lanes that step two rounds to the same result as one rounding of the source

// Targets that hold float32 subnormals, or whose result depends on bits far below them.
template <DType to>
inline constexpr bool reaches_float32_subnormals = row(to).format.exponent_bits == 8 && to != DType::float32;

template <DType to>
SIMD_INLINE F32 float32_hub_of_float64(F64x2 x) {
  if constexpr (to == DType::float32) {
    return narrow(x);
  } else if constexpr (reaches_float32_subnormals<to>) {
    return narrow_odd(x);
  } else {
    // Only float32 subnormals are rounded twice here, and those are zero in the target. Where infinity differs from
    // numbers that are infinite in float32, encode/limit.hpp has clamped these.
    return narrow({round_to_odd_24(x.lo), round_to_odd_24(x.hi)});
  }
}

template <DType from, DType to, class Unit>
SIMD_INLINE F32 float32_hub_of_integer(Unit x) {
  constexpr bool is_signed = is_signed_type<from>;
  if constexpr (bits_of<from> <= 16) {
    return to_f32<true>(x);  // exact; the lanes are wider than the source
  } else if constexpr (to == DType::float32) {
    return to_f32<is_signed>(x);
  } else if constexpr (to == DType::bfloat16) {
    if constexpr (bits_of<from> == 64) return to_f32_odd<is_signed>(x);
    if constexpr (bits_of<from> == 32) return to_f32<is_signed>(round_to_odd_24<is_signed>(x));
  } else if constexpr (bits_of<from> == 64) {
    return to_f32_clamped<is_signed>(x);  // the targets overflow long before 2^31
  } else {
    return to_f32<is_signed>(x);  // rounded only above 2^24, where the targets have overflowed
  }
}

template <DType from, DType to, class Unit>
SIMD_INLINE F32 float32_hub(Unit x) {
  if constexpr (!is_float<from>) {
    return float32_hub_of_integer<from, to>(x);
  } else if constexpr (from == DType::float64) {
    return float32_hub_of_float64<to>(x);
  } else if constexpr (from == DType::bfloat16 && to == DType::float32) {
    const I32 bits = as<I32>(x);
    return as<F32>(select(is_nan(x), bits | 0x00400000, bits));  // a shift does not make NaN quiet
  } else {
    return x;
  }
}

template <DType from, class Unit>
SIMD_INLINE F64x2 float64_hub(Unit x) {
  if constexpr (is_float<from>) {
    return widen(x);
  } else if constexpr (bits_of<from> == 64) {
    return {to_f64<is_signed_type<from>>(x.lo), to_f64<is_signed_type<from>>(x.hi)};
  } else {
    return to_f64<is_signed_type<from>>(x);
  }
}

// --- Step two: codes of a block of float32 lanes. `has_nonfinite`: infinities, NaN, and numbers
// that round to zero may be among them; integers have none of these.

// float8, float6 and float4 with a zero. The FPU rounds: the encoder adds a power of two whose last bit weighs as much
// as the target's last bit at that magnitude.
template <DType to, bool has_nonfinite, bool in_loop = true>
class FloatEncoder {
  static constexpr FloatFormat format = row(to).format;

 public:
  static constexpr int dropped_bits = 23 - format.mantissa_bits;
  static constexpr std::int32_t least_exponent = (format.min_exponent() + 127) << 23;
  static constexpr std::int32_t largest =
      ((format.max_exponent() + 127) << 23) |
      static_cast<std::int32_t>(format.largest_code() & ((1U << format.mantissa_bits) - 1)) << dropped_bits;
  static constexpr std::int32_t after_largest = largest + (1 << dropped_bits);

  explicit FloatEncoder(const Policy& policy)
      // The code after the largest is the infinity or NaN that overflow becomes.
      : limit_(splat(policy.saturate || !format.has_nan() ? largest : after_largest)),
        special_above_(kept<in_loop>(
            splat(format.has_nan() && policy.saturate && policy.keeps_infinity ? 0x7f7fffff : 0x7f800000))),
        no_nan_(splat(static_cast<std::uint8_t>(
            codec::nan_depends_on_opset(row(to)) && !policy.float4_nan_is_zero ? sign_bit - 1 : sign_bit))) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& x) const {
    const Block<I32> bits = map(x, [](F32 lanes) { return as<I32>(lanes); });
    store_block(dst, bits, map(bits, [this](I32 lanes) { return lanes & magnitude_; }));
  }

  // The signs are those of `bits`. `are_small`: no magnitude is above 2^16, whose code has eight bits without a limit.
  template <bool are_small = false>
  SIMD_INLINE void store_block(std::byte* dst, const Block<I32>& bits, const Block<I32>& magnitudes) const {
    // 1. Clamp magnitudes to the limit, as integers, which clamps infinities and NaN too. Of small ones, clamp codes.
    // 2. Take the exponent of each, at least the smallest normal's, and the power of two `dropped_bits` binades above.
    // 3. Add magnitude and power: the sum's low bits are the significand, rounded to the target's last place.
    // 4. Code = significand + exponent field - bias. The power of two ends in zeros, and only the low byte counts.
    const Block<I32> rounded = map(magnitudes, [this](I32 magnitude) {
      const I32 limited = are_small ? magnitude : min(magnitude, limit_);
      const I32 exponent = max(limited & exponent_, least_exponent_);
      const I32 power = exponent + binades_;
      return as<I32>(add_nearest(as<F32>(limited), as<F32>(power))) + (exponent >> dropped_bits);
    });
    store_rounded<are_small>(dst, bits, magnitudes, rounded);
  }

  // The same, from step 5 on. `rounded`: what step 4 makes, before the bias is subtracted.
  template <bool are_small = false>
  SIMD_INLINE void store_rounded(std::byte* dst, const Block<I32>& bits, const Block<I32>& magnitudes,
                                 const Block<I32>& rounded) const {
    U8 codes = pack_bytes(rounded) - bias_;
    if constexpr (are_small) codes = min(codes, most_);
    // 5. Signs.
    const U8 signs = pack_signs(bits);
    if constexpr (!format.has_sign) {  // the magnitude (D15)
    } else if constexpr (!fills_byte) {
      codes |= as<U8>(as<U16>(signs) >> (8 - bits_of<to>)) & sign_;
    } else if constexpr (format.has_negative_zero() || !has_nonfinite) {  // of integers, only zero becomes zero
      codes |= signs & sign_;
    } else {
      codes |= signs & sign_ & as<U8>(codes != 0);
    }
    // 6. NaN, and infinities where they become NaN: rare.
    if constexpr (has_nonfinite) {
      const I32 greatest = max(max(magnitudes.a, magnitudes.b), max(magnitudes.c, magnitudes.d));
      if (any(greater(greatest, special_above_))) [[unlikely]]
        codes = with_nan(codes, bits, signs);
    }
    if constexpr (bits_of<to> == 4) {
      store(dst, pack_u4(codes));
    } else if constexpr (bits_of<to> == 6) {
      store_six_bits(dst, codes);
    } else {
      store(dst, codes);
    }
  }

 private:
  static constexpr auto bias = static_cast<std::uint8_t>((format.min_exponent() + 127) << format.mantissa_bits);
  static constexpr bool fills_byte = bits_of<to> == 8;
  static constexpr std::uint8_t sign_bit = 1 << (bits_of<to> - 1);

  SIMD_INLINE U8 with_nan(U8 codes, const Block<I32>& bits, U8 signs) const {
    const U8 where = pack_bytes(
        map(bits, [this](I32 lanes) { return select(greater(lanes & INT32_MAX, special_above_), splat(-1), I32{}); }));
    U8 nan = splat(std::uint8_t{0x80});
    if constexpr (!format.has_nan()) {
      nan = no_nan_;
    } else if constexpr (!format.has_sign) {
      nan = splat(std::uint8_t{0xff});
    } else if constexpr (format.nonfinite == NonFinite::nan_all_ones) {
      nan = signs | 0x7f;
    } else if constexpr (format.nonfinite == NonFinite::nan_and_infinity) {
      nan = (signs & 0x80) | pack_bytes(map(bits, [](I32 lanes) {
              return select(is_nan(as<F32>(lanes)), splat(0x80),
                            splat(static_cast<std::int32_t>(format.largest_code() + 1)));
            }));
    } else if constexpr (format.nonfinite == NonFinite::ieee) {  // the quiet bit of NaN, then the payload's first
      constexpr int payload_bits = format.mantissa_bits - 1;
      constexpr auto infinity = static_cast<std::int32_t>(format.largest_code() + 1);
      nan = (signs & 0x80) | pack_bytes(map(bits, [](I32 lanes) {
              const I32 quiet = select(is_nan(as<F32>(lanes)), splat(infinity | 1 << payload_bits), splat(infinity));
              return ((lanes >> (22 - payload_bits)) & ((1 << payload_bits) - 1)) | quiet;
            }));
    }
    return (codes & ~where) | (nan & where);
  }

  I32 limit_;
  I32 special_above_;
  U8 no_nan_;  // the code of NaN in a type that has none
  I32 magnitude_ = kept<in_loop>(splat(INT32_MAX));
  I32 exponent_ = kept<in_loop>(splat(0x7f800000));
  I32 least_exponent_ = kept<in_loop>(splat(least_exponent));
  I32 binades_ = kept<in_loop>(splat(dropped_bits << 23));
  U8 bias_ = kept<in_loop>(splat(bias));
  U8 most_ = kept<in_loop>(splat(static_cast<std::uint8_t>(format.largest_code())));
  U8 sign_ = kept<in_loop>(splat(sign_bit));
};

// Rounds to bfloat16, to odd: toward zero, then sets the last bit if the result is inexact. NaN stays NaN.
SIMD_INLINE U16 odd_high_u16(F32 a, F32 b) {
  const U16 one = U16{} + 1;
  return pack_high_u16(as<I32>(a), as<I32>(b)) | min(pack_u16(as<I32>(a), as<I32>(b)), one);
}

// float8_e8m0fnu depends on the bits of bfloat16 and on whether lower bits are set, so 16-bit lanes do.
template <bool has_nonfinite, bool in_loop>
class FloatEncoder<DType::float8_e8m0fnu, has_nonfinite, in_loop> {
 public:
  explicit FloatEncoder(const Policy& policy) : lane16_(policy) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& x) const {
    lane16_.store_block(dst, {odd_high_u16(x.a, x.b), odd_high_u16(x.c, x.d)});
  }

 private:
  Lane16Encoder<DType::bfloat16, DType::float8_e8m0fnu> lane16_;
};

template <bool has_nonfinite, bool in_loop>
class FloatEncoder<DType::bfloat16, has_nonfinite, in_loop> {
 public:
  explicit FloatEncoder(const Policy&) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& x) const {
    const Block<I32> rounded = map(x, [](F32 loaded) {
      const F32 lanes = kept<in_loop>(loaded);  // g++ would load it for each use, and unaligned loads are slow
      const U32 bits = as<U32>(lanes);          // unsigned, as NaN may carry out of the lane
      const U32 nearest_even = bits + 0x7fff + ((bits >> 16) & 1);
      if constexpr (!has_nonfinite) return as<I32>(nearest_even);
      return select(is_nan(lanes), as<I32>(bits | 0x00400000), as<I32>(nearest_even));
    });
    store(dst, pack_high_u16(rounded.a, rounded.b));
    store(dst + kRegisterBytes, pack_high_u16(rounded.c, rounded.d));
  }
};

template <bool has_nonfinite, bool in_loop>
class FloatEncoder<DType::float16, has_nonfinite, in_loop> {
 public:
  explicit FloatEncoder(const Policy&) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& x) const {
    constexpr int unit = kRegisterBytes / 2;
    store(dst, float16_codes(x.a));
    store(dst + unit, float16_codes(x.b));
    store(dst + 2 * unit, float16_codes(x.c));
    store(dst + 3 * unit, float16_codes(x.d));
  }
};

template <bool has_nonfinite, bool in_loop>
class FloatEncoder<DType::float32, has_nonfinite, in_loop> {
 public:
  explicit FloatEncoder(const Policy&) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& x) const { store_units(dst, x); }
};

// A lane is 0 if the source is zero, of either sign.
template <DType from, class Unit>
SIMD_INLINE I32 nonzero_bits(Unit x) {
  if constexpr (from == DType::float64) {
    const I64x2 bits = {as<I64>(x.lo), as<I64>(x.hi)};
    return low_u32(bits) | (high_u32(bits) << 1);
  } else if constexpr (is_float<from>) {
    return as<I32>(x) << 1;
  } else if constexpr (bits_of<from> == 64) {
    return low_u32(x) | high_u32(x);
  } else {
    return x;
  }
}

// float8_e8m0fnu from types whose positive numbers are normal float32 numbers within 2^-24 and 2^64: nothing to clamp.
template <DType from>
class E8m0Encoder {
  static constexpr bool is_exact = bits_of<from> == 16;  // float32 holds the source
  static constexpr bool is_signed = is_signed_type<from>;
  static constexpr std::int32_t code_of_one = 127;

 public:
  explicit E8m0Encoder(const Policy& policy)
      : outside_(splat(policy.saturate ? 0 : 0xff)),
        largest_(splat(policy.saturate ? 0xfe : 0xff)),
        nan_above_(splat(policy.saturate && policy.keeps_infinity ? 0x7f7fffff : 0x7f800000)) {
    // Rounding up gives an integer above 1 the exponent of its predecessor plus one.
    const bool up = policy.e8m0_rounding == RoundMode::up;
    const bool down = policy.e8m0_rounding == RoundMode::down;
    round_up_ = splat(down ? 0 : !up ? 0x400000 : is_exact ? 0x7fffff : 0x800000);
    step_back_ = up ? 1 : 0;
    least_bits_ = splat(up && !is_exact ? 0 : 1);
  }

  template <class Unit>
  SIMD_INLINE void store_block(std::byte* dst, const Block<Unit>& x) const {
    if constexpr (is_float<from>) {
      const Block<I32> magnitudes = map(x, [](F32 lanes) { return as<I32>(lanes) & INT32_MAX; });
      const I32 greatest = max(max(magnitudes.a, magnitudes.b), max(magnitudes.c, magnitudes.d));
      if (any(greater(greatest, splat(0x7f7fffff)))) [[unlikely]]
        return store(dst, pack_bytes(map(x, [this](F32 lanes) { return code_of_any(as<I32>(lanes)); })));
    }
    store(dst, pack_bytes(map(x, [this](Unit unit) { return code(unit); })));
  }

 private:
  // 1. Makes a float32 with the sign, exponent and first mantissa bit of the source or its predecessor.
  // 2. Adds round_up_, which carries into the exponent if the mode rounds up.
  // 3. Numbers that are not positive become outside_.
  template <class Unit>
  SIMD_INLINE I32 code(Unit x) const {
    if constexpr (is_exact) {
      I32 bits;
      if constexpr (is_float<from>) {
        bits = as<I32>(x);
      } else {
        bits = as<I32>(to_f32<true>(x));
      }
      return select(greater(bits, I32{}), rounded(bits) >> 23, outside_);
    } else {
      const I32 bits = leading_bits(x);
      const I32 exponent = max(rounded(bits) >> 23, splat(code_of_one));
      if constexpr (is_signed) return select(greater(least_bits_, bits), outside_, exponent);
      return select(equal(nonzero_bits<from>(x), I32{}), outside_, exponent);
    }
  }
  // Wraps for infinities and NaN, whose codes code_of_any() replaces.
  SIMD_INLINE I32 rounded(I32 bits) const { return as<I32>(as<U32>(bits) + as<U32>(round_up_)); }
  // As code(), also for infinities and NaN.
  SIMD_INLINE I32 code_of_any(I32 bits) const {
    const I32 ordinary = select(equal(bits, splat(0x7f800000)), largest_, code(as<F32>(bits)));
    return select(greater(bits & INT32_MAX, nan_above_), splat(0xff), ordinary);
  }

  SIMD_INLINE I32 leading_bits(I32 x) const {
    return as<I32>(to_f32_leading<is_signed>(as<I32>(before(as<U32>(x), INT32_MIN))));
  }
  SIMD_INLINE I32 leading_bits(I64x2 x) const {
    return as<I32>(to_f32_leading<is_signed>(
        I64x2{as<I64>(before(as<U64>(x.lo), INT64_MIN)), as<I64>(before(as<U64>(x.hi), INT64_MIN))}));
  }
  // The predecessor. That of 0 is -1; negative numbers stay negative, the least one too.
  template <class Lanes, class Sign>
  SIMD_INLINE Lanes before(Lanes x, Sign sign) const {
    const Lanes y = x - step_back_;
    if constexpr (is_signed) return y | (x & static_cast<std::make_unsigned_t<Sign>>(sign));
    return y;
  }

  I32 outside_;
  I32 largest_;
  I32 nan_above_;
  I32 round_up_;
  I32 least_bits_;
  std::uint32_t step_back_;
};

// float8_e8m0fnu from float64, in 32-bit lanes of its upper halves: floats with 20 mantissa bits. The last bit is set
// if the lower half is not zero, so that the halves round as the float64 does.
class E8m0OfFloat64Encoder {
  static constexpr int mantissa_bits = 20;
  static constexpr int bias = 1023;
  static constexpr std::int32_t least = (bias - 127) << mantissa_bits;
  static constexpr std::int32_t largest = (bias + 127) << mantissa_bits;
  static constexpr std::int32_t infinity = 0x7ff00000;

 public:
  explicit E8m0OfFloat64Encoder(const Policy& policy)
      // The code of `least` is 0.
      : round_up_(splat((policy.e8m0_rounding == RoundMode::up     ? (1 << mantissa_bits) - 1
                         : policy.e8m0_rounding == RoundMode::down ? 0
                                                                   : 1 << (mantissa_bits - 1)) -
                        least)),
        nan_above_(splat(policy.saturate && policy.keeps_infinity ? infinity - 1 : infinity)),
        makes_nan_(mask_if(!policy.saturate)) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F64x2>& x) const {
    store(dst, pack_bytes(map(x, [this](F64x2 lanes) { return code(lanes); })));
  }

 private:
  SIMD_INLINE I32 code(F64x2 x) const {
    const I64x2 whole = {as<I64>(x.lo), as<I64>(x.hi)};
    const I32 upper = high_u32(whole);
    const I32 bits = select(equal(low_u32(whole), I32{}), upper, upper | 1);
    // As integers, negative numbers clamp to `least`; then as E8m0Encoder.
    const I32 clamped = min(max(bits, splat(least)), splat(largest));
    const I32 exponent = (clamped + round_up_) >> mantissa_bits;
    const Mask32 outside = greater(as<U32>(bits) - least, as<U32>(splat(largest - least)));
    const Mask32 nan = greater(bits & INT32_MAX, nan_above_);
    return select(mask_or(nan, mask_and(outside, makes_nan_)), splat(0xff), exponent);
  }

  I32 round_up_;
  I32 nan_above_;
  Mask32 makes_nan_;
};

// --- Both steps

template <DType from, DType to, bool in_loop>
class EncoderThroughFloat32 {
 public:
  explicit EncoderThroughFloat32(const Policy& policy) : codes_(policy) {}

  template <class Unit>
  SIMD_INLINE void store_block(std::byte* dst, const Block<Unit>& x) const {
    codes_.store_block(dst, map(x, [](Unit unit) { return float32_hub<from, to>(unit); }));
  }

 private:
  FloatEncoder<to, is_float<from>, in_loop> codes_;
};

template <DType from>
struct Float64Encoder {
  explicit Float64Encoder(const Policy&) {}

  template <class Unit>
  SIMD_INLINE void store_block(std::byte* dst, const Block<Unit>& x) const {
    store_unit_pairs(dst, map(x, [](Unit unit) { return float64_hub<from>(unit); }));
  }
};

// --- Bool

template <DType from, class Unit>
SIMD_INLINE I32 is_nonzero(Unit x) {
  return select(equal(nonzero_bits<from>(x), I32{}), I32{}, splat(1));
}

template <DType from>
struct BoolEncoder {
  explicit BoolEncoder(const Policy&) {}

  template <class Unit>
  SIMD_INLINE void store_block(std::byte* dst, const Block<Unit>& x) const {
    store(dst, pack_bytes(map(x, [](Unit unit) { return is_nonzero<from>(unit); })));
  }
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
