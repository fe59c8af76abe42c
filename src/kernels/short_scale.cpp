// Which side of a boundary B the product of x and the scale s is on depends on which side of B / x the scale is on.
// These quotients are sparse: with x < 2^a and B < 2^c as integers, two of them differ by a factor of more than 1 +
// 2^-(a+c). So another scale t does as well, if it is between the same two quotients, and if rounding the product to
// float32, which changes it by up to 2^-24 of itself, cannot reach B. With a + c <= 21 and d = 1.5 * 2^-23:
// 1. Quotients more than d away from s: t is s, rounded to float32. From the quotient it is still 2^-23 away.
// 2. A quotient B / x within d of s (s itself is none, as it has more digits than B): t is d further from it than s is,
//    rounded. That is from 2^-23 to 3.5 * 2^-23 away from it, and 2^-24 or more from the next.
// By Legendre's theorem, a quotient within 1 / (2 B x) of s, which is more than d, is a convergent of s's continued
// fraction. A power of two between B and x is either of two, for which c and a are their full lengths.
#include "kernels/short_scale.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace tensorcast::kernels {
namespace {

constexpr double near = 1.5 * 0x1p-23;

using Uint128 = unsigned __int128;

Uint128 divide(Uint128 dividend, Uint128 divisor) {
  if ((dividend | divisor) >> 64 == 0)
    return static_cast<std::uint64_t>(dividend) / static_cast<std::uint64_t>(divisor);
  return dividend / divisor;
}

// Whether number / unit has a convergent of such lengths near it: 1 if that is smaller, -1 if it is greater, else 0.
int side_of_quotient(Uint128 number, Uint128 unit, int numerator_digits, int denominator_digits) {
  Uint128 dividend = number, divisor = unit;
  std::uint64_t numerator = 1, last_numerator = 0;
  std::uint64_t denominator = 0, last_denominator = 1;
  for (int side = 1; divisor != 0; side = -side) {
    const Uint128 quotient = divide(dividend, divisor);
    if (quotient >> 21 != 0) return 0;
    const auto factor = static_cast<std::uint64_t>(quotient);
    const Uint128 rest = dividend - quotient * divisor;
    const std::uint64_t next_numerator = factor * numerator + last_numerator;
    const std::uint64_t next_denominator = factor * denominator + last_denominator;
    if (next_numerator >> numerator_digits != 0 || next_denominator >> denominator_digits != 0) return 0;
    last_numerator = numerator;
    numerator = next_numerator;
    last_denominator = denominator;
    denominator = next_denominator;
    // |number * denominator - unit * numerator| is the rest.
    if (static_cast<double>(rest) <= near * static_cast<double>(unit) * static_cast<double>(numerator)) return side;
    dividend = divisor;
    divisor = rest;
  }
  return 0;
}

float find(double scale, int source_digits, int boundary_digits) {
  // The significand, from 1 to 2, times 2^(c - a) and half of that.
  const auto significand = (std::bit_cast<std::uint64_t>(scale) & 0xfffffffffffff) | 0x10000000000000;
  const int shift = boundary_digits - source_digits;
  int side = 0;
  for (const int power : {shift, shift - 1}) {
    const Uint128 number = Uint128{significand} << (power > 0 ? power : 0);
    const Uint128 unit = Uint128{1} << (52 + (power < 0 ? -power : 0));
    side = side_of_quotient(number, unit, boundary_digits, source_digits);
    if (side != 0) break;
  }
  return static_cast<float>(scale * (1.0 + side * near));
}

}  // namespace

std::optional<float> short_scale(double scale, int source_digits, int boundary_digits) noexcept {
  if (source_digits + boundary_digits > 21) return std::nullopt;
  return find(scale, source_digits, boundary_digits);
}

}  // namespace tensorcast::kernels
