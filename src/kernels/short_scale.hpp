// A scale that float32 holds, in place of one that it does not.
#pragma once

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

}  // namespace tensorcast::kernels
