// SPDX-License-Identifier: Apache-2.0
#include "codec/float_codec.hpp"

#include "dtype/dtype_table.hpp"

namespace tensorcast::codec {
namespace {

constexpr std::uint64_t low_ones(int count) { return (std::uint64_t{1} << count) - 1; }

constexpr std::uint64_t sign_bit(const DTypeRow& type) {
  return type.format.has_sign ? std::uint64_t{1} << (type.bits - 1) : 0;
}

// Report whether finite numbers out of range, and infinities, become the largest number; else infinity or NaN.
bool saturates(const DTypeRow& type, const Policy& policy) {
  if (type.format.obeys_saturate()) return policy.saturate;
  return !type.format.has_nan() || policy.range == RangeRule::saturate;
}
bool infinity_saturates(const DTypeRow& type, const Policy& policy) {
  return !type.format.has_nan() || (type.format.obeys_saturate() && policy.saturate && !policy.keeps_infinity);
}

// The code of the largest number with this sign.
std::uint64_t extreme_code(const DTypeRow& type, bool negative) {
  return (negative ? sign_bit(type) : 0) | type.format.largest_code();
}

std::uint64_t infinity_code(const FloatFormat& format) { return format.largest_code() + 1; }

// D3. Precondition: the format has a NaN.
std::uint64_t nan_code(const DTypeRow& type, bool negative, std::uint64_t payload) {
  const FloatFormat& format = type.format;
  const std::uint64_t sign = negative ? sign_bit(type) : 0;
  switch (format.nonfinite) {
    case NonFinite::ieee: {
      const int payload_bits = format.mantissa_bits - 1;
      const std::uint64_t quiet = std::uint64_t{1} << payload_bits;
      return sign | infinity_code(format) | quiet | payload >> (64 - payload_bits);
    }
    case NonFinite::nan_all_ones:
      return sign | low_ones(format.exponent_bits + format.mantissa_bits);
    case NonFinite::nan_negative_zero:
    case NonFinite::nan_and_infinity:
      return sign_bit(type);
    case NonFinite::none:
      break;
  }
  return 0;
}

Encoded encode_nan(const Real& value, const DTypeRow& type, const Policy& policy) {
  if (type.format.has_nan()) return {.bits = nan_code(type, value.negative, value.nan_payload)};
  if (policy.invalid_is_error) return {.events = event_error};
  // D5, D13: NaN becomes -0; up to opset 23 it became the largest float4.
  const bool becomes_largest = nan_depends_on_opset(type) && !policy.float4_nan_is_zero;
  return {.bits = becomes_largest ? type.format.largest_code() : sign_bit(type), .events = event_nan_lost};
}

Encoded encode_infinite(const Real& value, const DTypeRow& type, const Policy& policy) {
  const std::uint64_t sign = value.negative ? sign_bit(type) : 0;
  if (policy.range == RangeRule::error && !type.format.has_infinity()) return {.events = event_error};
  if (infinity_saturates(type, policy)) {
    return {.bits = extreme_code(type, value.negative), .events = event_saturated};
  }
  if (type.format.has_infinity()) return {.bits = sign | infinity_code(type.format)};
  return {.bits = nan_code(type, value.negative, 0), .events = event_nan_made};
}

// D16: a word that leads to zero leads to the largest number, whatever saturates.
Encoded encode_beyond(const Real& value, const DTypeRow& type, const Policy& policy, const RoundingStep& step) {
  const std::uint64_t sign = value.negative ? sign_bit(type) : 0;
  if (policy.range == RangeRule::error) return {.events = event_error};
  if (saturates(type, policy) || step.leads_to_zero(value.negative)) {
    return {.bits = extreme_code(type, value.negative),
            .events = static_cast<std::uint16_t>(event_saturated | event_inexact)};
  }
  if (type.format.has_infinity()) return {.bits = sign | infinity_code(type.format), .events = event_overflowed};
  return {.bits = nan_code(type, value.negative, 0), .events = event_overflowed | event_nan_made};
}

// D1, D2, D5, D13, D16: rounds as if the exponent range had no upper end, then tests the range.
Encoded encode_finite(const Real& value, const DTypeRow& type, const Policy& policy, const RoundingStep& step) {
  const FloatFormat& format = type.format;
  const int leading = value.leading_exponent();
  if (leading > format.max_exponent() + 1) return encode_beyond(value, type, policy, step);
  const bool subnormal = leading < format.min_exponent();
  const int binade = subnormal ? format.min_exponent() : leading;
  const SplitMagnitude exact = split_at(value, binade - format.mantissa_bits);

  // A significand that rounds up to the next power of two carries into the exponent field: the code stays right.
  const auto kept = static_cast<std::uint64_t>(rounded(exact, value.negative, step));
  const auto exponent_field = static_cast<std::uint64_t>(subnormal ? 0 : leading + format.bias - 1);
  const std::uint64_t code = (exponent_field << format.mantissa_bits) + kept;
  if (code > format.largest_code()) return encode_beyond(value, type, policy, step);

  Encoded result{.bits = code};
  if (exact.tail != Real::Tail::none) result.events |= event_inexact;
  if (code == 0) result.events |= event_underflowed;
  if (value.negative && (code != 0 || format.has_negative_zero())) result.bits |= sign_bit(type);
  return result;
}

// D4, a format of powers of two only: tests the range of the value itself, then rounds.
Encoded encode_power_of_two(const Real& value, const DTypeRow& type, const Policy& policy, std::uint32_t random) {
  const FloatFormat& format = type.format;
  if (value.is_nan()) return {.bits = nan_code(type, false, 0)};

  const bool finite = value.kind == Real::Kind::finite;
  const int leading = finite ? value.leading_exponent() : 0;
  const bool exact = finite && value.significand << 1 == 0 && !value.sticky;
  const bool infinite = value.kind == Real::Kind::infinite;
  const bool below = value.kind == Real::Kind::zero || value.negative || (finite && leading < format.min_exponent());
  const bool above =
      !below && (infinite || leading > format.max_exponent() || (leading == format.max_exponent() && !exact));
  if (below || above) {
    if (policy.range == RangeRule::error) return {.events = event_error};
    const std::uint16_t changed = infinite ? 0 : event_inexact;
    if (infinite ? infinity_saturates(type, policy) : saturates(type, policy)) {
      return {.bits = below ? 0 : format.largest_code(),
              .events = static_cast<std::uint16_t>(event_saturated | changed)};
    }
    const std::uint16_t overflowed = infinite ? 0 : event_overflowed;
    return {.bits = nan_code(type, false, 0), .events = static_cast<std::uint16_t>(event_nan_made | overflowed)};
  }
  if (policy.rounding != Rounding::automatic) {
    // The part of the number above its binade's power of two, of whose codes the last bits say which is even.
    const auto code = static_cast<std::uint64_t>(leading + format.bias);
    SplitMagnitude place = split_at(value, leading);
    place.whole = code;
    return {.bits = static_cast<std::uint64_t>(rounded(place, false, policy.step(Rounding::nearest_even, random))),
            .events = exact ? std::uint16_t{0} : std::uint16_t{event_inexact}};
  }
  bool up = !exact;
  if (policy.e8m0_rounding == RoundMode::down) up = false;
  if (policy.e8m0_rounding == RoundMode::nearest) up = (value.significand >> 126 & 1) != 0;
  return {.bits = static_cast<std::uint64_t>(leading + format.bias + (up ? 1 : 0)),
          .events = exact ? std::uint16_t{0} : std::uint16_t{event_inexact}};
}

Encoded encode_magnitude(const Real& value, const DTypeRow& type, const Policy& policy, const RoundingStep& step) {
  switch (value.kind) {
    case Real::Kind::nan:
      return encode_nan(value, type, policy);
    case Real::Kind::infinite:
      return encode_infinite(value, type, policy);
    case Real::Kind::finite:
      return encode_finite(value, type, policy, step);
    case Real::Kind::zero:
      break;
  }
  return {.bits = value.negative && type.format.has_negative_zero() ? sign_bit(type) : 0};
}

}  // namespace

Real decode_float(DType from, std::uint64_t bits) noexcept {
  const DTypeRow& type = row(from);
  const FloatFormat& format = type.format;
  const bool negative = (bits & sign_bit(type)) != 0;
  const std::uint64_t magnitude = bits & low_ones(format.exponent_bits + format.mantissa_bits);
  const std::uint64_t mantissa = magnitude & low_ones(format.mantissa_bits);
  const auto exponent_field = static_cast<int>(magnitude >> format.mantissa_bits);

  if (negative && magnitude == 0 && !format.has_negative_zero()) return Real::NaN(true);
  if (magnitude > format.largest_code()) {
    if (!format.has_infinity()) return Real::NaN(negative);
    if (magnitude == infinity_code(format)) return Real::Infinite(negative);
    return Real::NaN(negative, mantissa << (65 - format.mantissa_bits));
  }
  if (format.has_zero && exponent_field == 0) {
    return Real::Finite(negative, mantissa, format.min_exponent() - format.mantissa_bits);
  }
  const std::uint64_t significand = mantissa | std::uint64_t{1} << format.mantissa_bits;
  return Real::Finite(negative, significand, exponent_field - format.bias - format.mantissa_bits);
}

Encoded encode_float(const Real& value, DType to, const Policy& policy, std::uint32_t random) noexcept {
  const DTypeRow& type = row(to);
  const bool lacks_sign = !type.format.has_sign && value.is_below_zero();
  if (lacks_sign && policy.invalid_is_error) return {.events = event_error};
  if (!type.format.has_zero) return encode_power_of_two(value, type, policy, random);
  const RoundingStep step = policy.step(Rounding::nearest_even, random);
  if (!lacks_sign) return encode_magnitude(value, type, policy, step);
  // D15: the magnitude.
  if (policy.range == RangeRule::error) return {.events = event_error};
  Real magnitude = value;
  magnitude.negative = false;
  Encoded encoded = encode_magnitude(magnitude, type, policy, step);
  const bool changed = value.kind == Real::Kind::finite && (encoded.events & event_nan_made) == 0 && encoded.bits != 0;
  encoded.events |= static_cast<std::uint16_t>(event_sign_lost | (changed ? event_inexact : 0));
  return encoded;
}

}  // namespace tensorcast::codec
