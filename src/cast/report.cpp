#include "cast/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast {
namespace {

constexpr std::size_t block_elements = 1024;  // two blocks of float64 fit the first-level cache
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// A source value is beyond the target's range when it is >= above or <= below. NaN: there is no such bound.
struct Beyond {
  double below = nan;
  double above = nan;
};

Beyond beyond_float(const DTypeRow& target) {
  const FloatFormat& format = target.format;
  if (target.bits >= 16) return {};  // no extreme to saturate to: these overflow to infinity
  const double largest = facts(target.id).largest;
  if (!format.has_zero) return {std::nextafter(facts(target.id).lowest, 0.0), std::nextafter(largest, infinity)};
  // Rounding as if the exponent went on: half a step above the largest value, a tie going to the even mantissa.
  const double half_step = std::ldexp(1.0, format.max_exponent() - format.mantissa_bits - 1);
  const bool tie_goes_up = format.largest_code() % 2 == 1;
  const double above = tie_goes_up ? largest + half_step : std::nextafter(largest + half_step, infinity);
  return {-above, above};
}

Beyond beyond_integer(const DTypeRow& target, IntRounding rounding) {
  const double lowest = facts(target.id).lowest;
  const double largest = facts(target.id).largest;
  if (rounding == IntRounding::trunc) return {lowest - 1.0, largest + 1.0};
  return {std::nextafter(lowest - 0.5, -infinity), largest + 0.5};  // the largest is odd, the lowest even
}

Beyond beyond(DType to, const codec::Policy& policy) {
  const DTypeRow& target = row(to);
  if (target.family == Family::floating) return beyond_float(target);
  if (target.family == Family::integer) return beyond_integer(target, policy.int_rounding);
  return {};
}

// Sums in eight interleaved chains: a fixed order that vector units can follow.
struct Sums {
  static constexpr std::size_t lanes = 8;
  std::array<double, lanes> signal{}, noise{}, max_abs{}, max_rel{};
};

struct Rules {
  Beyond beyond;
  bool float_target = false;
  bool wraps = false;
};

// Everything but int64, uint64 and scaled sources: both sides are exact in float64.
void count_block(const double* source, const double* result, std::size_t count, const Rules& rules, Sums& sums,
                 CastReport& report) {
  std::uint64_t overflowed = 0, extreme = 0, underflowed = 0, inexact = 0, nan_made = 0, nan_lost = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = source[i];
    const double y = result[i];
    const bool x_nan = x != x;
    const bool y_nan = y != y;
    const bool x_finite = std::fabs(x) < infinity;
    const bool y_finite = std::fabs(y) < infinity;
    const bool both = x_finite & y_finite;
    const double error = std::fabs(y - x);
    const std::size_t lane = i % Sums::lanes;
    nan_made += !x_nan & y_nan;
    nan_lost += x_nan & !y_nan;
    overflowed += x_finite & !y_finite;
    extreme += ((x >= rules.beyond.above) | (x <= rules.beyond.below)) & y_finite;
    underflowed += (x != 0.0) & (y == 0.0) & !x_nan;
    inexact += both & (x != y);
    const double kept_error = both ? error : 0.0;
    const double kept = both ? x : 0.0;
    const double relative = kept != 0.0 ? kept_error / std::fabs(kept) : 0.0;
    sums.signal[lane] += kept * kept;
    sums.noise[lane] += kept_error * kept_error;
    sums.max_abs[lane] = sums.max_abs[lane] < kept_error ? kept_error : sums.max_abs[lane];
    sums.max_rel[lane] = sums.max_rel[lane] < relative ? relative : sums.max_rel[lane];
  }
  report.count += count;
  report.overflowed += overflowed;
  (rules.wraps ? report.wrapped : report.saturated) += extreme;
  report.underflowed_to_zero += rules.float_target ? underflowed : 0;
  report.inexact += inexact;
  report.nan_made += nan_made;
  report.nan_lost += nan_lost;
}

