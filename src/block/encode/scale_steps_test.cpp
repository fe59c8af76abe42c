// SPDX-License-Identifier: Apache-2.0
// Every target's scales of many blocks are those of their recipe's rule.
#include "block/encode/scale_steps.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "block/recipe/float_steps.hpp"
#include "block/recipe/recipe.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t count = 128;

// Largest magnitudes around `size`: of all digits, and of few, and their neighbours.
std::vector<std::uint32_t> magnitudes_of(float size, std::mt19937& random) {
  std::vector<std::uint32_t> found(count);
  for (std::uint32_t& magnitude : found) {
    const auto bits = static_cast<std::uint32_t>(random());
    constexpr std::array<float, 6> limits = {1.0f, 448.0f, 57344.0f, 7.5f, 28.0f, 6.0f};
    const float few = static_cast<float>(bits % 32 + 1) / 16 * limits[bits / 32 % limits.size()];
    const float digits = bits % 3 == 0 ? 1.0f + static_cast<float>(bits) * 0x1p-32f : few;
    magnitude = bits_of(std::ldexp(digits, static_cast<int>(bits >> 8 & 15) - 8) * size) + bits % 3 - 1;
  }
  return found;
}

// Returns whether the target took the blocks.
bool check(const Recipe& recipe, const ScaleContext& context, const kernels::ScaleSteps& steps,
           const std::vector<std::uint32_t>& largest, Target target) {
  std::vector<std::uint8_t> codes(count);
  std::vector<Operand> operands(count);
  if (!kernels::ops_of(target).scale_blocks(largest.data(), count, steps, codes.data(), operands.data())) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const Extent block{.largest = float_of(largest[i])};
    BlockScale right;
    recipe.scale({&block, 1}, context, &right);
    EXPECT_EQ(codes[i], right.code) << name(target) << " of " << block.largest << " by " << context.global;
    EXPECT_EQ(bits_of(operands[i].factor), bits_of(right.operand.factor)) << name(target) << " of " << block.largest;
    EXPECT_EQ(bits_of(operands[i].zero), 0u);
    EXPECT_EQ(bits_of(factor_of_code(steps, codes[i])), bits_of(operands[i].factor)) << "code " << int{codes[i]};
    EXPECT_FALSE(right.clears);
  }
  return true;
}

TEST(ScaleSteps, EveryTargetEqualsTheRules) {
  std::mt19937 random(37);
  std::size_t recipes = 0;
  for (const QuantizeRecipe& row : quantize_recipes()) {
    const Recipe& recipe = recipe_of(row);
    ScaleContext context{.element = limits_of(recipe.element.element)};
    if (recipe.scale == nullptr || !steps_of(recipe.scale, context)) continue;
    SCOPED_TRACE(std::string(row.scheme) + " of " + std::string(row.recipe));
    ++recipes;
    std::size_t taken = 0, tried = 0;
    for (const DType weights : {DType::float32, DType::bfloat16}) {
      for (int exponent = -70; exponent < 70; exponent += 2) {
        const float size = std::ldexp(1.0f, exponent);
        const std::vector<std::uint32_t> largest = magnitudes_of(size, random);
        context.weights = weights;
        context.largest = size * 0x1.234p10f;
        context.global = recipe.global == nullptr ? 1.0f : recipe.global(context.largest, context);
        const std::optional<kernels::ScaleSteps> steps = steps_of(recipe.scale, context);
        if (!steps) continue;
        for (const Target target : supported_targets()) {
          ++tried;
          if (check(recipe, context, *steps, largest, target)) ++taken;
          if (testing::Test::HasFailure()) return;
        }
      }
    }
    EXPECT_GT(taken, tried / 8);
  }
  EXPECT_GE(recipes, 30u);
}

TEST(ScaleSteps, BlocksThatAreNotOrdinaryAreLeftToTheirRule) {
  std::mt19937 random(41);
  for (const QuantizeRecipe& row : quantize_recipes()) {
    const Recipe& recipe = recipe_of(row);
    const ScaleContext context{.element = limits_of(recipe.element.element), .largest = 2688.0f};
    if (recipe.scale == nullptr) continue;
    const std::optional<kernels::ScaleSteps> steps = steps_of(recipe.scale, context);
    if (!steps) continue;
    SCOPED_TRACE(std::string(row.scheme) + " of " + std::string(row.recipe));
    for (const float rare : {0.0f, 0x1p-149f, 0x1p-126f, 0x1p-61f, 0x1p61f, 0x1.fffffep127f,
                             std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<std::uint32_t> largest = magnitudes_of(1.0f, random);
      largest[random() % count] = bits_of(rare);
      for (const Target target : supported_targets()) {
        EXPECT_FALSE(check(recipe, context, *steps, largest, target)) << rare;
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast::block
