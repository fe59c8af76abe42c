#include "report/code_outcome.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "codec/reference_cast.hpp"

namespace tensorcast::report {
namespace {

// A sum of two long doubles that holds all 128 bits of a product, so that its small distance to the rounded result
// keeps its precision.
struct LongReal {
  long double high = 0.0L;
  long double low = 0.0L;
};

long double times_power_of_two(std::uint64_t x, int exponent) {
  constexpr int bias = 1023, mantissa_bits = 52;
  const auto number = static_cast<long double>(x);
  if (std::abs(exponent) >= bias) return std::ldexp(number, exponent);
  // By a product, which takes a tenth of the time: `exponent` is one of float64.
  return number *
         static_cast<long double>(std::bit_cast<double>(static_cast<std::uint64_t>(exponent + bias) << mantissa_bits));
}

LongReal to_long_real(const codec::Real& value) {
  using Kind = codec::Real::Kind;
  switch (value.kind) {
    case Kind::nan:
      return {std::numeric_limits<long double>::quiet_NaN()};
    case Kind::infinite:
      return {value.negative ? -std::numeric_limits<long double>::infinity()
                             : std::numeric_limits<long double>::infinity()};
    case Kind::zero:
      return {};
    case Kind::finite:
      break;
  }
  const long double sign = value.negative ? -1.0L : 1.0L;
  const auto high = static_cast<std::uint64_t>(value.significand >> 64);
  const auto low = static_cast<std::uint64_t>(value.significand);
  return {sign * times_power_of_two(high, value.exponent + 64),
          low == 0 ? 0.0L : sign * times_power_of_two(low, value.exponent)};
}

}  // namespace

CodeOutcome code_outcome(DType from, std::uint64_t code, DType to, const codec::Policy& policy) {
  const codec::Encoded encoded = codec::cast_code(from, code, to, policy);
  codec::Real source = codec::decode(from, code);
  if (policy.scale != 1.0) source = codec::scaled(source, policy.scale);
  const LongReal exact = to_long_real(source);
  const LongReal result = to_long_real(codec::decode(to, encoded.bits));
  const long double x = exact.high + exact.low;
  if (!std::isfinite(x) || !std::isfinite(result.high)) return {.events = encoded.events};
  const long double distance = std::fabs((exact.high - result.high) + (exact.low - result.low));
  return {.events = encoded.events,
          .is_finite = true,
          .source = x,
          .error = static_cast<double>(distance),
          .relative_error = x == 0.0L ? 0.0 : static_cast<double>(distance / std::fabs(x))};
}

void add_counts(const CodeOutcome& outcome, std::uint64_t times, CastReport& report) {
  const auto count = [&](std::uint32_t event) { return (outcome.events & event) != 0 ? times : 0; };
  report.overflowed += count(codec::event_overflowed);
  report.saturated += count(codec::event_saturated);
  report.underflowed_to_zero += count(codec::event_underflowed);
  report.inexact += count(codec::event_inexact);
  report.nan_made += count(codec::event_nan_made);
  report.nan_lost += count(codec::event_nan_lost);
  report.wrapped += count(codec::event_wrapped);
  report.max_abs_error = std::max(report.max_abs_error, outcome.error);
  report.max_rel_error = std::max(report.max_rel_error, outcome.relative_error);
}

void add_outcome(const CodeOutcome& outcome, std::uint64_t times, CastReport& report) {
  add_counts(outcome, times, report);
  report.signal_power += static_cast<double>(outcome.source * outcome.source) * static_cast<double>(times);
  report.noise_power += outcome.error * outcome.error * static_cast<double>(times);
}

}  // namespace tensorcast::report
