// Which side of a boundary B the product of x and the scale s is on depends on which side of B / x the scale is on.
// These quotients are sparse: with x < 2^a and B < 2^c as integers, two of them differ by a factor of more than 1 +
// 2^-(a+c). So another scale t does as well, if it is between the same two quotients, and if rounding the product to
// float32, which changes it by up to 2^-24 of itself, cannot reach B. With a + c <= 21 and d = 1.5 * 2^-23:
// 1. Quotients more than d away from s: t is s, rounded to float32. From the quotient it is still 2^-23 away.
// 2. A quotient B / x within d of s (s itself is none, as it has more digits than B): t is d further from it than s is,
//    rounded. That is from 2^-23 to 3.5 * 2^-23 away from it, and 2^-24 or more from the next.
// By Legendre's theorem, a quotient within 1 / (2 B x) of s, which is more than d, is a convergent of s's continued
// fraction. A power of two between B and x is either of two, for which c and a are their full lengths.
//
// Products that are cut off need no distance from B: t is s cut to p digits, 48 - a of them, so that x times what
// float32 does not hold of t has 24. It does as well if no quotient is between the two; else t is the next of p digits,
// and no quotient is between that and s, as two would be nearer to each other than 2^-(a+c). With a + c <= p - 2, the
// quotient is a convergent again.
//
// A scale in words is cut to 16 digits or the next number of as many. One is not smaller than the other, so that no
// integer's product is, cut off or not: if the products cut off have the same sum, all are the same.
#include "kernels/short_scale.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace tensorcast::kernels {
namespace {

constexpr double near_float = 1.5 * 0x1p-23;

using Uint128 = unsigned __int128;

Uint128 divide(Uint128 dividend, Uint128 divisor) {
  if ((dividend | divisor) >> 64 == 0)
    return static_cast<std::uint64_t>(dividend) / static_cast<std::uint64_t>(divisor);
  return dividend / divisor;
}

// Whether number / unit has a convergent of such lengths near it: 1 if that is smaller, -1 if it is greater, else 0.
int side_of_quotient(Uint128 number, Uint128 unit, int numerator_digits, int denominator_digits, double near) {
  Uint128 dividend = number, divisor = unit;
  std::uint64_t numerator = 1, last_numerator = 0;
  std::uint64_t denominator = 0, last_denominator = 1;
  for (int side = 1; divisor != 0; side = -side) {
    const Uint128 quotient = divide(dividend, divisor);
    if (quotient >> 24 != 0) return 0;
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

int side_of_quotient(double scale, int source_digits, int boundary_digits, double near) {
  // The significand, from 1 to 2, times 2^(c - a) and half of that.
  const auto significand = (std::bit_cast<std::uint64_t>(scale) & 0xfffffffffffff) | 0x10000000000000;
  const int shift = boundary_digits - source_digits;
  for (const int power : {shift, shift - 1}) {
    const Uint128 number = Uint128{significand} << (power > 0 ? power : 0);
    const Uint128 unit = Uint128{1} << (52 + (power < 0 ? -power : 0));
    const int side = side_of_quotient(number, unit, boundary_digits, source_digits, near);
    if (side != 0) return side;
  }
  return 0;
}

// Cut to `digits`, or the next number of as many.
std::optional<double> cut_to(int digits, double scale, int source_digits, int boundary_digits) {
  const auto bits = std::bit_cast<std::uint64_t>(scale);
  const std::uint64_t last = std::uint64_t{1} << (53 - digits);
  std::uint64_t cut = bits & ~(last - 1);
  if (cut != bits) {
    if (source_digits + boundary_digits > digits - 2) return std::nullopt;
    const double near = std::ldexp(1.0, 1 - digits);
    if (side_of_quotient(scale, source_digits, boundary_digits, near) > 0) cut += last;
  }
  return std::bit_cast<double>(cut);
}

// The sum of i * number / unit, each rounded down, for i from 0 on, `count` of them, which is up to 2^16: the points
// with whole coordinates below a line. Those that a whole slope and a whole height have below it are counted at once;
// for the rest, the coordinates change places, which leaves fewer each time.
std::uint64_t sum_of_quotients(std::uint64_t count, Uint128 number, Uint128 unit) {
  std::uint64_t sum = 0;
  for (Uint128 first = 0;;) {  // where the line begins, times the unit
    sum += count * (count - 1) / 2 * static_cast<std::uint64_t>(divide(number, unit));
    number -= divide(number, unit) * unit;
    sum += count * static_cast<std::uint64_t>(divide(first, unit));
    first -= divide(first, unit) * unit;
    const Uint128 last = number * count + first;
    if (last < unit) return sum;
    count = static_cast<std::uint64_t>(divide(last, unit));
    first = last - count * unit;
    std::swap(number, unit);
  }
}

}  // namespace

std::optional<float> short_scale(double scale, int source_digits, int boundary_digits) noexcept {
  if (source_digits + boundary_digits > 21) return std::nullopt;
  const int side = side_of_quotient(scale, source_digits, boundary_digits, near_float);
  return static_cast<float>(scale * (1.0 + side * near_float));
}

std::optional<CutScale> cut_scale(double scale, int source_digits, int integer_digits) noexcept {
  const int low_digits = 24 - source_digits;
  const std::optional<double> cut = cut_to(24 + low_digits, scale, source_digits, integer_digits);
  if (!cut) return std::nullopt;
  const auto high = std::bit_cast<double>(std::bit_cast<std::uint64_t>(*cut) >> 29 << 29);
  const double low = *cut - high;
  // Not zero, for infinite numbers; so small that cutting off does not see it.
  return CutScale{static_cast<float>(high), static_cast<float>(low == 0.0 ? high * 0x1p-60 : low)};
}

std::optional<float> short_cut_scale(double scale, int source_digits, int boundary_digits) noexcept {
  const std::optional<double> cut = cut_to(24, scale, source_digits, boundary_digits);
  return cut ? std::optional<float>(static_cast<float>(*cut)) : std::nullopt;
}

std::optional<WordScale> word_scale(double scale, std::uint16_t greatest) noexcept {
  const double size = std::fabs(scale);
  if (!(size >= 0x1p-16 && size < 1.0)) return std::nullopt;
  const int shift = -1 - std::ilogb(size);
  const auto significand = (std::bit_cast<std::uint64_t>(scale) & 0xfffffffffffff) | 0x10000000000000;
  const std::uint64_t cut = significand >> 37;
  const std::uint64_t count = std::uint64_t{greatest} + 1;
  const Uint128 unit = Uint128{1} << (53 + shift);
  const bool is_exact = cut << 37 == significand;
  const std::uint64_t sum = is_exact ? 0 : sum_of_quotients(count, significand, unit);
  for (const std::uint64_t multiplier : {cut, cut + 1}) {
    if (multiplier >> 16 != 0) break;
    if (is_exact || sum_of_quotients(count, Uint128{multiplier} << 37, unit) == sum)
      return WordScale{static_cast<std::uint16_t>(multiplier), shift};
  }
  return std::nullopt;
}

}  // namespace tensorcast::kernels
