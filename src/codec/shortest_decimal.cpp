#include "codec/shortest_decimal.hpp"

#include <bit>
#include <limits>

#include "codec/powers_of_ten.hpp"

namespace tensorcast::codec {
namespace {

// multiply_to_odd: the whole part of power * factor, scaled, with the last bit set when anything was cut off ("rounding
// to odd"): comparisons with even numbers come out as those of the exact products would, the power's own error
// included.

class Power64 {
 public:
  explicit Power64(const PowerOfTen& power) : power_(power.to_64_bits()) {}

  [[nodiscard]] std::uint64_t multiply_to_odd(std::uint64_t factor) const noexcept {  // factor below 2^32
    const unsigned __int128 product = static_cast<unsigned __int128>(power_) * factor;
    const auto below = static_cast<std::uint32_t>(product >> 32);
    return static_cast<std::uint64_t>(product >> 64) | (below > 1 ? 1 : 0);
  }

 private:
  std::uint64_t power_;
};

class Power128 {
 public:
  explicit Power128(const PowerOfTen& power) : power_(power) {}

  [[nodiscard]] std::uint64_t multiply_to_odd(std::uint64_t factor) const noexcept {
    const unsigned __int128 low = static_cast<unsigned __int128>(power_.low) * factor;
    const unsigned __int128 high = static_cast<unsigned __int128>(power_.high) * factor + (low >> 64);
    const auto below = static_cast<std::uint64_t>(high);
    return static_cast<std::uint64_t>(high >> 64) | (below > 1 ? 1 : 0);
  }

 private:
  PowerOfTen power_;
};

// value = significand * 2^exponent. Everything is measured in quarters of a unit 10^k, where 10^k is the largest power
// of ten that is not wider than the interval of numbers that read back as the value: at least one multiple of it lies
// inside, at most one multiple of the next power does.
template <class Power>
ShortestDecimal shortest(std::uint64_t significand, int exponent, bool is_lower_end_closer) noexcept {
  const int k = is_lower_end_closer ? floor_log10_of_three_quarters_power_of_two(exponent)
                                    : floor_log10_of_power_of_two(exponent);
  const int shift = exponent + floor_log2_of_power_of_ten(-k) + 1;
  const Power power(power_of_ten(-k));
  const std::uint64_t value = power.multiply_to_odd(4 * significand << shift);
  const std::uint64_t low = power.multiply_to_odd((4 * significand - (is_lower_end_closer ? 1 : 2)) << shift);
  const std::uint64_t high = power.multiply_to_odd((4 * significand + 2) << shift);

  // The ends of the interval round to the value only if its significand is even.
  const std::uint64_t odd = significand & 1;
  const std::uint64_t lowest = low + odd;
  const std::uint64_t highest = high - odd;

  const std::uint64_t units = value / 4;
  if (units >= 10) {
    const std::uint64_t tens = units / 10;
    const bool is_below_inside = lowest <= 40 * tens;
    const bool is_above_inside = 40 * tens + 40 <= highest;
    if (is_below_inside != is_above_inside) return {.digits = tens + (is_above_inside ? 1 : 0), .exponent = k + 1};
  }
  const bool is_below_inside = lowest <= 4 * units;
  const bool is_above_inside = 4 * units + 4 <= highest;
  if (is_below_inside != is_above_inside) return {.digits = units + (is_above_inside ? 1 : 0), .exponent = k};
  const std::uint64_t middle = 4 * units + 2;
  const bool up = value > middle || (value == middle && (units & 1) != 0);
  return {.digits = units + (up ? 1 : 0), .exponent = k};
}

template <class Power, class Bits, class Float>
ShortestDecimal shortest_of(Float value) noexcept {
  constexpr int mantissa_bits = std::numeric_limits<Float>::digits - 1;
  constexpr int min_exponent = std::numeric_limits<Float>::min_exponent - 1 - mantissa_bits;
  const auto bits = std::bit_cast<Bits>(value);
  const std::uint64_t mantissa = bits & ((Bits{1} << mantissa_bits) - 1);
  const auto field = static_cast<int>(bits >> mantissa_bits);
  if (field == 0) return shortest<Power>(mantissa, min_exponent, false);
  const std::uint64_t significand = mantissa | std::uint64_t{1} << mantissa_bits;
  const int exponent = min_exponent + field - 1;
  // Small integers are their own shortest decimals.
  if (exponent <= 0 && exponent >= -mantissa_bits && (significand & ((std::uint64_t{1} << -exponent) - 1)) == 0) {
    return {.digits = significand >> -exponent, .exponent = 0};
  }
  return shortest<Power>(significand, exponent, mantissa == 0 && field > 1);
}

}  // namespace

ShortestDecimal shortest_decimal(float value) noexcept { return shortest_of<Power64, std::uint32_t>(value); }
ShortestDecimal shortest_decimal(double value) noexcept { return shortest_of<Power128, std::uint64_t>(value); }

}  // namespace tensorcast::codec
