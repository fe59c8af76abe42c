// SPDX-License-Identifier: Apache-2.0
// Exact decimal numbers of any length: the value of a text, and the error of a conversion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/real.hpp"

namespace tensorcast::codec {

class Decimal {
 public:
  Decimal() = default;  // zero

  // digits * 10^exponent. `digits` are decimal digits with at most one point among them.
  [[nodiscard]] static Decimal FromDigits(bool negative, std::string_view digits, std::int64_t exponent);
  // significand * 2^exponent. Every binary fraction is a finite decimal: 2^-k = 5^k / 10^k.
  [[nodiscard]] static Decimal FromBinary(bool negative, unsigned __int128 significand, int exponent);
  // The exact value of a finite double.
  [[nodiscard]] static Decimal FromDouble(double value);
  // The number that `literal` spells in D8's grammar, or nothing if writing it out takes more than `max_digits` digits.
  // Precondition: the literal is a finite number without white space around it.
  [[nodiscard]] static std::optional<Decimal> parse(std::string_view literal, std::size_t max_digits);

  [[nodiscard]] bool is_zero() const { return limbs_.empty(); }
  [[nodiscard]] bool is_negative() const { return negative_; }  // -0 included

  [[nodiscard]] Decimal operator*(const Decimal& other) const;
  [[nodiscard]] Decimal operator-(const Decimal& other) const;

  // |this| / |other| to double precision; infinite when only `other` is zero, 0 when both are.
  [[nodiscard]] double magnitude_ratio(const Decimal& other) const;
  // The Real (codec/real.hpp) for one rounding to any type. A number far out of every type's range becomes another one.
  // Cost: linear in the digits.
  [[nodiscard]] Real to_real() const;
  // Plain notation without superfluous zeros: "-0.5", "448", "0".
  [[nodiscard]] std::string to_string() const;

 private:
  void multiply(std::uint32_t factor);
  void multiply_power(std::uint32_t base, int power);
  void normalize();

  // Positions count limbs from the decimal point: limb p weighs 10^(9 p).
  [[nodiscard]] std::int64_t top() const { return exponent_ + static_cast<std::int64_t>(limbs_.size()); }
  [[nodiscard]] std::uint32_t limb_at(std::int64_t position) const;

  // For to_real(): the low bits and fraction of a number with more integer digits than a Real holds.
  [[nodiscard]] std::uint64_t low_bits_of_whole() const;
  [[nodiscard]] Real::Tail fraction_tail() const;

  // value = sum of limbs_[i] * 10^(9 * (i + exponent_)), least significant limb first, no zero limbs at either end.
  bool negative_ = false;
  std::vector<std::uint32_t> limbs_;
  std::int64_t exponent_ = 0;
};

}  // namespace tensorcast::codec
