// SPDX-License-Identifier: Apache-2.0
// How numbers become codes once their block's scale is known.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/runs.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

using kernels::Ties;
using kernels::Zeros;
using Operand = kernels::RunOperand;

// MLX and ggml compare distances in float32, and take the first of equal ones: those of quotients, or of numbers. So a
// number that is 2^25 times too large becomes 0.
enum class Search : std::uint8_t { none, quotients, numbers };

struct ElementRule {
  DType element = DType::undefined;  // int8 for integers
  int bits = 8;
  bool multiplies = false;  // number * operand, else number / operand
  bool rounds = false;      // the quotient is rounded to the weights' type
  Ties ties = Ties::even;
  Zeros zeros = Zeros::sign_kept;
  Search search = Search::none;
  std::int8_t nan_code = -1;  // of a quotient that is NaN, which RunEncoder does not make; -1: as it makes it
  bool nan_has_sign = false;  // with the quotient's sign
};

struct ElementLimits {
  float largest = 0.0f;  // number
  int exponent = 0;      // of it
  int mantissa = 0;      // bits
};
// Of a float; of other types they mean nothing.
[[nodiscard]] ElementLimits limits_of(DType element) noexcept;

// float4_e2m1fn as MLX, by quotients, and ggml, by numbers, find it.
constexpr ElementRule searched_float4(Search search) noexcept {
  return {.element = DType::float4_e2m1fn,
          .bits = 4,
          .rounds = search == Search::quotients,
          .ties = Ties::towards_zero,
          .zeros = Zeros::never_negative,
          .search = search};
}

// Codes, one a byte: the definition. `weights` is the type that quotients are rounded to.
void define_codes(const ElementRule& rule, DType weights, const Operand& operand, std::span<const float> numbers,
                  std::span<std::uint8_t> codes) noexcept;

}  // namespace tensorcast::block
