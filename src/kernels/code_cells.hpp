// Numbers of 16 bits times a scale, to float8 and float4: no products, but the least magnitudes of each code, in
// tables.
#pragma once

#include <cstdint>

#include "tensorcast/dtype.hpp"

namespace tensorcast::kernels {

// The code of a magnitude x (the source's code without its sign), in the upper byte of a word modulo 2^16. With as many
// bits behind it as there, x is the code of a float with another mantissa. This changes where the mantissa has certain
// bits, and the product's code where it has others; by adding what a table has for the cell that x is in, both do so at
// once. A cell may have but one change.
// - float4: x less `low`, not more than `last`, in 32 cells of 2^shift, and what `small` adds.
// - Two bits of mantissa: the same with eight cells a binade, of which the last eight stand for all that follow, as
//   there products and x are normal.
// - Three bits: the same as for float4 below `first`, where products are subnormal, or x; above that makes zero. To it
//   is added the code of x, not less than `first` nor more than `greatest`, made by `normal` with 32 cells a binade.
struct CodeCells {
  std::uint16_t normal[32] = {}, small[32] = {};
  std::uint16_t first = 0, greatest = 0, low = 0, last = 0, shift = 0;
  bool reaches_infinity = false;  // else its code is not that of the greatest
  bool are_made = false;
};

// From float16 or bfloat16, a scale from 2^-60 to 2^60. What overflows has the largest code or, not saturated, the
// next. Without tables where a cell would have two changes: of float16 times 2^-30, or where what is subnormal has
// normal products.
[[nodiscard]] CodeCells make_code_cells(DType from, DType to, double scale, bool saturate) noexcept;

// Making them takes as long as they save of half as many numbers.
inline constexpr std::size_t code_cells_pay_from = 16384;

}  // namespace tensorcast::kernels
