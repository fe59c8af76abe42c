// The shortest decimal that reads back as a float, and of those the closest: Raffaello Giulietti's Schubfach.
#pragma once

#include <cstdint>

namespace tensorcast::codec {

// digits * 10^exponent; the digits may end in zeros.
struct ShortestDecimal {
  std::uint64_t digits = 0;
  int exponent = 0;
};

// Precondition: value is finite and greater than zero.
[[nodiscard]] ShortestDecimal shortest_decimal(float value) noexcept;
[[nodiscard]] ShortestDecimal shortest_decimal(double value) noexcept;

}  // namespace tensorcast::codec
