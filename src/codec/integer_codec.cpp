// SPDX-License-Identifier: Apache-2.0
#include "codec/integer_codec.hpp"

#include "dtype/dtype_table.hpp"

namespace tensorcast::codec {
namespace {

using int128 = __int128;

std::uint64_t code_mask(const DTypeRow& type) { return ~std::uint64_t{0} >> (64 - type.bits); }

int128 lowest(const DTypeRow& type) { return type.is_signed ? -(int128{1} << (type.bits - 1)) : 0; }
int128 largest(const DTypeRow& type) { return (int128{1} << (type.bits - (type.is_signed ? 1 : 0))) - 1; }

int128 number(const DTypeRow& type, std::uint64_t bits) {
  const bool negative = type.is_signed && (bits >> (type.bits - 1) & 1) != 0;
  return static_cast<int128>(bits) - (negative ? int128{1} << type.bits : 0);
}

// |value| rounded to an integer: its low 64 bits, and whether it has no others.
struct IntegerPart {
  std::uint64_t low_bits = 0;
  bool fits_64_bits = false;
  bool rounded = false;
};

IntegerPart integer_part(const Real& value, const RoundingStep& step) {
  if (value.exponent < 0) {
    const SplitMagnitude exact = split_at(value, 0);
    const uint128 whole = rounded(exact, value.negative, step);
    return {.low_bits = static_cast<std::uint64_t>(whole),
            .fits_64_bits = whole >> 64 == 0,
            .rounded = exact.tail != Real::Tail::none};
  }
  if (!value.sticky) {
    return {.low_bits = value.exponent < 64 ? static_cast<std::uint64_t>(value.significand) << value.exponent : 0};
  }
  // Out of every range: what wraps of a stochastic result depends on the fraction's side of one half alone.
  const SplitMagnitude low{.whole = value.integer_low_bits,
                           .tail = value.fraction,
                           .tail_bits = value.fraction >= Real::Tail::half ? 0x80000000 : 0};
  return {.low_bits = static_cast<std::uint64_t>(rounded(low, value.negative, step)),
          .rounded = value.fraction != Real::Tail::none};
}

Encoded error() { return {.events = event_error}; }

// The result for a nonzero number.
Encoded encoded(std::uint64_t bits, unsigned events) {
  return {.bits = bits, .events = static_cast<std::uint16_t>(bits == 0 ? events | event_underflowed : events)};
}

Encoded encode_nonfinite(const Real& value, const DTypeRow& type, const Policy& policy) {
  if (policy.invalid_is_error || policy.range == RangeRule::error) return error();
  if (value.is_nan()) return {.bits = 0, .events = event_nan_lost};
  if (policy.range == RangeRule::wrap) return {.bits = 0, .events = event_wrapped};
  const int128 extreme = value.negative ? lowest(type) : largest(type);
  return {.bits = static_cast<std::uint64_t>(extreme) & code_mask(type), .events = event_saturated};
}

Encoded encode_finite(const Real& value, const DTypeRow& type, const Policy& policy, std::uint32_t random) {
  const IntegerPart part = integer_part(value, policy.step(Rounding::toward_zero, random));
  const int128 signed_part = value.negative ? -static_cast<int128>(part.low_bits) : static_cast<int128>(part.low_bits);
  if (part.fits_64_bits && signed_part >= lowest(type) && signed_part <= largest(type)) {
    return encoded(static_cast<std::uint64_t>(signed_part) & code_mask(type),
                   part.rounded ? unsigned{event_inexact} : 0U);
  }
  switch (policy.range) {
    case RangeRule::wrap:
      return encoded(static_cast<std::uint64_t>(signed_part) & code_mask(type), event_wrapped | event_inexact);
    case RangeRule::saturate: {
      const int128 extreme = value.negative ? lowest(type) : largest(type);
      return encoded(static_cast<std::uint64_t>(extreme) & code_mask(type), event_saturated | event_inexact);
    }
    case RangeRule::error:
      break;
  }
  return error();
}

}  // namespace

Real decode_integer(DType from, std::uint64_t bits) noexcept {
  const int128 value = number(row(from), bits);
  return Real::Finite(value < 0, static_cast<uint128>(value < 0 ? -value : value), 0);
}

Encoded encode_integer(const Real& value, DType to, const Policy& policy, std::uint32_t random) noexcept {
  switch (value.kind) {
    case Real::Kind::zero:
      return {};
    case Real::Kind::finite:
      return encode_finite(value, row(to), policy, random);
    case Real::Kind::infinite:
    case Real::Kind::nan:
      break;
  }
  return encode_nonfinite(value, row(to), policy);
}

}  // namespace tensorcast::codec
