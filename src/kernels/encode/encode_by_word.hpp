// SPDX-License-Identifier: Apache-2.0
// float32 to other types by a word of D16, in the default floating-point environment. Each class is for one kind of
// word, and stores blocks as encoders do.
#pragma once

#include "kernels/encode/encode_integer.hpp"
#include "kernels/rounding.hpp"
#include "kernels/simd/directed_float16.hpp"
#include "kernels/simd/sums.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

SIMD_INLINE U32 load_random(const std::uint32_t* words) { return load<U32>(reinterpret_cast<const std::byte*>(words)); }

// Reports for each lane whether the distance from the number toward zero, in units of the target's last place and below
// 1, and the random word carry.
SIMD_INLINE Mask32 carries(F32 distance, F32 two_to_32_units, const std::uint32_t* random) {
  return greater(load_random(random), ~truncate_to_uint32(distance * two_to_32_units));
}

// float8, float6 and float4 with a zero: FloatEncoder with another sum of the magnitude and the power of two whose last
// bit weighs as much as the target's.
template <DType to, WordKind kind>
class WordEncoder {
  using Codes = FloatEncoder<to, true>;
  static constexpr FloatFormat format = row(to).format;

 public:
  explicit WordEncoder(const Policy& policy) : codes_(policy_of_codes(policy)) {
    const Rounding word = policy.rounding;
    const auto limit_of = [&](Rounding down) {
      const bool leads_to_zero = word == Rounding::toward_zero || word == Rounding::to_odd || word == down;
      return splat(policy.saturate || !format.has_nan() || leads_to_zero ? Codes::largest : Codes::after_largest);
    };
    limit_ = keep_in_register(limit_of(Rounding::toward_negative));
    negative_limit_ = format.has_sign ? limit_of(Rounding::toward_positive) : limit_;
    flip_ = splat(word == Rounding::toward_positive ? INT32_MIN : 0);
  }

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& x, const std::uint32_t* random) const {
    const Block<I32> bits = map(x, [](F32 lanes) { return as<I32>(lanes); });
    const Block<I32> rounded = {code(bits.a, random), code(bits.b, random + kLanes), code(bits.c, random + 2 * kLanes),
                                code(bits.d, random + 3 * kLanes)};
    codes_.store_rounded(dst, bits, map(bits, [](I32 lanes) { return lanes & INT32_MAX; }), rounded);
  }

 private:
  // Infinity is not rounded: it may not become the limit of finite numbers, so it is encoded with NaN.
  static Policy policy_of_codes(Policy policy) {
    if (!policy.saturate) policy.saturate = policy.keeps_infinity = true;
    return policy;
  }

  SIMD_INLINE I32 code(I32 bits, const std::uint32_t* random) const {
    I32 limit = limit_;
    Mask32 up = mask_if(false);
    if constexpr (kind == WordKind::directed) {
      const I32 sign = format.has_sign ? bits ^ flip_ : flip_;
      up = greater(I32{}, sign);
      limit = select(greater(I32{}, bits), negative_limit_, limit_);
    }
    const I32 magnitude = min(bits & INT32_MAX, limit);
    const I32 exponent = max(magnitude & 0x7f800000, splat(Codes::least_exponent));
    const F32 power = as<F32>(exponent + (Codes::dropped_bits << 23)), number = as<F32>(magnitude);
    I32 sum;
    if constexpr (kind == WordKind::away) {  // what is added decides a tie and nothing else
      sum = as<I32>(add_nearest(as<F32>(magnitude | 1), power));
    } else if constexpr (kind == WordKind::directed) {
      sum = as<I32>(add_directed(up, number, power));
    } else if constexpr (kind == WordKind::odd) {
      sum = as<I32>(add_odd(number, power));
    } else {
      const F32 cut = add_to_zero(number, power);
      sum = as<I32>(cut);
      if constexpr (kind == WordKind::stochastic) {
        const F32 units =
            as<F32>(((286 + format.mantissa_bits) << 23) - exponent);  // 2^32 over the last place's weight
        sum = count_where(sum, carries(number - (cut - power), units, random));
      }
    }
    return sum + (exponent >> Codes::dropped_bits);
  }

  Codes codes_;
  I32 limit_, negative_limit_, flip_;
};

