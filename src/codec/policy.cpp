#include "codec/policy.hpp"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "dtype/dtype_table.hpp"

namespace tensorcast::codec {
namespace {

// Opsets whose Cast differs from the one before; section 1 of the semantics.
constexpr int saturate_since = 19;
constexpr int int4_since = 21;
constexpr int round_mode_since = 24;  // also: Inf to FNUZ and NaN to float4 as they are today, int4 wraps

Error invalid(std::string message) { return Error{.code = ErrorCode::invalid_argument, .message = std::move(message)}; }

Error newer_than(std::string_view what, int since, int opset) {
  return Error{.code = ErrorCode::unsupported,
               .message = fmt::format("{} of Cast since opset {}; opset {} was asked for", what, since, opset)};
}

// Names the first option whose value is none of its enumerators, if there is one.
std::optional<Error> unknown_choice(const CastOptions& options) {
  struct Choice {
    std::string_view option;
    std::int32_t value;
    std::int32_t last;
  };
  const auto number = [](auto choice) { return static_cast<std::int32_t>(choice); };
  const Choice choices[] = {
      {"round_mode", number(options.round_mode), number(RoundMode::nearest)},
      {"out_of_range", number(options.out_of_range), number(OutOfRange::error)},
      {"int_rounding", number(options.int_rounding), number(IntRounding::nearest_even)},
      {"invalid", number(options.invalid), number(Invalid::error)},
      {"fnuz_inf", number(options.fnuz_inf), number(FnuzInf::flt_max)},
      {"float_string", number(options.float_string), number(FloatString::g8)},
  };
  for (const Choice& choice : choices) {
    if (choice.value >= 0 && choice.value <= choice.last) continue;
    return invalid(fmt::format("{} has no value {}", choice.option, choice.value));
  }
  return std::nullopt;
}

Result<void> check_values(const CastOptions& options) {
  if (std::optional<Error> unknown = unknown_choice(options)) return *std::move(unknown);
  if (options.threads < 0) return invalid(fmt::format("threads is 0 (all cores) or more, not {}", options.threads));
  if (options.opset < 0 || options.opset > newest_opset) {
    return invalid(
        fmt::format("opset {} does not exist; 1 to {} do, and 0 is the newest", options.opset, newest_opset));
  }
  if (!std::isfinite(options.scale)) return invalid("scale must be a finite number");
  return {};
}

Result<void> check_types(DType from, DType to, int opset) {
  for (const DType dtype : {from, to}) {
    if (dtype == DType::uint1) return invalid("uint1 can be promoted but not cast");
    if (!is_castable(dtype)) {
      return invalid(fmt::format("dtype number {} is no type of casts", static_cast<std::int32_t>(dtype)));
    }
    if (opset < since_opset(dtype)) {
      return newer_than(fmt::format("{} is a type", name(dtype)), since_opset(dtype), opset);
    }
  }
  return {};
}

bool is_fnuz(DType dtype) { return row(dtype).format.nonfinite == NonFinite::nan_negative_zero; }

IntegerRange integer_range(const CastOptions& options, DType from, DType to, int opset) {
  switch (options.out_of_range) {
    case OutOfRange::wrap:
      return IntegerRange::wrap;
    case OutOfRange::saturate:
      return IntegerRange::saturate;
    case OutOfRange::error:
      return IntegerRange::error;
    case OutOfRange::automatic:
      break;
  }
  // D6: what the operator tests of that era demand of real numbers. A scale makes a real number of any source.
  const bool is_real = family(from) == Family::floating || family(from) == Family::text || options.scale != 1.0;
  const bool is_4_bit = to == DType::int4 || to == DType::uint4;
  const bool saturates = is_real && is_4_bit && opset >= int4_since && opset < round_mode_since;
  return saturates ? IntegerRange::saturate : IntegerRange::wrap;
}

}  // namespace

Result<Policy> resolve_policy(const CastOptions& options, DType from, DType to) {
  if (Result<void> values = check_values(options); !values) return std::move(values).error();
  const int opset = options.opset == 0 ? newest_opset : options.opset;
  if (Result<void> types = check_types(from, to, opset); !types) return std::move(types).error();
  if (!options.saturate && opset < saturate_since) {
    return newer_than("saturate is an attribute", saturate_since, opset);
  }
  if (options.round_mode != RoundMode::up && opset < round_mode_since) {
    return newer_than("round_mode is an attribute", round_mode_since, opset);
  }
  if (to == DType::string && options.scale != 1.0) return invalid("a cast to string has no scale");

  Policy policy;
  policy.saturate = options.saturate;
  policy.fnuz_inf_is_nan = is_fnuz(to) && options.saturate && options.fnuz_inf == FnuzInf::spec &&
                           opset >= saturate_since && opset < round_mode_since;
  policy.float4_nan_is_zero = opset >= round_mode_since;
  policy.invalid_is_error = options.invalid == Invalid::error;
  policy.integer_range = integer_range(options, from, to, opset);
  policy.int_rounding = options.int_rounding;
  policy.e8m0_rounding = options.round_mode;
  policy.float_string = options.float_string;
  policy.scale = options.scale;
  return policy;
}

}  // namespace tensorcast::codec
