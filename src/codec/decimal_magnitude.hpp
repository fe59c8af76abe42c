// Decimal numbers of any length as exact values: the arithmetic under reading text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "codec/real.hpp"

namespace tensorcast::codec {

// digits * 10^exponent * |scale|, with the sign given. `digits` are decimal digits with at most one point among them.
// Cost: linear in the digits, whatever the exponent. Precondition: scale is finite and not zero.
[[nodiscard]] Real decimal_to_real(bool negative, std::string_view digits, std::int64_t exponent, double scale);

// A magnitude in limbs of nine decimal digits, a decimal point between two limbs.
class DecimalMagnitude {
 public:
  // `digits` as above, from the first digit that is not zero to the last one, the last of weight 10^last_power.
  DecimalMagnitude(std::string_view digits, std::int64_t first_power, std::int64_t last_power);

  void multiply(std::uint64_t factor);  // below 2^53
  void multiply_power_of_two(int power);
  [[nodiscard]] Real to_real(bool negative) const;

 private:
  [[nodiscard]] std::uint64_t low_bits_of_whole() const;
  [[nodiscard]] Real::Tail fraction_tail() const;

  std::vector<std::uint32_t> limbs_;  // least significant first
  std::size_t fraction_limbs_ = 0;    // of them, those behind the point; never more than there are
};

}  // namespace tensorcast::codec
