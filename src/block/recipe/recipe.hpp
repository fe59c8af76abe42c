// SPDX-License-Identifier: Apache-2.0
// The table of recipes: one row for each way in which a tool quantizes to a scheme.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "block/recipe/float_steps.hpp"
#include "block/recipe/scale_rule.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

// What an option changes, where a scheme has it.
enum class RecipeOption : std::uint8_t { none, group, power_of_two };

// Inputs for which the tool's result depends on its compiler, on types and on the place in a tensor: it casts NaN to an
// integer.
enum class UnspecifiedInputs : std::uint8_t { none, nan, infinity, both };

[[nodiscard]] constexpr bool has(UnspecifiedInputs numbers, float x) noexcept {
  if (is_finite(x) || numbers == UnspecifiedInputs::none) return false;
  return numbers == UnspecifiedInputs::both || (numbers == UnspecifiedInputs::nan) == is_nan(x);
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
  UnspecifiedInputs undefined = UnspecifiedInputs::none;
  bool skips_nan = false;  // the largest magnitude of a block is that of its other numbers
};

// The recipe of a row of quantize_recipes().
[[nodiscard]] const Recipe& recipe_of(const QuantizeRecipe& words) noexcept;

// All schemes, and the recipes of one, for messages: "modelopt, compressed-tensors"; empty: there is none.
[[nodiscard]] std::string known_schemes();
[[nodiscard]] std::string known_recipes(std::string_view scheme);

// ggml's own way to a format of GGUF. Precondition: not none.
[[nodiscard]] const Recipe& recipe_of(GgufBlock block) noexcept;

}  // namespace tensorcast::block
