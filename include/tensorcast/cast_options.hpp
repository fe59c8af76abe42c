// SPDX-License-Identifier: Apache-2.0
// Component core. What a conversion means: the options of every cast (docs/semantics.md).
#pragma once

#include <cstdint>

#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// The newest opset whose Cast the library knows, which is the default of CastOptions::opset.
[[nodiscard]] TENSORCAST_API int newest_opset() noexcept;

// Enumerator numbers are those of tc_cast_options in c_api.h.
enum class RoundMode : std::int32_t { up = 0, down = 1, nearest = 2 };                      // float8_e8m0fnu only
enum class OutOfRange : std::int32_t { automatic = 0, wrap = 1, saturate = 2, error = 3 };  // D6 of docs/semantics.md
// D16. `automatic`: integers toward zero, floating-point numbers to nearest even, float8_e8m0fnu as RoundMode says.
enum class Rounding : std::int32_t {
  automatic = 0,
  nearest_even = 1,
  nearest_away = 2,
  toward_zero = 3,
  toward_positive = 4,
  toward_negative = 5,
  to_odd = 6,
  stochastic = 7
};
// NaN and Inf to integer, NaN to float4 and float6, negative to types without sign.
enum class Invalid : std::int32_t { default_value = 0, error = 1 };
enum class FnuzInf : std::int32_t { spec = 0, flt_max = 1 };  // opset 19 to 23, saturate on
enum class FloatString : std::int32_t { plain = 0, shortest = 1, g8 = 2 };
// A number whose value would change: by any rounding, saturation or wrap. NaN equals NaN, and -0 equals 0.
enum class Inexact : std::int32_t { automatic = 0, error = 1 };

// What a conversion means. How it runs is in Execution.
struct CastOptions {
  int opset = 0;  // 0: newest_opset()
  bool saturate = true;
  RoundMode round_mode = RoundMode::up;
  OutOfRange out_of_range = OutOfRange::automatic;
  Rounding rounding = Rounding::automatic;  // of every target
  Invalid invalid = Invalid::default_value;
  FnuzInf fnuz_inf = FnuzInf::spec;
  FloatString float_string = FloatString::plain;
  double scale = 1.0;      // finite; values are multiplied by it before the one rounding
  std::uint64_t seed = 0;  // of stochastic rounding, and of no other
  Inexact inexact = Inexact::automatic;

  // The defaults, which are ONNX's: integers wrap.
  [[nodiscard]] static CastOptions onnx() noexcept { return {}; }
  // No integer is lost: out_of_range and invalid are errors. So are numbers out of the target's range, of a float too,
  // NaN and infinity to an integer, infinity to a type that lacks it, NaN to float4 and float6, zeros and negative
  // numbers to float8_e8m0fnu. Fractions are still truncated.
  [[nodiscard]] static CastOptions lossless_integers() noexcept {
    CastOptions options;
    options.out_of_range = OutOfRange::error;
    options.invalid = Invalid::error;
    return options;
  }
  // Finite numbers out of the target's range become its lowest or largest; fractions round to nearest, ties to even.
  [[nodiscard]] static CastOptions saturating_integers() noexcept {
    CastOptions options;
    options.out_of_range = OutOfRange::saturate;
    options.rounding = Rounding::nearest_even;
    return options;
  }

  friend bool operator==(const CastOptions&, const CastOptions&) = default;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
