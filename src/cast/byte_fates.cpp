#include "cast/byte_fates.hpp"

#include <bit>

namespace tensorcast {
namespace {

constexpr int least_power_exponent = 60;

}  // namespace

std::optional<Square> square_of(long double x, bool splits) {
  const auto number = static_cast<double>(x);
  if (number == 0.0 && x == 0.0L) return Square{};
  constexpr int mantissa_bits = 52, bias = 1075;
  const auto bits = std::bit_cast<std::uint64_t>(number);
  const int exponent = static_cast<int>(bits >> mantissa_bits & 0x7ff);
  if (static_cast<long double>(number) != x || exponent == 0) return std::nullopt;
  std::uint64_t significand = (bits & ((std::uint64_t{1} << mantissa_bits) - 1)) | std::uint64_t{1} << mantissa_bits;
  const int zeros = std::countr_zero(significand);
  significand >>= zeros;
  Square square{.exponent = 2 * (exponent - bias + zeros)};
  const int leading = std::bit_width(significand) - 1;
  if (splits && square.exponent + 2 * leading >= least_power_exponent) {  // x^2 = power^2 + rest (2 power + rest)
    const std::uint64_t rest = significand - (std::uint64_t{1} << leading);
    if (std::bit_width(rest) + leading + 2 > 64) return std::nullopt;
    square.significand = rest * ((std::uint64_t{2} << leading) + rest);
    square.has_power = true;
    square.power_exponent = square.exponent + 2 * leading;
    return square;
  }
  if (significand >> 32 != 0) return std::nullopt;
  square.significand = significand * significand;
  return square;
}

bool Squares::set(std::size_t code, long double x, bool splits) {
  const std::optional<Square> square = square_of(x, splits);
  if (!square) return false;
  squares_[code] = *square;
  if (square->has_power) {
    if (has(of_powers) && scales_[of_powers].unit != square->power_exponent) return false;
    scales_[of_powers] = {square->power_exponent, square->power_exponent + 1};
  }
  if (square->significand == 0) return true;
  Scale& scale = scales_[scale_of(*square)];
  scale.unit = std::min(scale.unit, square->exponent);
  scale.end = std::max(scale.end, square->exponent + static_cast<int>(std::bit_width(square->significand)));
  return scale.end - scale.unit <= max_bits;
}

void Fates::set_squares() {
  const auto set_all = [&](Squares& squares, auto&& number) {
    for (const bool splits : {false, true}) {
      squares = Squares();
      bool fits = true;
      for (std::size_t code = 0; fits && code < byte_values; ++code) {
        fits = squares.set(code, number(of[code]), splits);
      }
      if (fits) return true;
    }
    return false;
  };
  are_squares_exact = set_all(signal, [](const CodeFate& fate) { return fate.source; }) &&
                      set_all(noise, [](const CodeFate& fate) { return fate.error; });
}

}  // namespace tensorcast
