// How numbers become codes once their block's scale is known.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <span>

#include "tensorcast/block.hpp"

namespace tensorcast::block {

// The two numbers that a tie lies between: the even code, or the one towards zero.
enum class Ties : std::uint8_t { even, towards_zero };

// What codes zeros have, and numbers that round to zero.
enum class Zeros : std::uint8_t {
  sign_kept,         // -0 for negative ones
  negative_numbers,  // -0 for numbers below zero, +0 for -0
  never_negative,    // +0
  always_negative,   // -0
};

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
};

// What the elements of a block need of its scale.
struct Operand {
  float factor = 1.0f;  // or divisor
  float zero = 0.0f;    // added to the quotient of integers
};

// Codes, one a byte: the definition. `weights` is the type that quotients are rounded to.
void define_codes(const ElementRule& rule, DType weights, const Operand& operand, std::span<const float> numbers,
                  std::span<std::uint8_t> codes) noexcept;

// The same codes, faster.
void encode(const ElementRule& rule, DType weights, const Operand& operand, std::span<const float> numbers,
            std::span<std::uint8_t> codes) noexcept;

// The same in two steps, so that blocks with scales of their own get their codes together. Reports whether a rule's
// codes depend on quotients alone.
[[nodiscard]] bool is_of_quotients(const ElementRule& rule) noexcept;
void divide_block(const ElementRule& rule, DType weights, const Operand& operand, std::span<const float> numbers,
                  float* quotients) noexcept;
// Precondition: is_of_quotients(), at most 512 codes.
void encode_quotients(const ElementRule& rule, std::span<const float> quotients, std::uint8_t* codes) noexcept;

}  // namespace tensorcast::block
