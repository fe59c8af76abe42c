// CastOptions after the decisions that depend on opset and target type. Codecs and kernels read this.
#pragma once

#include <cstdint>

#include "tensorcast/cast.hpp"

namespace tensorcast::codec {

// newest_opset() as a constant.
inline constexpr int newest_known_opset = 28;

enum class IntegerRange : std::uint8_t { wrap, saturate, error };

// Defaults are those of the newest opset. Rules by their names in docs/semantics.md.
struct Policy {
  bool saturate = true;            // D2, D4
  bool fnuz_inf_is_nan = false;    // D2: opset 19 to 23 with saturate and fnuz_inf = spec
  bool float4_nan_is_zero = true;  // D5: NaN becomes code 0x8 (-0); false: 0x7 (+6)
  bool invalid_is_error = false;
  IntegerRange integer_range = IntegerRange::wrap;  // D6
  IntRounding int_rounding = IntRounding::trunc;    // D6
  RoundMode e8m0_rounding = RoundMode::up;          // D4
  FloatString float_string = FloatString::plain;    // D9
  double scale = 1.0;

  // Reports whether an element may make the conversion fail.
  [[nodiscard]] bool demands_errors() const noexcept {
    return invalid_is_error || integer_range == IntegerRange::error;
  }
  // The same policy without errors: elements that would fail are converted as the defaults say.
  [[nodiscard]] Policy without_errors() const noexcept {
    Policy lenient = *this;
    lenient.invalid_is_error = false;
    if (integer_range == IntegerRange::error) lenient.integer_range = IntegerRange::wrap;
    return lenient;
  }

  friend bool operator==(const Policy&, const Policy&) = default;
};

// Checks the options against sections 1 and 2 of docs/semantics.md: types and attributes of the version.
// Errors: invalid_argument (option values), unsupported (naming the opset that introduced the type or attribute).
[[nodiscard]] Result<void> check_options(const CastOptions& options, DType from, DType to);

// The policy of the options at their opset. Precondition: check_options() accepted them.
[[nodiscard]] Policy policy_of(const CastOptions& options, DType from, DType to) noexcept;

// Calls check_options() and, if it succeeds, policy_of().
[[nodiscard]] Result<Policy> resolve_policy(const CastOptions& options, DType from, DType to);

}  // namespace tensorcast::codec
