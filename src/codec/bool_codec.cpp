// SPDX-License-Identifier: Apache-2.0
#include "codec/bool_codec.hpp"

namespace tensorcast::codec {

Real decode_bool(std::uint64_t bits) noexcept { return Real::Finite(false, bits != 0 ? 1 : 0, 0); }

Encoded encode_bool(const Real& value) noexcept {
  switch (value.kind) {
    case Real::Kind::zero:
      return {.bits = 0};
    case Real::Kind::nan:
      return {.bits = 1, .events = event_nan_lost};
    case Real::Kind::infinite:
      return {.bits = 1};
    case Real::Kind::finite:
      break;
  }
  const bool is_one = !value.negative && value.leading_exponent() == 0 && value.significand << 1 == 0 && !value.sticky;
  return {.bits = 1, .events = is_one ? std::uint16_t{0} : std::uint16_t{event_inexact}};
}

}  // namespace tensorcast::codec
