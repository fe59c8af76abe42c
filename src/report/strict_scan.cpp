#include "report/strict_scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "dtype/dtype_table.hpp"
#include "kernels/ops.hpp"
#include "report/decode.hpp"
#include "report/rules.hpp"

namespace tensorcast::report {
namespace {

using codec::IntegerRange;

// Numbers from `low` to `high`.
struct Interval {
  double low = 0.0;
  double high = 0.0;
};

// The numbers that do not fail, if sources are compared as `Number`. NaN is outside.
template <class Number>
Interval accepted_numbers(DType to, const codec::Policy& policy, const kernels::Range<Number>& range) {
  constexpr Number infinity = std::numeric_limits<Number>::infinity(), largest = std::numeric_limits<Number>::max();
  const DTypeRow& target = row(to);
  Interval accepted = {-largest, largest};
  if (target.family == Family::floating) {
    const bool accepts_negative = target.format.has_sign;  // float8_e8m0fnu does not
    accepted = {accepts_negative ? -infinity : 0.0, infinity};
  } else if (policy.integer_range == IntegerRange::error) {
    accepted = {std::nextafter(range.below, infinity), std::nextafter(range.above, -infinity)};
  }
  if (policy.scale == 1.0) return accepted;
  if (policy.scale == 0.0) return {-largest, largest};

  // One step less on each side, as the quotient is rounded.
  const auto source_of = [&](double product) {
    const double quotient = product / policy.scale;
    if (std::isinf(product)) return quotient;
    const auto nearest = static_cast<Number>(std::clamp<double>(quotient, -largest, largest));
    return static_cast<double>(std::nextafter(nearest, Number{0}));
  };
  if (policy.scale < 0.0) std::swap(accepted.low, accepted.high);
  return {source_of(accepted.low), source_of(accepted.high)};
}

}  // namespace

bool may_ever_fail(DType from, DType to, const codec::Policy& policy) noexcept {
  const bool is_scaled = policy.scale != 1.0;
  if (from == to && !is_scaled) return false;
  const DTypeRow& target = row(to);
  if (target.family == Family::integer) {
    // Without a scale, integers keep their low bits whatever the options say (D7).
    const bool is_range_checked =
        policy.integer_range == IntegerRange::error && (family(from) == Family::floating || is_scaled);
    return is_range_checked || (policy.invalid_is_error && family(from) == Family::floating);
  }
  if (target.family != Family::floating || !policy.invalid_is_error) return false;
  return !target.format.has_sign || !target.format.has_nan();
}

StrictScan::StrictScan(DType from, DType to, const codec::Policy& policy, Target target) noexcept
    : from_(from), as_(fits_float32(from) ? DType::float32 : DType::float64), target_(target) {
  const kernels::CompareRules rules = rules_of(to, policy);
  const Interval accepted = as_ == DType::float32 ? accepted_numbers(to, policy, rules.of_float32)
                                                  : accepted_numbers(to, policy, rules.of_float64);
  low_ = accepted.low;
  high_ = accepted.high;
}

bool StrictScan::may_fail(const std::byte* source, std::size_t count) const noexcept {
  const kernels::Ops& ops = kernels::ops_of(target_);
  const auto any_outside = as_ == DType::float32 ? ops.any_outside_float32 : ops.any_outside_float64;
  if (from_ == as_) return any_outside(source, count, low_, high_);
  alignas(64) std::byte buffer[block_elements * sizeof(double)];
  for (std::size_t first = 0; first < count; first += block_elements) {
    const std::size_t elements = std::min(block_elements, count - first);
    const std::byte* const numbers =
        decode(target_, from_, source + storage_bytes(from_, first), elements, as_, buffer);
    if (any_outside(numbers, elements, low_, high_)) return true;
  }
  return false;
}

}  // namespace tensorcast::report
