// SPDX-License-Identifier: Apache-2.0
#include "codec/policy.hpp"

#include <type_traits>

#include "dtype/dtype_table.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/number_range.hpp"
#include "dtype/try.hpp"
#include "options/cast_options.hpp"

namespace tensorcast::codec {
namespace {

// Opsets whose Cast differs from the one before, beside those that add an attribute; section 1 of the semantics.
constexpr int saturate_since = 19;
constexpr int int4_since = 21;  // up to round_mode_since, real numbers saturate to int4

static_assert(newest_known_opset == options::newest_known_opset);

[[gnu::cold]] Error invalid(std::string message) { return tensorcast::invalid(std::move(message)); }

[[gnu::cold]] Error newer_than(std::string_view what, int since, int opset) {
  return unsupported(formatted("{} of Cast since opset {}; opset {} was asked for", what, since, opset));
}

[[gnu::cold]] Error newer_type(DType dtype, int opset) {
  return newer_than(formatted("{} is a type", name(dtype)), since_opset(dtype), opset);
}

bool are_right(const CastOptions& options) {
  return options::all_of(options::cast_options,
                         [&](const auto& option) { return option.allows(options.*option.member); });
}

// Precondition: an option has a wrong value. Returns the error of the first one.
[[gnu::cold]] Error wrong_value(const CastOptions& options) {
  Error error;
  options::all_of(options::cast_options, [&](const auto& option) {
    const auto value = options.*option.member;
    if (option.allows(value)) return true;
    using Number = std::conditional_t<std::is_floating_point_v<decltype(value)>, double, std::int64_t>;
    error = invalid(options::complaint(option, option.name, static_cast<Number>(value)));
    return false;
  });
  return error;
}

// Reports whether the version has the attributes that are not at their defaults.
bool has_attributes(const CastOptions& options, int opset) {
  return options::all_of(options::cast_options,
                         [&](const auto& option) { return option.known_to(opset, options.*option.member); });
}

// Precondition: the version lacks an attribute. Returns the error of the first one.
[[gnu::cold]] Error newer_attribute(const CastOptions& options, int opset) {
  Error error;
  options::all_of(options::cast_options, [&](const auto& option) {
    if (option.known_to(opset, options.*option.member)) return true;
    error = newer_than(formatted("{} is an attribute", option.name), option.since_opset, opset);
    return false;
  });
  return error;
}

Result<void> check_types(DType from, DType to, int opset) {
  for (const DType dtype : {from, to}) {
    if (find_row(dtype) == nullptr) return check_castable(dtype);
    if (opset < row(dtype).since_opset) {
      return newer_type(dtype, opset);
    }
  }
  return {};
}

bool is_fnuz(DType dtype) {
  return is_onnx_row(row(dtype)) && row(dtype).format.nonfinite == NonFinite::nan_negative_zero;
}

bool is_whole(Family family) { return family == Family::integer || family == Family::boolean; }

// What the options and the version ask for, whether or not an element can be out of range.
RangeRule wanted_rule(const CastOptions& options, DType from, DType to, int opset) {
  switch (options.out_of_range) {
    case OutOfRange::wrap:
      return RangeRule::wrap;
    case OutOfRange::saturate:
      return RangeRule::saturate;
    case OutOfRange::error:
      return RangeRule::error;
    case OutOfRange::automatic:
      break;
  }
  // D6: the operator tests of these opsets saturate real numbers. With a scale, every source is a real number.
  if (opset < int4_since || opset >= round_mode_since || (to != DType::int4 && to != DType::uint4)) {
    return RangeRule::wrap;
  }
  return !is_whole(row(from).family) || options.scale != 1.0 ? RangeRule::saturate : RangeRule::wrap;
}

// `wrap` if no element can be out of range; NaN is out of an integer's.
RangeRule range_rule(const CastOptions& options, DType from, DType to, int opset) {
  const RangeRule wanted = wanted_rule(options, from, to, opset);
  if (wanted == RangeRule::wrap) return wanted;  // nothing to look up, as in most calls
  const bool to_integer = family(to) == Family::integer, to_float = family(to) == Family::floating;
  const bool has_nan = family(from) == Family::floating && row(from).format.has_nan();
  const bool may_matter = options.scale != 1.0 || (to_integer && has_nan) || may_be_out_of_range(row(from), row(to));
  return (to_integer || to_float) && may_matter ? wanted : RangeRule::wrap;
}

// Reports whether `to` has every number of `from`, so that none is rounded or out of range.
bool has_all_numbers(const DTypeRow& from, const DTypeRow& to) {
  if (from.family == Family::text || to.family != Family::floating || may_be_out_of_range(from, to)) return false;
  const int digits = from.family == Family::floating ? from.format.mantissa_bits + 1 : from.bits;
  const int last_place = from.family == Family::floating ? from.format.min_exponent() - from.format.mantissa_bits : 0;
  return to.format.has_zero && digits <= to.format.mantissa_bits + 1 &&
         last_place >= to.format.min_exponent() - to.format.mantissa_bits;
}

// The word that changes a result; automatic if it is what the target does anyway.
Rounding word_of(const CastOptions& options, const DTypeRow& from, const DTypeRow& to) {
  const bool is_scaled = options.scale != 1.0;
  const Rounding word = options.rounding;
  if (word == Rounding::automatic || (from.id == to.id && !is_scaled) || to.family == Family::text)
    return Rounding::automatic;
  if (to.family == Family::integer) {
    return word == Rounding::toward_zero || (is_whole(from.family) && !is_scaled) ? Rounding::automatic : word;
  }
  if (to.family != Family::floating) return Rounding::automatic;
  if (to.format.has_zero)
    return word == Rounding::nearest_even || (!is_scaled && has_all_numbers(from, to)) ? Rounding::automatic : word;
  const bool has_mode = word != Rounding::nearest_even && word != Rounding::to_odd && word != Rounding::stochastic;
  return has_mode ? Rounding::automatic : word;
}

// D16: the words that are modes of float8_e8m0fnu, whose numbers are positive.
RoundMode e8m0_mode(const CastOptions& options) {
  switch (options.rounding) {
    case Rounding::nearest_away:
      return RoundMode::nearest;
    case Rounding::toward_zero:
    case Rounding::toward_negative:
      return RoundMode::down;
    case Rounding::toward_positive:
      return RoundMode::up;
    default:
      return options.round_mode;
  }
}

int opset_of(const CastOptions& options) { return options.opset == 0 ? newest_known_opset : options.opset; }

}  // namespace

Result<void> check_values(const CastOptions& options) {
  if (!are_right(options)) return wrong_value(options);
  if (options.seed != 0 && options.rounding != Rounding::stochastic) {
    return invalid(formatted("seed is {}, but only rounding=stochastic has one", options.seed));
  }
  return {};
}

Result<void> check_options(const CastOptions& options, DType from, DType to) {
  TRY(check_values(options));
  const int opset = opset_of(options);
  TRY(check_types(from, to, opset));
  if (!has_attributes(options, opset)) return newer_attribute(options, opset);
  const bool has_two = options.rounding != Rounding::automatic && options.round_mode != CastOptions{}.round_mode;
  if (has_two && to == DType::float8_e8m0fnu) {
    return invalid("round_mode must not be given with rounding, which says how float8_e8m0fnu is rounded, too");
  }
  if (to == DType::string && options.inexact == Inexact::error && options.float_string == FloatString::g8) {
    return invalid("eight digits do not say every number, which inexact=error would have to refuse");
  }
  if (to == DType::string && options.scale != 1.0) return invalid("a cast to string has no scale");
  return {};
}

Policy policy_of(const CastOptions& options, DType from, DType to) noexcept {
  const int opset = opset_of(options);
  Policy policy;
  policy.saturate = options.saturate;
  policy.keeps_infinity = is_fnuz(to) && options.saturate && options.fnuz_inf == FnuzInf::spec &&
                          opset >= saturate_since && opset < round_mode_since;
  policy.float4_nan_is_zero = opset >= round_mode_since;
  policy.invalid_is_error = options.invalid == Invalid::error;
  policy.range = range_rule(options, from, to, opset);
  if (policy.range == RangeRule::saturate && row(to).family == Family::floating && row(to).bits <= 8) {
    // Finite numbers saturate, and infinities become what they become without `saturate`.
    policy.keeps_infinity |= !policy.saturate && row(to).format.has_nan();
    policy.saturate = true;
    policy.range = RangeRule::wrap;
  }
  policy.inexact_is_error = options.inexact == Inexact::error;
  policy.rounding = word_of(options, row(from), row(to));
  policy.seed = policy.rounding == Rounding::stochastic ? options.seed : 0;
  policy.e8m0_rounding = e8m0_mode(options);
  policy.float_string = options.float_string;
  policy.scale = options.scale;
  return policy;
}

Result<Policy> resolve_policy(const CastOptions& options, DType from, DType to) {
  TRY(check_options(options, from, to));
  return policy_of(options, from, to);
}

}  // namespace tensorcast::codec
