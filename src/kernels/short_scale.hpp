// A scale that float32 holds, in place of one that it does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace tensorcast::kernels {

// Source numbers of up to `source_digits` binary digits, times the scale, rounded to float32, and then to a target that
// changes its result only at numbers of up to `boundary_digits` digits: the scale returned gives the same as the exact
// product. Nothing if together they are more than 21 digits. The scale is normal, has an exponent from -120 to 120, and
// more digits than a boundary. Takes some ten divisions.
[[nodiscard]] std::optional<float> short_scale(double scale, int source_digits, int boundary_digits) noexcept;

// The same of products that are cut off after the point instead of rounded: a sum for which x * high + x * low, each
// exact but for the last rounding toward zero, cuts off where the exact product does. Source numbers of up to 16
// digits, integers of up to `integer_digits` digits. `low` has the sign of `high`.
struct CutScale {
  float high, low;
};
[[nodiscard]] std::optional<CutScale> cut_scale(double scale, int source_digits, int integer_digits) noexcept;

// The same in one number: products that float32 cuts off are on the side of each boundary that the exact ones are on,
// or at it where those are beyond. Nothing if both together are more than 22 digits.
[[nodiscard]] std::optional<float> short_cut_scale(double scale, int source_digits, int boundary_digits) noexcept;

// The same of integers up to `greatest`, below 2^16, without floats: x * multiplier / 2^(16 + shift), rounded down, is
// the magnitude of the product cut off. Nothing unless the scale's magnitude is from 2^-16 to below 1, nor for most
// scales that are neither of few digits nor next to the reciprocal of an integer.
struct WordScale {
  std::uint16_t multiplier;
  int shift;  // up to 15
};
inline constexpr std::size_t word_scale_pays_from = std::size_t{1} << 15;  // elements: it takes 0.1 to 0.3 us
[[nodiscard]] std::optional<WordScale> word_scale(double scale, std::uint16_t greatest) noexcept;

}  // namespace tensorcast::kernels
