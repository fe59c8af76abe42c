// Powers of ten to 128 bits, for printing floats.
#pragma once

#include <cstdint>

namespace tensorcast::codec {

inline constexpr int min_power_of_ten = -292;
inline constexpr int max_power_of_ten = 324;

// 10^k lies in (significand - 1, significand] * 2^(floor_log2_of_power_of_ten(k) - 127), top bit set.
struct PowerOfTen {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  // The same to 64 bits, rounded up as well.
  [[nodiscard]] std::uint64_t to_64_bits() const noexcept { return high + (low != 0 ? 1 : 0); }
};

// Precondition: min_power_of_ten <= k <= max_power_of_ten.
[[nodiscard]] const PowerOfTen& power_of_ten(int k) noexcept;

// Logarithms rounded down, by multiplication with 1262611 / 2^22 = log10(2) and 1741647 / 2^19 = log2(10), each good
// for |argument| <= 1500; 524031 / 2^22 = -log10(3/4).
[[nodiscard]] constexpr int floor_log10_of_power_of_two(int e) { return e * 1262611 >> 22; }
[[nodiscard]] constexpr int floor_log10_of_three_quarters_power_of_two(int e) { return (e * 1262611 - 524031) >> 22; }
[[nodiscard]] constexpr int floor_log2_of_power_of_ten(int k) { return k * 1741647 >> 19; }

}  // namespace tensorcast::codec
