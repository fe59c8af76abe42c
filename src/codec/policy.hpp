// SPDX-License-Identifier: Apache-2.0
// CastOptions after the decisions that depend on opset and target type. Codecs and kernels read this.
#pragma once

#include <cstdint>

#include "codec/real.hpp"
#include "dtype/dtype_table.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::codec {

// newest_opset() as a constant.
inline constexpr int newest_known_opset = 28;

// The opset whose Cast has `round_mode`. Before it, NaN became the largest float4, and infinity could become NaN in
// FNUZ types.
inline constexpr int round_mode_since = 24;

// Reports whether a type without NaN is so old that what NaN becomes in it depends on the opset (D5).
constexpr bool nan_depends_on_opset(const DTypeRow& type) noexcept {
  return !type.format.has_nan() && is_onnx_row(type) && type.since_opset < round_mode_since;
}

// What becomes of a number out of range. `wrap`, to a float: what the version says.
enum class RangeRule : std::uint8_t { wrap, saturate, error };

// An enum of the public interface in one byte, as callers' structs hold policies.
template <class Enum>
class InByte {
 public:
  constexpr InByte(Enum value) noexcept : value_(static_cast<std::uint8_t>(value)) {}  // NOLINT
  constexpr operator Enum() const noexcept { return static_cast<Enum>(value_); }       // NOLINT
  explicit constexpr operator int() const noexcept { return value_; }

 private:
  std::uint8_t value_;
};

// Defaults are those of the newest opset. Rules by their names in docs/semantics.md.
struct Policy {
  bool saturate = true;            // D2, D4, of floats of 8 bits, which have NaN (FloatFormat::obeys_saturate())
  bool keeps_infinity = false;     // of those that saturate: infinities become infinity, or else NaN
  bool float4_nan_is_zero = true;  // D5: NaN becomes code 0x8 (-0); false: 0x7 (+6)
  bool invalid_is_error = false;
  bool inexact_is_error = false;
  // D6, D7. Never `saturate` for floats of 8 bits or fewer, as the two fields above say it.
  RangeRule range = RangeRule::wrap;
  InByte<Rounding> rounding = Rounding::automatic;        // D16; automatic also where another word changes nothing
  InByte<RoundMode> e8m0_rounding = RoundMode::up;        // D4, and the words of D16 that are one of its modes
  InByte<FloatString> float_string = FloatString::plain;  // D9
  double scale = 1.0;
  std::uint64_t seed = 0;

  // Reports whether an element may make the conversion fail.
  [[nodiscard]] bool demands_errors() const noexcept {
    return invalid_is_error || inexact_is_error || range == RangeRule::error;
  }
  // The same policy without errors: elements that would fail are converted as the defaults say.
  [[nodiscard]] Policy without_errors() const noexcept {
    Policy lenient = *this;
    lenient.invalid_is_error = lenient.inexact_is_error = false;
    if (range == RangeRule::error) lenient.range = RangeRule::wrap;
    return lenient;
  }
  // Reports whether numbers round otherwise than kernels do, which know two ways to integers.
  [[nodiscard]] bool has_word(const DTypeRow& to) const noexcept {
    return rounding != Rounding::automatic && !(to.family == Family::integer && rounding == Rounding::nearest_even);
  }
  // How an element is rounded to a target whose own word is `usual`.
  [[nodiscard]] RoundingStep step(Rounding usual, std::uint32_t random) const noexcept {
    const Rounding word = rounding;
    return {.word = word == Rounding::automatic ? usual : word, .random = random};
  }

  friend bool operator==(const Policy&, const Policy&) = default;
};

// Checks what no type decides: values, and that a seed goes with stochastic rounding. Errors: invalid_argument.
[[nodiscard]] Result<void> check_values(const CastOptions& options);

// Checks the options against sections 1 and 2 of docs/semantics.md: types and attributes of the version.
// Errors: invalid_argument (option values), unsupported (naming the opset that introduced the type or attribute).
[[nodiscard]] Result<void> check_options(const CastOptions& options, DType from, DType to);

// The policy of the options at their opset. Precondition: check_options() accepted them.
[[nodiscard]] Policy policy_of(const CastOptions& options, DType from, DType to) noexcept;

// Calls check_options() and, if it succeeds, policy_of().
[[nodiscard]] Result<Policy> resolve_policy(const CastOptions& options, DType from, DType to);

}  // namespace tensorcast::codec
