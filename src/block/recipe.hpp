// SPDX-License-Identifier: Apache-2.0
// The table of recipes: one row for each way in which a tool quantizes to a scheme.
#pragma once

#include <cstdint>

#include "block/float_steps.hpp"
#include "block/scale_rule.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

// What an option changes, where a scheme has it.
enum class RecipeOption : std::uint8_t { none, group, power_of_two };

// Numbers for which the tool converts NaN to an integer, which C++ leaves undefined: what it writes then differs by its
// compiler, by types, and by where in a tensor the number is.
enum class Undefined : std::uint8_t { none, nan, infinity, both };

[[nodiscard]] constexpr bool has(Undefined numbers, float x) noexcept {
  if (is_finite(x) || numbers == Undefined::none) return false;
  return numbers == Undefined::both || (numbers == Undefined::nan) == is_nan(x);
}

struct Recipe {
  ElementRule element = {};
  ScaleRule scale = nullptr;       // null: GGUF's blocks
  ScaleRule asymmetric = nullptr;  // int4-group with zero points
  GlobalRule global = nullptr;     // null: no scale of the tensor
  DType scales = DType::float32;   // float8_e8m0fnu, float8_e4m3fn
  GlobalScale stored_global = GlobalScale::none;
  RecipeOption option = RecipeOption::none;
  GgufBlock gguf = GgufBlock::none;
  bool narrow_scales = false;  // float32 scales are numbers of the weights' type
  Undefined undefined = Undefined::none;
  bool skips_nan = false;  // the largest magnitude of a block is that of its other numbers
};

// The recipe of a row of quantize_recipes().
[[nodiscard]] const Recipe& recipe_of(const QuantizeRecipe& words) noexcept;

// ggml's own way to a format of GGUF. Precondition: not none.
[[nodiscard]] const Recipe& recipe_of(GgufBlock block) noexcept;

}  // namespace tensorcast::block