void add_sums(const Sums& sums, CastReport& report) {
  for (std::size_t lane = 0; lane < Sums::lanes; ++lane) {
    report.signal_power += sums.signal[lane];
    report.noise_power += sums.noise[lane];
    report.max_abs_error = std::max(report.max_abs_error, sums.max_abs[lane]);
    report.max_rel_error = std::max(report.max_rel_error, sums.max_rel[lane]);
  }
}

void decode_block(DType dtype, const std::byte* data, std::size_t count, double* out) {
  auto* bytes = reinterpret_cast<std::byte*>(out);
  if (dtype == DType::float64) {
    std::memcpy(bytes, data, count * sizeof(double));
  } else {
    kernels::find_kernel(active_target(), dtype, DType::float64)->run(data, bytes, count, codec::Policy{});
  }
}

// A sum of two long doubles that holds all 128 bits of a product, so that its small distance to the rounded result
// keeps its precision.
struct LongReal {
  long double high = 0.0L;
  long double low = 0.0L;
};

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
  const auto high = static_cast<long double>(static_cast<std::uint64_t>(value.significand >> 64));
  const auto low = static_cast<long double>(static_cast<std::uint64_t>(value.significand));
  return {sign * std::ldexp(high, value.exponent + 64), sign * std::ldexp(low, value.exponent)};
}

// Sources that float64 cannot hold, and products with a scale: element by element, by the reference.
void count_by_reference(const Conversion& done, const codec::Policy& policy, CastReport& report) {
  for (std::size_t i = 0; i < done.count; ++i) {
    const std::uint64_t code = codec::load_code(done.from, done.src, i);
    const codec::Encoded encoded = codec::cast_code(done.from, code, done.to, policy);
    codec::Real source = codec::decode(done.from, code);
    if (policy.scale != 1.0) source = codec::scaled(source, policy.scale);
    ++report.count;
    report.overflowed += (encoded.events & codec::event_overflowed) != 0;
    report.saturated += (encoded.events & codec::event_saturated) != 0;
    report.underflowed_to_zero += (encoded.events & codec::event_underflowed) != 0;
    report.inexact += (encoded.events & codec::event_inexact) != 0;
    report.nan_made += (encoded.events & codec::event_nan_made) != 0;
    report.nan_lost += (encoded.events & codec::event_nan_lost) != 0;
    report.wrapped += (encoded.events & codec::event_wrapped) != 0;
    const LongReal exact = to_long_real(source);
    const LongReal result = to_long_real(codec::decode(done.to, encoded.bits));
    const long double x = exact.high + exact.low;
    if (!std::isfinite(x) || !std::isfinite(result.high)) continue;
    const long double distance = std::fabs((exact.high - result.high) + (exact.low - result.low));
    const auto error = static_cast<double>(distance);
    report.signal_power += static_cast<double>(x * x);
    report.noise_power += error * error;
    report.max_abs_error = std::max(report.max_abs_error, error);
    if (x != 0.0L) {
      report.max_rel_error = std::max(report.max_rel_error, static_cast<double>(distance / std::fabs(x)));
    }
  }
}

bool is_wide_integer(DType dtype) { return dtype == DType::int64 || dtype == DType::uint64; }

}  // namespace

void add_to_report(const Conversion& done, const codec::Policy& policy, CastReport& report) {
  if (is_wide_integer(done.from) || is_wide_integer(done.to) || policy.scale != 1.0) {
    count_by_reference(done, policy, report);
    return;
  }
  const bool to_integer = family(done.to) == Family::integer;
  const bool low_bits = family(done.from) != Family::floating;  // D7
  const Rules rules{.beyond = beyond(done.to, policy),
                    .float_target = family(done.to) == Family::floating,
                    .wraps = to_integer && (low_bits || policy.integer_range == codec::IntegerRange::wrap)};
  Sums sums;
  std::array<double, block_elements> source;
  std::array<double, block_elements> result;
  for (std::size_t first = 0; first < done.count; first += block_elements) {
    const std::size_t count = std::min(block_elements, done.count - first);
    decode_block(done.from, done.src + storage_bytes(done.from, first), count, source.data());
    decode_block(done.to, done.dst + storage_bytes(done.to, first), count, result.data());
    count_block(source.data(), result.data(), count, rules, sums, report);
  }
  add_sums(sums, report);
}

}  // namespace tensorcast
