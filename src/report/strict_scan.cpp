#include "report/strict_scan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/ops.hpp"
#include "report/decode.hpp"
#include "report/rules.hpp"

namespace tensorcast::report {
namespace {

using codec::IntegerRange;
using kernels::Interval;

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

bool any_set(const std::byte* bytes, std::size_t count) {
  std::uint64_t any = 0;
  for (; count >= sizeof any; count -= sizeof any, bytes += sizeof any) {
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    any |= word;
  }
  for (; count != 0; --count, ++bytes) any |= std::to_integer<std::uint64_t>(*bytes);
  return any != 0;
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

// Elements that share a byte have a byte table; those of six bits do not, and are looked up one by one.
StrictScan::CodeTable::CodeTable(DType from, DType to, const codec::Policy& policy, Target target) noexcept
    : from_(from), target_(target) {
  const auto bits = static_cast<std::size_t>(bit_width(from));
  for (std::size_t code = 0; code < std::size_t{1} << bits; ++code) {
    fails_[code] = (codec::cast_code(from, code, to, policy).events & codec::event_error) != 0 ? 1 : 0;
    any_fails_ |= fails_[code] != 0;
  }
  if (8 % bits != 0) return;
  std::array<std::uint8_t, 256> in_byte = {};
  for (std::size_t byte = 0; byte < in_byte.size(); ++byte) {
    const auto packed = static_cast<std::byte>(byte);
    for (std::size_t i = 0; i < 8 / bits; ++i) in_byte[byte] |= fails_[codec::load_code(from, &packed, i)];
  }
  fails_in_byte_.emplace(target, in_byte);
}

bool StrictScan::CodeTable::may_fail(const std::byte* source, std::size_t count) const noexcept {
  if (!any_fails_) return false;
  const auto per_byte = fails_in_byte_ ? static_cast<std::size_t>(8 / bit_width(from_)) : std::size_t{1};
  alignas(64) std::array<std::byte, 2048> fails;
  const std::size_t whole = count / per_byte * per_byte;
  for (std::size_t first = 0; first < whole; first += fails.size() * per_byte) {
    const std::size_t elements = std::min(fails.size() * per_byte, whole - first), lookups = elements / per_byte;
    const std::byte* const part = source + storage_bytes(from_, first);
    if (fails_in_byte_) {
      fails_in_byte_->run(part, fails.data(), lookups);
    } else {
      kernels::ops_of(target_).look_up_six_bits(part, fails.data(), lookups, fails_.data());
    }
    if (any_set(fails.data(), lookups)) return true;
  }
  for (std::size_t i = whole; i < count; ++i) {
    if (fails_[codec::load_code(from_, source, i)] != 0) return true;
  }
  return false;
}

StrictScan::StrictScan(DType from, DType to, const codec::Policy& policy, std::size_t total, Target target) noexcept
    : from_(from), as_(fits_float32(from) ? DType::float32 : DType::float64), target_(target) {
  const kernels::CompareRules rules = rules_of(to, policy);
  const Interval accepted = as_ == DType::float32 ? accepted_numbers(to, policy, rules.of_float32)
                                                  : accepted_numbers(to, policy, rules.of_float64);
  low_ = accepted.low;
  high_ = accepted.high;
  if (kernels::TableConversion::pays(from, total)) codes_.emplace(from, to, policy, target);
}

bool StrictScan::may_fail(const std::byte* source, std::size_t count) const noexcept {
  if (codes_) return codes_->may_fail(source, count);
  const kernels::Ops& ops = kernels::ops_of(target_);
  const auto any_outside = as_ == DType::float32 ? ops.any_outside_float32 : ops.any_outside_float64;
  if (from_ == as_) return any_outside(source, count, low_, high_);
  alignas(64) std::byte buffer[block_elements * sizeof(double)];
  const std::size_t block = as_ == DType::float32 ? 2 * block_elements : block_elements;
  for (std::size_t first = 0; first < count; first += block) {
    const std::size_t elements = std::min(block, count - first);
    const std::byte* const numbers =
        decode(target_, from_, source + storage_bytes(from_, first), elements, as_, buffer);
    if (any_outside(numbers, elements, low_, high_)) return true;
  }
  return false;
}

}  // namespace tensorcast::report
