// What becomes of each code of a type of 8 bits or fewer, with its squares as integers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "cast/report_codes.hpp"
#include "codec/real.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast {

using codec::uint128;

inline constexpr std::size_t byte_values = 256;

// significand * 2^exponent, and 2^power_exponent if it has that: of the error 2^32 + 1/8, say, of negative numbers that
// wrap.
struct Square {
  std::uint64_t significand = 0;
  int exponent = 0;
  bool has_power = false;
  int power_exponent = 0;
};

// None where it has too many bits. Of large numbers, the power may be split off, which leaves fewer.
[[nodiscard]] std::optional<Square> square_of(long double x, bool splits);

// Squares as integers of few enough bits that any number of them adds up in 128. Counted apart from the others, in
// units of their own: tiny ones, as of the error of zeros that become 2^-127; and the powers, of which there is one
// kind.
inline constexpr std::size_t square_scales = 3;
struct SquareSums {
  std::array<uint128, square_scales> units = {};
};
class Squares {
 public:
  // Of no use after false.
  [[nodiscard]] bool set(std::size_t code, long double x, bool splits);
  void add(std::size_t code, std::uint64_t times, SquareSums& sums) const {
    for (std::size_t scale = 0; scale < scales_.size(); ++scale) sums.units[scale] += in_units(code, scale) * times;
  }
  // Zero for those of the other scale.
  [[nodiscard]] uint128 in_units(std::size_t code, std::size_t scale) const {
    const Square& square = squares_[code];
    if (scale == of_powers) return square.has_power ? 1 : 0;
    if (square.significand == 0 || scale_of(square) != scale) return 0;
    return uint128{square.significand} << (square.exponent - scales_[scale].unit);
  }
  // Whether any has the scale.
  [[nodiscard]] bool has(std::size_t scale) const { return scales_[scale].unit < scales_[scale].end; }
  // By how many bits the unit is finer than that of the others; none where either has none.
  [[nodiscard]] std::optional<int> bits_below(const Squares& other, std::size_t scale) const {
    if (!has(scale) || !other.has(scale)) return std::nullopt;
    return other.scales_[scale].unit - scales_[scale].unit;
  }
  [[nodiscard]] double value(const SquareSums& sums) const {
    double value = 0.0;
    for (std::size_t scale = 0; scale < scales_.size(); ++scale) {
      if (sums.units[scale] != 0) value += std::ldexp(static_cast<double>(sums.units[scale]), scales_[scale].unit);
    }
    return value;
  }

 private:
  struct Scale {
    int unit = std::numeric_limits<int>::max() / 2;
    int end = std::numeric_limits<int>::min() / 2;
  };
  static constexpr std::size_t of_powers = 2;
  static constexpr int max_bits = 80;
  static constexpr int tiny_exponent = -200;

  static std::size_t scale_of(const Square& square) { return square.exponent < tiny_exponent ? 1 : 0; }

  std::array<Square, byte_values> squares_ = {};
  std::array<Scale, square_scales> scales_;
};

struct Fates {
  std::array<CodeFate, byte_values> of = {};
  // All squares as integers, if they have few enough bits.
  Squares signal, noise;
  bool are_squares_exact = false;

  void set_squares();
};

inline std::size_t codes_per_byte(DType dtype) { return 8 / static_cast<std::size_t>(bit_width(dtype)); }

inline std::size_t code_in(DType dtype, std::size_t byte, std::size_t index) {
  const auto bits = static_cast<std::size_t>(bit_width(dtype));
  return byte >> (index * bits) & ((std::size_t{1} << bits) - 1);
}

}  // namespace tensorcast
