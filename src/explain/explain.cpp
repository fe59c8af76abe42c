// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/explain.hpp"

#include <charconv>
#include <cmath>
#include <optional>

#include "codec/decimal.hpp"
#include "codec/policy.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using codec::Decimal;
using codec::Encoded;
using codec::Policy;
using codec::Real;

constexpr std::size_t max_digits = 100'000;  // of a literal written out; bounds the exact arithmetic

// The number to explain: a code of a type, or an exact number without a type.
struct Source {
  DType dtype = DType::undefined;
  std::uint64_t code = 0;        // when dtype is a type
  std::string_view text;         // otherwise
  std::optional<Decimal> value;  // finite values, before the scale
  bool is_nan = false;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view spaces = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(spaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

bool is_code(std::string_view literal) {
  return literal.size() > 2 && literal[0] == '0' &&
         (literal[1] == 'x' || literal[1] == 'X' || literal[1] == 'b' || literal[1] == 'B');
}

Result<std::uint64_t> parse_code(std::string_view literal, DType from) {
  const int base = literal[1] == 'x' || literal[1] == 'X' ? 16 : 2;
  const std::string_view digits = literal.substr(2);
  std::uint64_t code = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
  if (end != digits.data() + digits.size()) return parse_error(formatted("\"{}\" is not a code", literal));
  const int bits = bit_width(from);
  if (bits == 0) {
    return invalid(formatted("\"{}\" is a code, and a code needs a numeric type to be of", literal),
                   "`from` names the type that the code belongs to");
  }
  if (status != std::errc{} || (bits < 64 && code >> bits != 0)) {
    return invalid(formatted("code {} has more than the {} bits of {}", literal, bits, name(from)));
  }
  return code;
}

std::optional<Decimal> exact_value_of(const Real& value) {
  if (value.kind == Real::Kind::zero) return Decimal::FromBinary(value.negative, 0, 0);
  if (value.kind != Real::Kind::finite) return std::nullopt;
  return Decimal::FromBinary(value.negative, value.significand, value.exponent);
}

Result<Source> read_source(std::string_view literal, DType from, const CastOptions& options) {
  const bool typed = from != DType::undefined && from != DType::string;
  Source source;
  source.dtype = typed ? from : DType::undefined;
  source.text = literal;
  if (is_code(literal)) {
    source.code = TRY(parse_code(literal, from));
  } else if (typed) {
    CastOptions unscaled = options;  // the word is of the conversion that is explained
    unscaled.scale = 1.0;
    unscaled.rounding = Rounding::automatic;
    unscaled.seed = 0;
    unscaled.inexact = Inexact::automatic;
    const Policy policy = TRY(codec::resolve_policy(unscaled, DType::float64, from));
    source.code = TRY(codec::cast_text(literal, from, policy));
  } else {
    const Real real = TRY(codec::decode_text(literal));
    source.is_nan = real.kind == Real::Kind::nan;
    if (real.kind == Real::Kind::zero || real.kind == Real::Kind::finite) {
      source.value = Decimal::parse(literal, max_digits);
      if (!source.value) return invalid(formatted("written out, the number has more than {} digits", max_digits));
    }
    return source;
  }
  const Real real = codec::decode(source.dtype, source.code);
  source.is_nan = real.kind == Real::Kind::nan;
  source.value = exact_value_of(real);
  return source;
}

std::string bits_text(std::uint64_t code, int low, int count) {
  std::string text;
  for (int bit = low + count - 1; bit >= low; --bit) text += ((code >> bit) & 1) != 0 ? '1' : '0';
  return text;
}

void set_bits(Explanation& result) {
  const DTypeRow& type = row(result.dtype);
  if (type.family != Family::floating) {
    result.mantissa_bits = bits_text(result.code, 0, type.bits);
    return;
  }
  const FloatFormat& format = type.format;
  if (format.has_sign) result.sign_bits = bits_text(result.code, type.bits - 1, 1);
  result.exponent_bits = bits_text(result.code, format.mantissa_bits, format.exponent_bits);
  result.mantissa_bits = bits_text(result.code, 0, format.mantissa_bits);
}

std::vector<std::string> event_names(const Encoded& encoded, DType to, const Policy& policy) {
  std::vector<std::string> names;
  const auto happened = [&](codec::Event event) { return (encoded.events & event) != 0; };
  if (happened(codec::event_overflowed)) names.emplace_back("overflowed");
  if (happened(codec::event_saturated)) names.emplace_back("saturated");
  if (happened(codec::event_wrapped)) names.emplace_back("wrapped");
  if (happened(codec::event_underflowed)) names.emplace_back("underflowed");
  if (happened(codec::event_sign_lost)) names.emplace_back("sign lost");
  if (names.empty() && happened(codec::event_inexact)) {
    const bool truncates = family(to) == Family::integer &&
                           (policy.rounding == Rounding::automatic || policy.rounding == Rounding::toward_zero);
    names.emplace_back(truncates ? "truncated" : "rounded");
  }
  // An overflow to NaN and a NaN that was made are one event to a reader.
  if (names.empty() && happened(codec::event_nan_made)) names.emplace_back("NaN made");
  if (happened(codec::event_nan_lost)) names.emplace_back("NaN lost");
  if (names.empty()) names.emplace_back("exact");
  return names;
}

// The number is the first of its tensor, on which stochastic rounding depends.
Result<Encoded> encode_source(const Source& source, DType to, const Policy& policy) {
  const std::uint32_t random = codec::random_of(policy, 0);
  if (source.dtype != DType::undefined) return codec::cast_code(source.dtype, source.code, to, policy, random);
  const Real real = TRY(codec::decode_text(source.text, policy.scale));
  return codec::encode(real, to, policy, random);
}

// The message with which a cast of this element fails; "" if it succeeds.
std::string cast_error(const Source& source, DType to, const Policy& policy) {
  if (source.dtype == DType::undefined) {
    return formatted("value {} {} {}", source.text, codec::refusal(policy), name(to));
  }
  std::byte from_storage[8] = {};
  std::byte to_storage[8] = {};
  codec::store_code(source.dtype, from_storage, 0, source.code);
  const Result<void> refused = codec::reference_cast(from_storage, source.dtype, to_storage, to, 1, policy);
  return refused ? "" : refused.error().message;
}

void explain_text(const Source& source, const Policy& policy, Explanation& result) {
  std::string text(source.text);
  if (source.dtype != DType::undefined) {
    text.clear();
    codec::append_text(source.dtype, source.code, policy, text);
  }
  result.exact_value = result.shortest_value = std::move(text);
  result.events = {"exact"};
  if (!source.value || source.dtype == DType::undefined) return;
  // The digits printed are the shortest that read back, so they may miss the value itself.
  const std::optional<Decimal> printed = Decimal::parse(result.exact_value, max_digits);
  const Decimal error = *printed - *source.value;
  result.exact_error = error.to_string();
  result.relative_error = error.magnitude_ratio(*source.value);
  if (!error.is_zero()) result.events = {"rounded"};
}

}  // namespace

Result<Explanation> explain(std::string_view literal, DType from, DType to, const CastOptions& options) {
  TRY(check_castable(to));
  if (from != DType::undefined) {
    TRY(check_castable(from));
  }
  const Source source = TRY(read_source(trimmed(literal), from, options));

  Explanation result;
  result.dtype = to;
  // A number without a type has the options of the widest floating type, but may be out of the range of each.
  const bool is_typed = source.dtype != DType::undefined;
  Result<Policy> policy = codec::resolve_policy(options, is_typed ? source.dtype : DType::float64, to);
  if (!policy) {
    result.error = policy.error().message;
    return result;
  }
  if (to == DType::float64 && !is_typed) policy = codec::policy_of(options, DType::string, to);
  if (to == DType::string) {
    if (policy->scale != 1.0) {
      result.error = "a cast to string has no scale";
    } else {
      explain_text(source, *policy, result);
    }
    return result;
  }
  const Encoded encoded = TRY(encode_source(source, to, *policy));
  if ((encoded.events & codec::event_error) != 0) {
    result.error = cast_error(source, to, *policy);
    return result;
  }
  result.code = encoded.bits;
  set_bits(result);
  result.events = event_names(encoded, to, *policy);

  Policy plain = *policy;
  plain.float_string = FloatString::plain;
  codec::append_text(to, result.code, plain, result.shortest_value);
  const std::optional<Decimal> value = exact_value_of(codec::decode(to, result.code));
  result.exact_value = value ? value->to_string() : result.shortest_value;
  if (value && source.value) {
    const Decimal wanted = *source.value * Decimal::FromDouble(policy->scale);
    const Decimal error = *value - wanted;
    result.exact_error = error.to_string();
    result.relative_error = error.magnitude_ratio(wanted);
  }
  return result;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
