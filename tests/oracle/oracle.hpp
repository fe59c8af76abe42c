// SPDX-License-Identifier: Apache-2.0
// Computes the required result of a conversion from docs/semantics.md alone. Shares no code with the library and
// favours simplicity over speed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "exact.hpp"
#include "rounding.hpp"
#include "tensorcast/c_api.h"
#include "types.hpp"

namespace oracle {

tc_cast_options default_options();
int opset_of(const tc_cast_options& options);  // 0 resolved

// Returns TC_OK, or the reason why this opset or these options do not allow the conversion.
tc_status admission(Type from, Type to, const tc_cast_options& options);

// Events of one element, as the fields of CastReport define them.
inline constexpr std::uint16_t no_event = 0;
inline constexpr std::uint16_t inexact = 1;
inline constexpr std::uint16_t overflowed = 2;
inline constexpr std::uint16_t saturated = 4;
inline constexpr std::uint16_t underflowed = 8;
inline constexpr std::uint16_t nan_made = 16;
inline constexpr std::uint16_t nan_lost = 32;
inline constexpr std::uint16_t wrapped = 64;
inline constexpr std::uint16_t sign_lost = 128;
std::string describe_events(std::uint16_t events);

struct Outcome {
  std::uint64_t code = 0;
  std::uint16_t events = 0;
  bool refused = false;  // the options make this element an error; code and events are then undefined
};

// One element on its way to one type: the rounding is done once, then judged under any options with the same scale.
class Conversion {
 public:
  // `source` is decode(from, code); `from` text means a parsed literal.
  Conversion(Type from, std::uint64_t code, const Exact& source, Type to, double scale = 1.0);

  [[nodiscard]] Outcome under(const tc_cast_options& options) const;
  [[nodiscard]] const Exact& scaled_source() const { return x_; }

 private:
  [[nodiscard]] Outcome to_float(const tc_cast_options& options) const;
  [[nodiscard]] Outcome to_ieee(const tc_cast_options& options) const;
  [[nodiscard]] Outcome to_float8(const tc_cast_options& options) const;
  [[nodiscard]] Outcome to_unsigned_float(const tc_cast_options& options) const;
  [[nodiscard]] Outcome to_finite_float(const tc_cast_options& options) const;
  [[nodiscard]] Outcome to_power(const tc_cast_options& options) const;
  [[nodiscard]] Outcome to_integer(const tc_cast_options& options) const;
  [[nodiscard]] std::uint64_t quiet_nan() const;
  // Of a finite number.
  [[nodiscard]] NearestFloat rounded_float(const tc_cast_options& options, bool is_negative) const;
  // Reports whether the options make a number beyond the largest the largest (D16).
  [[nodiscard]] bool stops_at_largest(const tc_cast_options& options, bool is_negative) const;

  Type to_;
  std::uint64_t code_;
  bool bit_copy_;
  bool from_whole_;  // D7: an integer or bool, unscaled
  Exact x_;
  NearestFloat float_;
  PowerOfTwo power_;
  IntegerPart truncated_, nearest_;
};

Outcome convert(Type from, std::uint64_t code, Type to, const tc_cast_options& options);

// D8. Returns nullopt if the text is not a number (or, for bool, a word).
std::optional<Exact> parse(std::string_view text, Type to);

// D9: returns "" if `printed` is right for the code, else the mistake. Plain notation must have the fewest digits that
// read back, and the closest of those; with an exponent, the fewest characters.
std::string fault_of_printed(Type from, std::uint64_t code, std::string_view printed, bool may_use_exponent);

}  // namespace oracle
