// SPDX-License-Identifier: Apache-2.0
// The result of encoding one value: its code and the events.
#pragma once

#include <cstdint>

namespace tensorcast::codec {

// The effects of encoding one value; several may apply.
enum Event : std::uint16_t {
  event_inexact = 1 << 0,      // finite in and out, value changed
  event_overflowed = 1 << 1,   // finite, out of range, became infinite or NaN
  event_saturated = 1 << 2,    // out of range (infinities included), became the lowest or largest
  event_underflowed = 1 << 3,  // finite and nonzero, became zero: rounded, saturated or wrapped
  event_nan_made = 1 << 4,     // was not NaN, became NaN
  event_nan_lost = 1 << 5,     // was NaN, became a number
  event_wrapped = 1 << 6,      // out of the integer's range, low bits kept
  event_error = 1 << 7,        // the policy demands an error; bits are unspecified
  event_sign_lost = 1 << 8,    // below zero, became its magnitude
};

struct Encoded {
  std::uint64_t bits = 0;  // right-aligned code
  std::uint16_t events = 0;
};

}  // namespace tensorcast::codec
