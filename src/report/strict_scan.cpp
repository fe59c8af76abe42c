// SPDX-License-Identifier: Apache-2.0
#include "report/strict_scan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "codec/reference_cast.hpp"
#include "dtype/number_range.hpp"
#include "kernels/ops.hpp"
#include "report/decode.hpp"
#include "report/rules.hpp"

namespace tensorcast::report {
namespace {

using codec::RangeRule;
using kernels::Interval;

// The numbers that do not fail, if sources are compared as `Number`. NaN is outside, as are infinities if finite
// numbers may be out of range.
template <class Number>
Interval accepted_numbers(DType to, const codec::Policy& policy, const kernels::Range<Number>& range,
                          const kernels::Range<double>& range_of_products) {
  constexpr Number infinity = std::numeric_limits<Number>::infinity(), largest = std::numeric_limits<Number>::max();
  const DTypeRow& target = row(to);
  Interval accepted = {-largest, largest};
  // Zero is out of the range of a float without zero, whose lowest number is subnormal in float32; a quotient by the
  // scale may reach zero.
  const bool is_positive = target.family == Family::floating && !target.format.has_zero;
  constexpr double least = std::numeric_limits<Number>::min();
  if (policy.range == RangeRule::error) {
    if (policy.scale == 1.0) {
      accepted = {std::nextafter(range.below, infinity), std::nextafter(range.above, -infinity)};
    } else {
      constexpr double end = std::numeric_limits<double>::infinity();
      accepted = {std::nextafter(range_of_products.below, end), std::nextafter(range_of_products.above, -end)};
    }
    if (is_positive) accepted.low = std::max(accepted.low, least);
  } else if (target.family == Family::floating) {
    accepted = {-infinity, infinity};
  }
  const bool has_no_sign = target.family == Family::floating && !target.format.has_sign;
  if (has_no_sign && (policy.invalid_is_error || policy.range == RangeRule::error))
    accepted.low = std::max(accepted.low, 0.0);
  if (policy.scale == 1.0) return accepted;
  if (policy.scale == 0.0) return accepted.low <= 0.0 ? Interval{-largest, largest} : Interval{infinity, -infinity};

  // One step less on each side, as the quotient is rounded.
  const auto source_of = [&](double product, Number inward) {
    const double quotient = product / policy.scale;
    if (std::isinf(product)) return quotient;
    const auto nearest = static_cast<Number>(std::clamp<double>(quotient, -largest, largest));
    return nearest == Number{0} ? 0.0 : static_cast<double>(std::nextafter(nearest, inward));
  };
  if (policy.scale < 0.0) std::swap(accepted.low, accepted.high);
  const Interval sources = {source_of(accepted.low, infinity), source_of(accepted.high, -infinity)};
  if (!is_positive || policy.range != RangeRule::error) return sources;
  return policy.scale < 0.0 ? Interval{sources.low, std::min(sources.high, -least)}
                            : Interval{std::max(sources.low, least), sources.high};
}

// Reports whether a number is neither accepted nor a NaN or infinity that is.
template <class Number>
bool any_fails(const std::byte* numbers, std::size_t count, const Interval& accepted,
               const AcceptedSpecials& specials) {
  for (std::size_t i = 0; i < count; ++i) {
    Number x;
    std::memcpy(&x, numbers + i * sizeof x, sizeof x);
    const bool is_inside = x >= accepted.low && x <= accepted.high;
    if (!is_inside && !(specials.nan && std::isnan(x)) && !(specials.infinity && std::isinf(x))) return true;
  }
  return false;
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
  const DTypeRow& target = row(to);
  if (from == to && !is_scaled) return false;
  if (policy.inexact_is_error) return true;
  if (target.family == Family::boolean) return false;
  const bool to_integer = target.family == Family::integer;  // NaN is out of its range, too
  if (policy.range == RangeRule::error && (is_scaled || to_integer || may_be_out_of_range(row(from), target)))
    return true;
  if (!policy.invalid_is_error) return false;
  if (to_integer) return family(from) == Family::floating;
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
  accepted_ = as_ == DType::float32 ? accepted_numbers(to, policy, rules.of_float32, rules.of_float64)
                                    : accepted_numbers(to, policy, rules.of_float64, rules.of_float64);
  if (const DTypeRow& type = row(to); type.family == Family::floating) {
    specials_.nan = type.format.has_nan() || !policy.invalid_is_error;
    specials_.infinity = policy.range == RangeRule::error && type.format.has_infinity() && policy.scale != 0.0;
  }
  const bool is_by_code = policy.rounding != Rounding::stochastic && kernels::TableConversion::pays(from, total);
  if (is_by_code) codes_.emplace(from, to, policy, target);
  needs_reference_ = policy.inexact_is_error && !codes_;
}

bool StrictScan::may_fail(const std::byte* source, std::size_t count) const noexcept {
  if (needs_reference_) return true;
  if (codes_) return codes_->may_fail(source, count);
  const kernels::Ops& ops = kernels::ops_of(target_);
  const auto may_any_fail = [&](const std::byte* numbers, std::size_t elements) {
    const auto any_outside = as_ == DType::float32 ? ops.any_outside_float32 : ops.any_outside_float64;
    if (!any_outside(numbers, elements, accepted_.low, accepted_.high)) return false;
    return (as_ == DType::float32 ? any_fails<float> : any_fails<double>)(numbers, elements, accepted_, specials_);
  };
  alignas(64) std::byte buffer[block_elements * sizeof(double)];
  const std::size_t block = as_ == DType::float32 ? 2 * block_elements : block_elements;
  for (std::size_t first = 0; first < count; first += block) {
    const std::size_t elements = std::min(block, count - first);
    const std::byte* const numbers =
        decode(target_, from_, source + storage_bytes(from_, first), elements, as_, buffer);
    if (may_any_fail(numbers, elements)) return true;
  }
  return false;
}

}  // namespace tensorcast::report
