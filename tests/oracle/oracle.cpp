// SPDX-License-Identifier: Apache-2.0
#include "oracle.hpp"

#include <cmath>
#include <iterator>

namespace oracle {
namespace {

constexpr int newest_opset = 28;
enum { wrap_range = 1, saturate_range = 2, error_range = 3 };
enum { round_up = 0, round_down = 1, round_nearest = 2 };

std::uint64_t largest_finite(Type type) { return magnitudes(type).size() - 1; }
std::uint64_t sign_bit(Type type) { return std::uint64_t{1} << (info(type).bits - 1); }

bool between(int value, int first, int last) { return first <= value && value <= last; }

// Events of a result that follow from the two values alone; the caller knows about ranges.
std::uint16_t value_events(const Exact& before, const Exact& after) {
  std::uint16_t events = 0;
  if (before.nan() && !after.nan()) events |= nan_lost;
  if (!before.nan() && after.nan()) events |= nan_made;
  if (before.finite() && after.finite() && before.value != after.value) events |= inexact;
  if (before.finite() && !before.zero() && after.zero()) events |= underflowed;
  return events;
}

Exact decoded(Type type, std::uint64_t code) {
  return info(type).bits <= 16 ? all_codes(type)[code] : decode(type, code);
}

}  // namespace

tc_cast_options default_options() {
  tc_cast_options options{};
  options.struct_size = sizeof options;
  options.saturate = 1;
  options.threads = 1;
  options.scale = 1.0;
  return options;
}

int opset_of(const tc_cast_options& options) { return options.opset == 0 ? newest_opset : options.opset; }

tc_status admission(Type from, Type to, const tc_cast_options& options) {
  const int opset = opset_of(options);
  if (!between(opset, 1, newest_opset) || !between(options.round_mode, 0, 2) || !between(options.out_of_range, 0, 3) ||
      !between(options.rounding, 0, 7) || !between(options.invalid, 0, 1) || !between(options.fnuz_inf, 0, 1) ||
      !between(options.float_string, 0, 2) || !between(options.inexact, 0, 1) || !std::isfinite(options.scale) ||
      options.threads < 0) {
    return TC_INVALID_ARGUMENT;
  }
  if (options.seed != 0 && options.rounding != TC_ROUNDING_STOCHASTIC) return TC_INVALID_ARGUMENT;
  if (to == e8m0 && options.rounding != 0 && options.round_mode != round_up) return TC_INVALID_ARGUMENT;
  if (info(from).first_opset > opset || info(to).first_opset > opset) return TC_UNSUPPORTED;
  if (options.saturate == 0 && opset < 19) return TC_UNSUPPORTED;
  if (options.round_mode != round_up && opset < 24) return TC_UNSUPPORTED;
  return TC_OK;
}

std::string describe_events(std::uint16_t events) {
  static constexpr const char* names[] = {"inexact",  "overflowed", "saturated", "underflowed",
                                          "nan_made", "nan_lost",   "wrapped",   "sign_lost"};
  std::string words;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if ((events >> i & 1) == 0) continue;
    if (!words.empty()) words += '+';
    words += names[i];
  }
  return words.empty() ? "exact" : words;
}

Conversion::Conversion(Type from, std::uint64_t code, const Exact& source, Type to, double scale)
    : to_(to),
      code_(code),
      bit_copy_(from == to && scale == 1.0),
      from_whole_((is_integer(from) || from == boolean) && scale == 1.0),
      x_(product(source, scale)) {
  if (bit_copy_ || !x_.finite()) return;
  if (to == e8m0) {
    power_ = nearest_power(x_.value);
  } else if (is_float(to)) {
    float_ = nearest_float(abs(x_.value), to);
  } else if (is_integer(to)) {
    truncated_ = fit(truncated(x_.value), to);
    nearest_ = fit(nearest_even(x_.value), to);
  }
}

Outcome Conversion::under(const tc_cast_options& options) const {
  if (bit_copy_) return {.code = code_};
  Outcome outcome;
  if (to_ == boolean) {
    outcome.code = x_.zero() ? 0 : 1;
  } else if (is_integer(to_)) {
    outcome = to_integer(options);
  } else {
    outcome = to_float(options);
  }
  if (!outcome.refused) outcome.events |= value_events(x_, decoded(to_, outcome.code));
  return outcome;
}

