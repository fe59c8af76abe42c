// SPDX-License-Identifier: Apache-2.0
#include "block/encode/quantizer.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "tensorcast/block.hpp"

namespace tensorcast {
namespace {

// A caller cannot forget what a scale depends on: it is asked, and for nothing else.
TEST(Quantizer, AsksForWhatScalesDependOn) {
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    const bool is_default = &recipe == find_quantize_recipe(recipe.scheme);
    const GgufBlock gguf =
        recipe.spelling == "gguf" ? find_block_format(recipe.scheme, "gguf")->coding.gguf : GgufBlock::none;
    for (const std::string_view name : {std::string_view(), recipe.recipe}) {
      if (name.empty() && !is_default) continue;
      const auto layout = block::WeightLayout::make(DType::float32, {4, 256}, recipe.scheme, {.recipe = name}, gguf);
      ASSERT_TRUE(layout) << recipe.scheme << layout.error().message;
      int maxima = 0, zeros = 0;
      const auto quantizer =
          block::Quantizer::make(*layout, {.maximum = [&]() -> Result<float> { return ++maxima, 2.0f; },
                                           .is_zero = [&]() -> Result<bool> { return ++zeros, true; }});
      ASSERT_TRUE(quantizer);
      EXPECT_EQ(maxima, (*layout)->needs_maximum() ? 1 : 0) << recipe.scheme << recipe.recipe;
      EXPECT_EQ(zeros, name.empty() && !(*layout)->needs_maximum() && gguf == GgufBlock::none ? 1 : 0) << recipe.scheme;
    }
  }
}

// Scales of pieces of a weight of zeros are 1, as those of the whole weight.
TEST(Quantizer, GivesPiecesOfZerosTheScalesOfTheWhole) {
  const std::vector<float> zeros(4 * 64);
  const auto layout = block::WeightLayout::make(DType::float32, {4, 64}, "mxfp8", {});
  const auto is_zero = [] { return Result<bool>(true); };
  const auto quantizer = block::Quantizer::make(*layout, {.maximum = nullptr, .is_zero = is_zero});
  QuantizedTensor rows;
  ASSERT_TRUE(quantizer->run(2, 1, reinterpret_cast<const std::byte*>(zeros.data()), rows, {.threads = 1}));
  EXPECT_EQ(std::vector(rows.scales.begin(), rows.scales.end()), std::vector(2, std::byte{127}));
}

// Rounded up, down or toward zero by the caller, a program's numbers are its own.
TEST(Quantizer, DoesNotDependOnTheCallersRounding) {
  constexpr std::int64_t rows = 3, columns = 512;
  std::vector<float> numbers(rows * columns);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = std::ldexp(static_cast<float>(i * 2654435761U % 65521) - 32760.0F, static_cast<int>(i % 6) - 20);
  }
  const TensorView weight{DType::float32, {rows, columns}, std::as_bytes(std::span(numbers))};
  const auto decoded = [&](const QuantizedTensor& tensor) {
    std::vector<float> result(numbers.size());
    EXPECT_TRUE(
        dequantize(tensor.tensor(), 0, {DType::float32, {rows, columns}, std::as_writable_bytes(std::span(result))}));
    return result;
  };
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    const Result<QuantizedTensor> expected = quantize(weight, recipe.scheme, {.recipe = recipe.recipe});
    ASSERT_TRUE(expected) << recipe.scheme;
    const std::vector<float> expected_numbers = decoded(*expected);
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      std::fesetround(mode);
      const Result<QuantizedTensor> got = quantize(weight, recipe.scheme, {.recipe = recipe.recipe});
      const std::vector<float> got_numbers = decoded(*expected);
      EXPECT_EQ(std::fegetround(), mode);
      std::fesetround(FE_TONEAREST);
      ASSERT_TRUE(got);
      EXPECT_TRUE(got->codes == expected->codes && got->scales == expected->scales) << recipe.scheme << recipe.recipe;
      EXPECT_EQ(got->global_scale, expected->global_scale) << recipe.scheme;
      EXPECT_EQ(std::memcmp(got_numbers.data(), expected_numbers.data(), got_numbers.size() * sizeof(float)), 0);
    }
  }
}

}  // namespace
}  // namespace tensorcast