template <WordKind kind>
class WordEncoder<DType::bfloat16, kind> {
 public:
  explicit WordEncoder(const Policy& policy)
      : flip_(splat(policy.rounding == Rounding::toward_positive ? INT32_MIN : 0)) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& x, const std::uint32_t* random) const {
    store(dst, pack_high_u16(rounded(x.a, random), rounded(x.b, random + kLanes)));
    store(dst + kRegisterBytes, pack_high_u16(rounded(x.c, random + 2 * kLanes), rounded(x.d, random + 3 * kLanes)));
  }

 private:
  SIMD_INLINE I32 rounded(F32 x, const std::uint32_t* random) const {
    constexpr std::int32_t below = 0xffff;
    const I32 bits = as<I32>(x);
    U32 number = as<U32>(bits);  // unsigned, as NaN may carry out of the lane
    if constexpr (kind == WordKind::away) number += 0x8000;
    if constexpr (kind == WordKind::directed) number += as<U32>(((bits ^ flip_) >> 31) & below);
    if constexpr (kind == WordKind::odd) number |= as<U32>(((bits & below) + below) & 0x10000);
    if constexpr (kind == WordKind::stochastic) number += load_random(random) >> 16;
    return select(is_nan(x), bits | 0x00400000, as<I32>(number));
  }

  I32 flip_;
};

// Not stochastic: no conversion adds random bits.
template <WordKind kind>
class WordEncoder<DType::float16, kind> {
 public:
  explicit WordEncoder(const Policy& policy)
      : flip_(splat(policy.rounding == Rounding::toward_negative ? INT32_MIN : 0)),
        flip_code_(__builtin_convertvector(as<U32>(flip_) >> 16, U16h)) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& x, const std::uint32_t*) const {
    constexpr int unit = kRegisterBytes / 2;
    store(dst, codes(x.a));
    store(dst + unit, codes(x.b));
    store(dst + 2 * unit, codes(x.c));
    store(dst + 3 * unit, codes(x.d));
  }

 private:
  SIMD_INLINE U16h codes(F32 x) const {
    const I32 bits = as<I32>(x);
    if constexpr (kind == WordKind::away) {  // what is added decides a tie and nothing else
      return float16_codes(as<F32>(select(equal(bits & INT32_MAX, splat(0x7f800000)), bits, bits | 1)));
    } else if constexpr (kind == WordKind::directed) {  // down is up with the other sign
      return float16_codes_up(as<F32>(bits ^ flip_)) ^ flip_code_;
    } else if constexpr (kind == WordKind::odd) {  // of the two that a number is between, one is odd
      const I32 sign = bits & INT32_MIN;
      return float16_codes_to_zero(x) | (float16_codes_up(as<F32>(bits ^ sign)) & 1);
    } else {
      return float16_codes_to_zero(x);
    }
  }

  I32 flip_;
  U16h flip_code_;
};

// Numbers become integers, which FloatToIntegerEncoder then converts. Stochastic alone: it knows the other words.
template <DType to>
class WordOfIntegerEncoder {
 public:
  explicit WordOfIntegerEncoder(const Policy& policy) : codes_(policy_of_codes(policy)) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& x, const std::uint32_t* random) const {
    codes_.store_block(dst, {rounded(x.a, random), rounded(x.b, random + kLanes), rounded(x.c, random + 2 * kLanes),
                             rounded(x.d, random + 3 * kLanes)});
  }

 private:
  static Policy policy_of_codes(Policy policy) {
    policy.rounding = Rounding::automatic;
    return policy;
  }
  SIMD_INLINE static F32 rounded(F32 x, const std::uint32_t* random) {
    const I32 sign = as<I32>(x) & INT32_MIN;
    const F32 size = as<F32>(as<I32>(x) ^ sign), cut = round_to_integer<Rounding::toward_negative>(size);
    const F32 result = select(carries(size - cut, splat(0x1p32F), random), cut + 1.0F, cut);
    return as<F32>(as<I32>(result) | sign);
  }

  FloatToIntegerEncoder<DType::float32, to> codes_;
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
