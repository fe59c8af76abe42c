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

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double largest_float64 = std::numeric_limits<double>::max();

struct Range {
  double low = -infinity;
  double high = infinity;
};

// The float64 numbers that do not fail, before they are multiplied with a scale.
Range accepted_numbers(DType to, const codec::Policy& policy) {
  const DTypeRow& target = row(to);
  if (target.family == Family::floating) {
    if (!target.format.has_sign) return {.low = 0.0};  // float8_e8m0fnu: negative numbers fail
    return {};                                         // no NaN: only NaN fails
  }
  if (policy.integer_range != IntegerRange::error) return {-largest_float64, largest_float64};
  const kernels::CompareRules rules = rules_of(to, policy);
  return {.low = first_above(rules.below), .high = last_below(rules.above)};
}

// A little less on each side, as quotients and integers of 64 bits are rounded.
Range divided(Range range, double scale) {
  if (scale == 0.0) return {-largest_float64, largest_float64};
  constexpr double less = 1.0 - 0x1p-50;
  const auto quotient = [&](double end) {
    if (std::fabs(end) == infinity) return end / scale;
    return std::clamp(end / scale * less, -largest_float64, largest_float64);
  };
  if (scale < 0.0) std::swap(range.low, range.high);
  return {.low = quotient(range.low), .high = quotient(range.high)};
}

// The same for numbers that are float32.
Range in_float32(Range range) {
  constexpr float float_infinity = std::numeric_limits<float>::infinity();
  constexpr double largest = std::numeric_limits<float>::max();
  const auto last_up_to = [&](double x) {
    if (x == infinity) return infinity;
    if (x >= largest) return largest;
    if (x < -largest) return -infinity;
    const auto nearest = static_cast<float>(x);
    return static_cast<double>(static_cast<double>(nearest) > x ? std::nextafter(nearest, -float_infinity) : nearest);
  };
  return {.low = -last_up_to(-range.low), .high = last_up_to(range.high)};
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
  Range range = accepted_numbers(to, policy);
  if (policy.scale != 1.0) range = divided(range, policy.scale);
  if (as_ == DType::float32) range = in_float32(range);
  low_ = range.low;
  high_ = range.high;
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
