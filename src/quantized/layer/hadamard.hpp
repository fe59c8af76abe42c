// SPDX-License-Identifier: Apache-2.0
// ConvRot rotates groups of a weight's inputs by a Hadamard matrix: the Kronecker product of matrices of 4 x 4 whose
// rows are 1 1 1 -1, 1 1 -1 1, 1 -1 1 1 and -1 1 1 1, divided by the root of its size. It is symmetric and its own
// inverse.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::quantized {

// Whether there is such a matrix.
[[nodiscard]] constexpr bool is_rotation_size(std::int64_t size) noexcept {
  return size >= 4 && std::has_single_bit(static_cast<std::uint64_t>(size)) &&
         std::countr_zero(static_cast<std::uint64_t>(size)) % 2 == 0;
}

// Sums of a group's codes of 8 bits are under 2^24, and so exact in float32.
inline constexpr std::int64_t largest_rotation_undone = std::int64_t{1} << 16;

// What sums of a group are multiplied by: a power of two.
[[nodiscard]] inline double group_norm(std::int64_t size) noexcept {
  return std::ldexp(1.0, -std::countr_zero(static_cast<std::uint64_t>(size)) / 2);
}

// Replaces each group of `size` numbers by its sums with the signs of each row of the matrix.
template <class Number>
void sum_groups(std::span<Number> numbers, std::size_t size) noexcept {
  for (std::size_t stride = 1; stride < size; stride *= 4) {
    for (std::size_t begin = 0; begin < numbers.size(); begin += 4 * stride) {
      for (Number* at = numbers.data() + begin; at != numbers.data() + begin + stride; ++at) {
        const Number a = at[0], b = at[stride], c = at[2 * stride], d = at[3 * stride];
        at[0] = a + b + c - d;
        at[stride] = a + b - c + d;
        at[2 * stride] = a - b + c + d;
        at[3 * stride] = b + c + d - a;
      }
    }
  }
}

// Rotates whole groups of numbers of `dtype`, float32, bfloat16 or float16, where they are. They are rounded to
// `compute` first, which `dtype` holds, and so are their sums, which are those of float64.
[[nodiscard]] Result<void> rotate_groups(DType dtype, DType compute, std::int64_t size, std::span<std::byte> numbers);

}  // namespace tensorcast::quantized