// D16.
NearestFloat Conversion::rounded_float(const tc_cast_options& options, bool is_negative) const {
  if (options.rounding <= TC_ROUNDING_NEAREST_EVEN) return float_;
  return float_by_word(abs(x_.value), to_, options.rounding, is_negative);
}

bool Conversion::stops_at_largest(const tc_cast_options& options, bool is_negative) const {
  return options.rounding > TC_ROUNDING_NEAREST_EVEN && leads_to_zero(options.rounding, is_negative);
}

Outcome Conversion::to_float(const tc_cast_options& options) const {
  if (to_ == e8m0) return to_power(options);
  if (info(to_).special == Special::none) return to_finite_float(options);
  if (to_ == e5m3fnu) {
    Outcome outcome = to_unsigned_float(options);
    if (x_.negative && !x_.nan() && !x_.zero()) outcome.events |= sign_lost;
    return outcome;
  }
  if (is_float8(to_)) return to_float8(options);
  return to_ieee(options);
}

// D3 for types with payloads: leading payload bits kept, quiet bit forced.
std::uint64_t Conversion::quiet_nan() const {
  const int mantissa_bits = info(to_).mantissa_bits;
  const std::uint64_t infinity = (code_mask(to_) >> 1) & ~((std::uint64_t{1} << mantissa_bits) - 1);
  const std::uint64_t quiet = std::uint64_t{1} << (mantissa_bits - 1);
  return infinity | quiet | (x_.payload >> (64 - (mantissa_bits - 1)));
}

// D1, D3 and D6.
Outcome Conversion::to_ieee(const tc_cast_options& options) const {
  const std::uint64_t sign = x_.negative ? sign_bit(to_) : 0;
  if (x_.nan()) return {.code = sign | quiet_nan()};
  const std::uint64_t infinity = to_ == f64 ? 0x7FF0000000000000 : to_ == f32 ? 0x7F800000 : largest_finite(to_) + 1;
  if (!x_.finite()) return {.code = sign | infinity};
  const NearestFloat rounded = rounded_float(options, x_.negative);
  if (!rounded.beyond) return {.code = sign | rounded.magnitude};
  if (options.out_of_range == error_range) return {.refused = true};
  if (options.out_of_range == saturate_range || stops_at_largest(options, x_.negative))
    return {.code = sign | (infinity - 1), .events = saturated};
  return {.code = sign | infinity, .events = overflowed};
}

// D2: the tables of Cast 19 and Cast 24; D6. D14: types that ONNX lacks follow the table of Cast 24.
Outcome Conversion::to_float8(const tc_cast_options& options) const {
  const std::uint64_t sign = x_.negative ? 0x80 : 0;
  const std::uint64_t largest = sign | largest_finite(to_);
  const std::uint64_t fnuz_nan = 0x80;
  const Special special = info(to_).special;
  const bool has_infinity = special == Special::ieee || special == Special::p3109;
  if (x_.nan()) {
    return {.code = has_one_zero(to_) ? fnuz_nan : sign | (special == Special::ieee ? quiet_nan() : 0x7F)};
  }

  const bool table_19 = opset_of(options) < 24 && info(to_).first_opset != 0;
  const bool infinity_is_nan = is_fnuz(to_) && table_19 && options.fnuz_inf == 0;
  const NearestFloat rounded = x_.finite() ? rounded_float(options, x_.negative) : NearestFloat{};
  if (!x_.finite() || rounded.beyond) {
    if (options.out_of_range == error_range && (x_.finite() || !has_infinity)) return {.refused = true};
    const bool stops = options.out_of_range == saturate_range || stops_at_largest(options, x_.negative);
    if (stops && x_.finite()) return {.code = largest, .events = saturated};
    if (options.saturate != 0 && (x_.finite() || !infinity_is_nan)) return {.code = largest, .events = saturated};
    const std::uint16_t events = x_.finite() ? overflowed : no_event;
    if (is_fnuz(to_)) return {.code = fnuz_nan, .events = events};
    return {.code = sign | (has_infinity ? largest_finite(to_) + 1 : 0x7F), .events = events};
  }
  if (has_one_zero(to_) && rounded.magnitude == 0) return {.code = 0};  // there is no negative zero
  return {.code = sign | rounded.magnitude};
}

