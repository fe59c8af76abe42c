// SPDX-License-Identifier: Apache-2.0
// The exact hub value of the specification: every element of every type is one of these.
#pragma once

#include <cstdint>

#include "tensorcast/cast_options.hpp"

namespace tensorcast::codec {

using uint128 = unsigned __int128;

struct Real {
  enum class Kind : std::uint8_t { zero, finite, infinite, nan };

  Kind kind = Kind::zero;
  bool negative = false;
  // finite: value = significand * 2^exponent, top bit of the significand set.
  // Exact, except that `sticky` says that a part below the last bit was cut off (decimal text, products):
  // 128 bits plus sticky are enough for one correct rounding to any type.
  unsigned __int128 significand = 0;
  int exponent = 0;
  bool sticky = false;
  // nan: the mantissa field's bits below the quiet bit, left-aligned (bit 63 is the first payload bit).
  std::uint64_t nan_payload = 0;

  // The part that was cut off, compared with half a unit of the last place.
  enum class Tail : std::uint8_t { none, below_half, half, above_half };
  // finite, sticky and exponent >= 0: integer bits were cut off, on which an integer that wraps depends.
  // |value| = integer part + fraction: the integer part's low 64 bits, and the fraction compared with 1/2.
  std::uint64_t integer_low_bits = 0;
  Tail fraction = Tail::none;

  [[nodiscard]] static Real Zero(bool negative) noexcept { return {.kind = Kind::zero, .negative = negative}; }
  [[nodiscard]] static Real Infinite(bool negative) noexcept { return {.kind = Kind::infinite, .negative = negative}; }
  [[nodiscard]] static Real NaN(bool negative, std::uint64_t payload = 0) noexcept {
    return {.kind = Kind::nan, .negative = negative, .nan_payload = payload};
  }
  // magnitude * 2^exponent, which may be zero.
  [[nodiscard]] static Real Finite(bool negative, uint128 magnitude, int exponent, bool sticky = false) noexcept;

  // Exponent of the leading bit: 2^leading_exponent() <= |value| < 2^(leading_exponent() + 1). Finite values only.
  [[nodiscard]] int leading_exponent() const noexcept { return exponent + 127; }
  [[nodiscard]] bool is_nan() const noexcept { return kind == Kind::nan; }
  // Less than zero: -0 and NaN are not.
  [[nodiscard]] bool is_below_zero() const noexcept {
    return negative && (kind == Kind::finite || kind == Kind::infinite);
  }
};

// A finite magnitude split at a binary place: |value| = (whole + tail) * 2^place.
struct SplitMagnitude {
  uint128 whole = 0;
  Real::Tail tail = Real::Tail::none;
  std::uint32_t tail_bits = 0;  // the first 32 bits of the tail
};

// Precondition: finite, and place > value.exponent.
[[nodiscard]] SplitMagnitude split_at(const Real& value, int place) noexcept;

// How one number is rounded (D16). `random`: the element's word, of stochastic rounding.
struct RoundingStep {
  Rounding word = Rounding::nearest_even;  // not automatic
  std::uint32_t random = 0;

  // Reports whether no number of this sign becomes greater in magnitude: numbers beyond the largest become the largest.
  [[nodiscard]] bool leads_to_zero(bool negative) const noexcept {
    return word == Rounding::toward_zero || word == Rounding::to_odd ||
           word == (negative ? Rounding::toward_positive : Rounding::toward_negative);
  }
};

// Even is a number whose last bit is 0, `negative` the sign of the whole number.
[[nodiscard]] uint128 rounded(const SplitMagnitude& magnitude, bool negative, const RoundingStep& step) noexcept;

[[nodiscard]] Real scaled(const Real& value, double scale) noexcept;  // exact product, or 128 bits plus sticky

}  // namespace tensorcast::codec
