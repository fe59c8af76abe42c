#include "report/rules.hpp"

#include <cmath>
#include <limits>

#include "dtype/dtype_table.hpp"

namespace tensorcast::report {
namespace {

using kernels::CompareRules;
using kernels::DoubleDouble;

constexpr double infinity = std::numeric_limits<double>::infinity();

DoubleDouble sum_of(double larger, double smaller) {
  const double high = larger + smaller;
  return {.high = high, .low = smaller - (high - larger)};
}

// The next sum of two float64 beyond a number: no product of two float64 lies between them.
DoubleDouble just_above(DoubleDouble x) { return {.high = x.high, .low = std::nextafter(x.low, infinity)}; }
DoubleDouble just_below(DoubleDouble x) { return {.high = x.high, .low = std::nextafter(x.low, -infinity)}; }

CompareRules rules_of_float(const DTypeRow& target) {
  const FloatFormat& format = target.format;
  if (target.bits >= 16) return {};
  const double lowest = facts(target.id).lowest, largest = facts(target.id).largest;
  if (!format.has_zero) return {.below = just_below({lowest}), .above = just_above({largest})};
  // Half a step above the largest value, where a tie goes to the even mantissa.
  const double middle = largest + std::ldexp(1.0, format.max_exponent() - format.mantissa_bits - 1);
  const bool tie_goes_up = format.largest_code() % 2 == 1;
  if (tie_goes_up) return {.below = {-middle}, .above = {middle}};
  return {.below = just_below({-middle}), .above = just_above({middle})};
}

// Truncated, numbers are out of range from one past the ends on. Rounded to nearest, from half a step past the largest
// on, as that is odd, and beyond half a step past the lowest, as that is even.
CompareRules rules_of_integer(const DTypeRow& target, IntRounding rounding) {
  const double end = std::ldexp(1.0, target.is_signed ? target.bits - 1 : target.bits);  // the largest plus one
  const double lowest = target.is_signed ? -end : 0.0;
  if (rounding == IntRounding::trunc) return {.below = sum_of(lowest, -1.0), .above = {end}};
  return {.below = just_below(sum_of(lowest, -0.5)), .above = sum_of(end, -0.5)};
}

}  // namespace

CompareRules rules_of(DType to, const codec::Policy& policy) {
  const DTypeRow& target = row(to);
  if (target.family == Family::floating) return rules_of_float(target);
  if (target.family == Family::integer) return rules_of_integer(target, policy.int_rounding);
  return {};
}

double last_below(DoubleDouble bound) { return bound.low > 0.0 ? bound.high : std::nextafter(bound.high, -infinity); }
double first_above(DoubleDouble bound) { return -last_below({-bound.high, -bound.low}); }

}  // namespace tensorcast::report