// D15: the magnitude.
Outcome Conversion::to_unsigned_float(const tc_cast_options& options) const {
  if (x_.nan()) return {.code = 0xFF};
  const bool below = x_.negative && !x_.zero();
  if (below && (options.invalid == 1 || options.out_of_range == error_range)) return {.refused = true};
  const NearestFloat rounded = x_.finite() ? rounded_float(options, false) : NearestFloat{};
  if (x_.finite() && !rounded.beyond) return {.code = rounded.magnitude};
  if (options.out_of_range == error_range) return {.refused = true};
  const bool stops = options.out_of_range == saturate_range || stops_at_largest(options, false);
  if (options.saturate != 0 || (stops && x_.finite())) return {.code = largest_finite(to_), .events = saturated};
  return {.code = 0xFF, .events = x_.finite() ? overflowed : no_event};
}

// D5 and D13: every code is a number.
Outcome Conversion::to_finite_float(const tc_cast_options& options) const {
  if (x_.nan()) {
    if (options.invalid == 1) return {.refused = true};
    if (to_ == e2m1 && opset_of(options) < 24) return {.code = 0x7};
    return {.code = sign_bit(to_)};
  }
  const std::uint64_t sign = x_.negative ? sign_bit(to_) : 0;
  const NearestFloat rounded = x_.finite() ? rounded_float(options, x_.negative) : NearestFloat{};
  const bool outside = !x_.finite() || rounded.beyond;
  if (outside && options.out_of_range == error_range) return {.refused = true};
  if (outside) return {.code = sign | largest_finite(to_), .events = saturated};
  return {.code = sign | rounded.magnitude};
}

// D4: clamp, then round; the range test is on x itself.
Outcome Conversion::to_power(const tc_cast_options& options) const {
  if (x_.nan()) return {.code = 0xFF};
  if (x_.negative && !x_.zero() && options.invalid == 1) return {.refused = true};
  const int side = x_.finite() ? power_.side : (x_.negative ? -1 : 1);
  if (side != 0) {
    if (options.out_of_range == error_range) return {.refused = true};
    const bool clamps = options.saturate != 0 || (options.out_of_range == saturate_range && x_.finite());
    if (clamps) return {.code = side < 0 ? 0x00U : 0xFEU, .events = saturated};
    return {.code = 0xFF, .events = x_.finite() ? overflowed : no_event};
  }
  if (options.rounding != 0) return {.code = power_by_word(x_.value, options.rounding)};
  switch (options.round_mode) {
    case round_up:
      return {.code = power_.up};
    case round_down:
      return {.code = power_.down};
    default:
      return {.code = power_.nearest};
  }
}

// D6 and D7.
Outcome Conversion::to_integer(const tc_cast_options& options) const {
  int policy = options.out_of_range;
  if (policy == 0) {
    const int opset = opset_of(options);
    policy = !from_whole_ && (to_ == i4 || to_ == u4) && opset >= 21 && opset <= 23 ? saturate_range : wrap_range;
  }
  if (!x_.finite() && (options.invalid == 1 || policy == error_range)) return {.refused = true};
  if (x_.nan()) return {};
  const auto finite_part = [&] {
    if (options.rounding <= TC_ROUNDING_NEAREST_EVEN) return options.rounding == 0 ? truncated_ : nearest_;
    return fit(integer_by_word(x_.value, options.rounding), to_);
  };
  const IntegerPart part = x_.finite() ? finite_part() : IntegerPart{.low_bits = 0, .side = x_.negative ? -1 : 1};
  if (part.side == 0) return {.code = part.low_bits};
  if (policy == error_range) return {.refused = true};
  if (policy == saturate_range) return {.code = integer_extreme(to_, part.side < 0), .events = saturated};
  return {.code = part.low_bits, .events = wrapped};
}

Outcome convert(Type from, std::uint64_t code, Type to, const tc_cast_options& options) {
  return Conversion(from, code, decode(from, code), to, options.scale).under(options);
}

}  // namespace oracle
