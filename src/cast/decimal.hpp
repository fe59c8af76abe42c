// Exact decimal numbers of any length: enough arithmetic to say by how much a conversion missed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcast {

class Decimal {
 public:
  Decimal() = default;  // zero

  // significand * 2^exponent. Every binary fraction is a finite decimal: 2^-k = 5^k / 10^k.
  [[nodiscard]] static Decimal FromBinary(bool negative, unsigned __int128 significand, int exponent);
  // The exact value of a finite double.
  [[nodiscard]] static Decimal FromDouble(double value);
  // The number that `literal` spells: [+-] digits [. digits] [e [+-] digits]. Nothing if writing it out takes more than
  // `max_digits` digits. Precondition: the literal is well formed.
  [[nodiscard]] static std::optional<Decimal> parse(std::string_view literal, std::size_t max_digits);

  [[nodiscard]] bool is_zero() const { return limbs_.empty(); }
  [[nodiscard]] bool is_negative() const { return negative_; }  // -0 included

  [[nodiscard]] Decimal operator*(const Decimal& other) const;
  [[nodiscard]] Decimal operator-(const Decimal& other) const;

  // |this| / |other| to double precision; infinite when only `other` is zero, 0 when both are.
  [[nodiscard]] double magnitude_ratio(const Decimal& other) const;
  // Plain notation without superfluous zeros: "-0.5", "448", "0".
  [[nodiscard]] std::string to_string() const;

 private:
  void multiply(std::uint32_t factor);
  void multiply_power(std::uint32_t base, int power);
  void normalize();
  [[nodiscard]] std::uint32_t limb_at(std::int64_t position) const;

  // value = sum of limbs_[i] * 10^(9 * (i + exponent_)), least significant limb first, no zero limbs at either end.
  bool negative_ = false;
  std::vector<std::uint32_t> limbs_;
  std::int64_t exponent_ = 0;
};

}  // namespace tensorcast
