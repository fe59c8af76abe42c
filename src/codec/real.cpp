// SPDX-License-Identifier: Apache-2.0
#include "codec/real.hpp"

#include <bit>

#include "codec/float_codec.hpp"

namespace tensorcast::codec {
namespace {

int leading_zeros(uint128 value) noexcept {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<std::uint64_t>(value));
}

Real product(const Real& a, const Real& b) noexcept {
  // b comes from a double: its low 64 significand bits are zero, so that the product has 192 bits.
  const auto factor = static_cast<std::uint64_t>(b.significand >> 64);
  const uint128 low = (a.significand & ~std::uint64_t{0}) * factor;
  const uint128 top = (a.significand >> 64) * factor + (low >> 64);
  const auto rest = static_cast<std::uint64_t>(low);
  const bool negative = a.negative != b.negative;
  const int exponent = a.exponent + b.exponent + 128;
  if (top >> 127 != 0) return Real::Finite(negative, top, exponent, rest != 0 || a.sticky);
  return Real::Finite(negative, top << 1 | rest >> 63, exponent - 1, rest << 1 != 0 || a.sticky);
}

}  // namespace

Real Real::Finite(bool negative, uint128 magnitude, int exponent, bool sticky) noexcept {
  if (magnitude == 0) return Zero(negative);
  const int shift = leading_zeros(magnitude);
  return {.kind = Kind::finite,
          .negative = negative,
          .significand = magnitude << shift,
          .exponent = exponent - shift,
          .sticky = sticky};
}

SplitMagnitude split_at(const Real& value, int place) noexcept {
  const int shift = place - value.exponent;
  if (shift > 128) {
    const uint128 first_bits = shift < 160 ? value.significand >> (shift - 32) : 0;
    return {.whole = 0, .tail = Real::Tail::below_half, .tail_bits = static_cast<std::uint32_t>(first_bits)};
  }
  const uint128 whole = shift == 128 ? 0 : value.significand >> shift;
  const uint128 half = uint128{1} << (shift - 1);
  const uint128 cut = value.significand & (half | (half - 1));
  if (cut == 0 && !value.sticky) return {.whole = whole, .tail = Real::Tail::none};
  const auto first_bits = static_cast<std::uint32_t>(shift < 32 ? cut << (32 - shift) : cut >> (shift - 32));
  if (cut < half) return {.whole = whole, .tail = Real::Tail::below_half, .tail_bits = first_bits};
  return {.whole = whole,
          .tail = cut == half && !value.sticky ? Real::Tail::half : Real::Tail::above_half,
          .tail_bits = first_bits};
}

uint128 rounded(const SplitMagnitude& magnitude, bool negative, const RoundingStep& step) noexcept {
  using Tail = Real::Tail;
  const bool is_odd = (magnitude.whole & 1) != 0;
  bool up = false;
  switch (step.word) {
    case Rounding::automatic:
    case Rounding::nearest_even:
      up = magnitude.tail == Tail::above_half || (magnitude.tail == Tail::half && is_odd);
      break;
    case Rounding::nearest_away:
      up = magnitude.tail >= Tail::half;
      break;
    case Rounding::toward_zero:
      break;
    case Rounding::toward_positive:
      up = magnitude.tail != Tail::none && !negative;
      break;
    case Rounding::toward_negative:
      up = magnitude.tail != Tail::none && negative;
      break;
    case Rounding::to_odd:
      up = magnitude.tail != Tail::none && !is_odd;
      break;
    case Rounding::stochastic:
      up = magnitude.tail_bits > ~step.random;
      break;
  }
  return magnitude.whole + (up ? 1 : 0);
}

Real scaled(const Real& value, double scale) noexcept {
  const Real factor = decode_float(DType::float64, std::bit_cast<std::uint64_t>(scale));
  const bool negative = value.negative != factor.negative;
  switch (value.kind) {
    case Real::Kind::nan:
      return value;
    case Real::Kind::infinite:
      return factor.kind == Real::Kind::zero ? Real::NaN(false) : Real::Infinite(negative);
    case Real::Kind::zero:
      return Real::Zero(negative);
    case Real::Kind::finite:
      break;
  }
  return factor.kind == Real::Kind::zero ? Real::Zero(negative) : product(value, factor);
}

}  // namespace tensorcast::codec
