// SPDX-License-Identifier: Apache-2.0
#include "report/rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dtype/dtype_table.hpp"

namespace tensorcast::report {
namespace {

using kernels::DoubleDouble;
using kernels::Range;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr Range<DoubleDouble> no_range = {.below = {nan}, .above = {nan}};

DoubleDouble sum_of(double larger, double smaller) {
  const double high = larger + smaller;
  return {.high = high, .low = smaller - (high - larger)};
}

// A sum of two float64 just above or below the end of a range: no product of two float64 lies between them.
constexpr double step = std::numeric_limits<double>::denorm_min();
DoubleDouble just_above(DoubleDouble x) { return {x.high, x.low == 0.0 ? step : std::nextafter(x.low, infinity)}; }
DoubleDouble just_below(DoubleDouble x) { return {x.high, x.low == 0.0 ? -step : std::nextafter(x.low, -infinity)}; }

Range<DoubleDouble> range_of_float(const DTypeRow& target, bool has_word) {
  const FloatFormat& format = target.format;
  const double lowest = facts(target.id).lowest, largest = facts(target.id).largest;
  if (!format.has_zero) return {.below = just_below({lowest}), .above = just_above({largest})};
  // Words move these ends by a step at most; the reference says of the numbers between.
  if (has_word) return {.below = just_below({-largest}), .above = just_above({largest})};
  // Half a step above the largest value, where a tie goes to the even mantissa. float64 needs both parts of the sum.
  const double half_step = std::ldexp(1.0, format.max_exponent() - format.mantissa_bits - 1);
  const bool is_one_number = target.bits < 64;
  const DoubleDouble middle = {is_one_number ? largest + half_step : largest, is_one_number ? 0.0 : half_step};
  const DoubleDouble mirrored = {-middle.high, -middle.low};
  const bool tie_goes_up = format.largest_code() % 2 == 1;
  Range<DoubleDouble> range = {.below = mirrored, .above = middle};
  if (!tie_goes_up) range = {.below = just_below(mirrored), .above = just_above(middle)};
  return range;
}

// If numbers are truncated, those at least 1 past an end are out of range. If they are rounded to nearest, those at
// least 1/2 past the largest, which is odd, and those more than 1/2 past the lowest, which is even.
Range<DoubleDouble> range_of_integer(const DTypeRow& target, Rounding rounding) {
  const double end = std::ldexp(1.0, target.is_signed ? target.bits - 1 : target.bits);  // the largest plus one
  const double lowest = target.is_signed ? -end : 0.0;
  if (rounding == Rounding::automatic) return {.below = sum_of(lowest, -1.0), .above = {end}};
  if (rounding != Rounding::nearest_even)
    return {.below = just_below({lowest}), .above = just_above(sum_of(end, -1.0))};
  return {.below = just_below(sum_of(lowest, -0.5)), .above = sum_of(end, -0.5)};
}

Range<DoubleDouble> range_of(const DTypeRow& target, const codec::Policy& policy) {
  if (target.family == Family::floating) return range_of_float(target, policy.has_word(target));
  if (target.family == Family::integer) return range_of_integer(target, policy.rounding);
  return no_range;
}

kernels::Interval plain_numbers(const DTypeRow& target) {
  constexpr double largest_float32 = std::numeric_limits<float>::max();
  if (target.family == Family::boolean) return {.low = 1.0, .high = -1.0};  // 1 less a tiny number has many digits
  return {.low = std::max(facts(target.id).lowest, -largest_float32),
          .high = std::min(facts(target.id).largest, largest_float32)};
}

// The first number of a type that is not below `bound`. NaN stays.
template <class Number>
Number first_from(DoubleDouble bound) {
  constexpr auto no_number = std::numeric_limits<Number>::infinity();
  if (bound.high > static_cast<double>(std::numeric_limits<Number>::max())) return no_number;
  const auto nearest = static_cast<Number>(bound.high);
  const double rest = (bound.high - static_cast<double>(nearest)) + bound.low;
  return rest > 0.0 ? std::nextafter(nearest, no_number) : nearest;
}

template <class Number>
Range<Number> rounded_outward(const Range<DoubleDouble>& range) {
  const DoubleDouble mirrored = {.high = -range.below.high, .low = -range.below.low};
  return {.below = -first_from<Number>(mirrored), .above = first_from<Number>(range.above)};
}

}  // namespace

kernels::CompareRules rules_of(DType to, const codec::Policy& policy) {
  const Range<DoubleDouble> range = range_of(row(to), policy);
  return {.plain = plain_numbers(row(to)),
          .of_float32 = rounded_outward<float>(range),
          .of_float64 = rounded_outward<double>(range),
          .of_sums = range};
}

}  // namespace tensorcast::report
