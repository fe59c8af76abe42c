// SPDX-License-Identifier: Apache-2.0
// Recipes on the numbers that tell them apart; any threads give the same bytes. All bytes of all tools are compared in
// python/tests/test_quantize.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <random>
#include <string>
#include <vector>

#include "block/recipe/float_steps.hpp"
#include "block/recipe/recipe.hpp"
#include "codec/reference_cast.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast {
namespace {

TensorView view_of(const std::vector<float>& numbers, const Shape& shape) {
  return {DType::float32, shape, std::as_bytes(std::span(numbers))};
}

QuantizedTensor made(const std::vector<float>& numbers, const Shape& shape, std::string_view scheme,
                     const QuantizeOptions& options = {}, const Execution& execution = {.threads = 1}) {
  Result<QuantizedTensor> result = quantize(view_of(numbers, shape), scheme, options, execution);
  EXPECT_TRUE(result) << scheme << " " << options.recipe << ": " << (result ? "" : result.error().describe());
  return result ? *std::move(result) : QuantizedTensor{};
}

std::vector<int> codes_of(const QuantizedTensor& tensor, std::size_t count) {
  const Result<std::vector<std::byte>> codes = element_codes(tensor);
  EXPECT_TRUE(codes);
  std::vector<int> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = std::to_integer<int>((*codes)[i]);
  return numbers;
}

// Memory whose every byte is `filler` until it is written.
class FilledMemory final : public std::pmr::memory_resource {
 public:
  explicit FilledMemory(int filler) : filler_(filler) {}
  [[nodiscard]] std::size_t held() const noexcept { return held_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    held_ += bytes;
    return std::memset(std::pmr::new_delete_resource()->allocate(bytes, alignment), filler_, bytes);
  }
  void do_deallocate(void* data, std::size_t bytes, std::size_t alignment) override {
    held_ -= bytes;
    std::pmr::new_delete_resource()->deallocate(data, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  int filler_;
  std::size_t held_ = 0;
};

// A block of 32 whose MXFP4 scale is 1 in every recipe, beginning with ties, -0 and a small negative number.
std::vector<float> ties() {
  std::vector<float> block(32, 0.0f);
  const std::vector<float> first = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, -0.0f, -0.1f, 6.0f};
  std::copy(first.begin(), first.end(), block.begin());
  return block;
}

TEST(Quantize, TiesAndZerosOfMxfp4) {
  using Codes = std::vector<int>;
  const auto of = [](std::string_view recipe) {
    return codes_of(made(ties(), {1, 32}, "mxfp4", {.recipe = recipe}), 9);
  };
  const Codes even = {0, 2, 2, 4, 4, 6, 6, 8, 8};
  EXPECT_EQ(of(""), even);
  EXPECT_EQ(of("floor"), even);
  EXPECT_EQ(of("quark"), even);
  EXPECT_EQ(of("rceil-torchao"), even);
  EXPECT_EQ(of("compressed-tensors"), (Codes{0, 2, 2, 4, 4, 6, 6, 0, 8}));
  EXPECT_EQ(of("modelopt"), (Codes{0, 1, 2, 3, 4, 5, 6, 8, 8}));
  for (const std::string_view recipe : {"deepgemm", "mlx", "ggml"}) {
    EXPECT_EQ(of(recipe), (Codes{0, 1, 2, 3, 4, 5, 6, 0, 0})) << recipe;
  }
}

int scale_of(float largest, std::string_view scheme, std::string_view recipe) {
  std::vector<float> block(32, 0.0f);
  block[3] = largest;
  return std::to_integer<int>(made(block, {1, 32}, scheme, {.recipe = recipe}).scales.at(0));
}

TEST(Quantize, ScalesThatTellRecipesApart) {
  const float beside = std::bit_cast<float>(0x42c00001u);  // 96 and one step
  EXPECT_EQ(scale_of(beside, "mxfp4", "rceil"), 132);
  EXPECT_EQ(scale_of(beside, "mxfp4", "rceil-torchao"), 131);
  EXPECT_EQ(scale_of(480.0f, "mxfp8", "compressed-tensors"), 128);
  EXPECT_EQ(scale_of(480.0f, "mxfp8", "even"), 127);
  EXPECT_EQ(scale_of(7.0f, "mxfp4", "ggml"), 127);
  EXPECT_EQ(scale_of(0x1p-127f, "mxfp4", "ggml"), 254);
  EXPECT_EQ(scale_of(1e-40f, "mxfp4", "mlx"), 248);
  EXPECT_EQ(scale_of(0.0f, "mxfp4", "deepgemm"), 112);
  EXPECT_EQ(scale_of(0.0f, "mxfp4", "mlx"), 127);
  EXPECT_EQ(scale_of(0.0f, "mxfp4", "quark"), 1);
  EXPECT_EQ(scale_of(0x1.ffp127f, "mxfp4", "quark"), 254);  // rounds to 2^128
  EXPECT_EQ(scale_of(0x1.ffp127f, "mxfp8-e5m2", "quark"), 254);
  EXPECT_EQ(scale_of(0x1.bfp127f, "mxfp4", "quark"), 252);
  EXPECT_EQ(scale_of(0.0f, "mxfp4", "rceil"), 0);
}

TEST(Quantize, RceilIsTheSmallestPowerOfTwoThatHoldsTheBlock) {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const float largest = std::bit_cast<float>(static_cast<std::uint32_t>(random() & 0x7fffffff));
    if (!std::isfinite(largest)) continue;
    const float quotient = largest * (1.0f / 6.0f);
    int code = 0;
    while (code < 254 && std::ldexp(1.0f, code - 127) < quotient) ++code;
    ASSERT_EQ(scale_of(largest, "mxfp4", "rceil"), code) << largest;
  }
}

TEST(Quantize, AZeroScaleOfNvfp4IsWhatTheToolWrites) {
  std::vector<float> x(32, 0.0f);
  x[0] = 1.0f;  // the second block is zeros
  const auto second = [&](std::string_view recipe) {
    return std::to_integer<int>(made(x, {1, 32}, "nvfp4", {.recipe = recipe}).scales.at(1));
  };
  EXPECT_EQ(second("modelopt"), 0x38);            // 1
  EXPECT_EQ(second("compressed-tensors"), 0x20);  // 0.125
  EXPECT_EQ(second("torchao"), 0x08);             // 2^-6
  EXPECT_EQ(second("te"), 0);
  EXPECT_EQ(second("comfy"), 0);
}

TEST(Quantize, AWeightOfZerosHasScaleOneUnlessARecipeIsNamed) {
  const std::vector<float> zeros(256 * 256, 0.0f);
  for (const std::string_view scheme :
       {"fp8-tensor", "fp8-channel", "fp8-block", "mxfp8", "mxfp4", "nvfp4", "int8-channel", "int4-group"}) {
    const QuantizedTensor tensor = made(zeros, {256, 256}, scheme);
    const Result<std::vector<std::byte>> codes = element_codes(tensor);
    EXPECT_EQ(std::count(codes->begin(), codes->end(), std::byte{0}), 65536) << scheme;
    if (tensor.scales_dtype == DType::float32) {
      float scale = 0;
      std::memcpy(&scale, tensor.scales.data(), sizeof(scale));
      EXPECT_EQ(scale, 1.0f) << scheme;
    } else {
      EXPECT_EQ(tensor.scales.at(0), tensor.scales_dtype == DType::float8_e8m0fnu ? std::byte{127} : std::byte{0x38});
    }
    if (scheme == "nvfp4") {
      EXPECT_EQ(tensor.global_scale, 1.0f);
    }
  }
  EXPECT_EQ(made(zeros, {256, 256}, "mxfp4", {.recipe = "rceil"}).scales.at(0), std::byte{0});
}

TEST(Quantize, Integers) {
  const std::vector<float> row = {127.5f, -127.5f, 0.5f, 1.5f, -0.5f, 3.0f};
  EXPECT_EQ(codes_of(made(row, {1, 6}, "int8-channel"), 6), (std::vector<int>{127, 128, 0, 2, 0, 3}));
  std::vector<float> group(128, 0.0f);
  group[0] = 15.0f;
  group[1] = 3.5f;
  const QuantizedTensor tensor = made(group, {1, 128}, "int4-group", {.symmetric = false});
  EXPECT_EQ(tensor.zero_points, std::vector<std::int8_t>{-8});
  EXPECT_EQ(codes_of(tensor, 2), (std::vector<int>{7, 12}));  // 15 - 8, and 4 - 8 = -4
}

std::vector<float> random_weights(std::size_t count) {
  std::mt19937 random(7);
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    const double uniform = static_cast<double>(random()) / 4294967296.0 - 0.5;
    number = static_cast<float>(uniform * std::ldexp(1.0, static_cast<int>(random() % 12) - 8));
  }
  return numbers;
}

TEST(Quantize, ThreadsAndShapesChangeNothing) {
  const std::vector<float> numbers = random_weights(std::size_t{3} * 100 * 1024);
  for (const QuantizeRecipe& row : quantize_recipes()) {
    SCOPED_TRACE(std::string(row.scheme) + " of " + std::string(row.recipe));
    const QuantizeOptions options{.recipe = row.recipe};
    const QuantizedTensor alone = made(numbers, {3, 100, 1024}, row.scheme, options);
    const QuantizedTensor shared = made(numbers, {3, 100, 1024}, row.scheme, options, {.threads = 4});
    EXPECT_EQ(alone.codes, shared.codes);
    EXPECT_EQ(alone.scales, shared.scales);
    if (row.scheme == "fp8-block") continue;  // whose blocks end where a matrix does
    const QuantizedTensor flat = made(numbers, {300, 1024}, row.scheme, options);
    EXPECT_EQ(alone.codes, flat.codes);
    EXPECT_EQ(alone.scales, flat.scales);
  }
}

// Codes are not zeroed first, so nothing of what was there may stay: not at odd ends of rows, nor in any recipe.
TEST(Quantize, CodesAreWrittenWholeInTheMemoryThatIsAskedFor) {
  FilledMemory zeros(0), ones(0xFF);
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    const bool is_gguf = recipe.spelling == "gguf";
    const Shape shape{3, is_gguf ? 512 : 333};
    const std::vector<float> numbers = random_weights(3 * static_cast<std::size_t>(shape.back()));
    const QuantizeOptions options{.recipe = recipe.recipe};
    const auto in = [&](FilledMemory& memory) {
      return made(numbers, shape, recipe.scheme, options, {.threads = 1, .memory = &memory});
    };
    const QuantizedTensor a = in(zeros), b = in(ones);
    EXPECT_EQ(a.codes, b.codes) << recipe.scheme << " " << recipe.recipe;
    EXPECT_EQ(zeros.held(), a.codes.capacity());
    const QuantizedTensor copy = a;
    EXPECT_EQ(zeros.held(), a.codes.capacity()) << "a copy is in memory of its own";
    EXPECT_EQ(copy.codes, a.codes);
  }
  EXPECT_EQ(zeros.held() + ones.held(), 0u);
}

// Rows that share scales, too few of them for the threads, or more, with a last block that is not whole.
TEST(Quantize, ThreadsShareTheColumnsOfBlocksOfRows) {
  for (const Shape& shape : {Shape{100, 5000}, Shape{2, 150, 4200}}) {
    const std::vector<float> numbers = random_weights(static_cast<std::size_t>(element_count(shape).value()));
    const QuantizedTensor alone = made(numbers, shape, "fp8-block");
    const QuantizedTensor shared = made(numbers, shape, "fp8-block", {}, {.threads = 0});
    EXPECT_EQ(alone.codes, shared.codes);
    EXPECT_EQ(alone.scales, shared.scales);
  }
}

// Numbers of bfloat16 are read where they are, and long runs have tables; those in float32 are neither.
TEST(Quantize, Bfloat16IsQuantizedAsItsNumbersInFloat32) {
  std::mt19937 random(53);
  const Shape shape{130, 1100};
  std::vector<float> numbers(130 * 1100);
  std::vector<std::uint16_t> halves;
  for (float& number : numbers) {
    const auto bits = static_cast<std::uint32_t>(random());
    const float size = std::ldexp(1.0f + static_cast<float>(bits >> 8) * 0x1p-24f, static_cast<int>(bits % 24) - 20);
    number = bits % 32 == 0 ? 0.0f : bits % 2 == 0 ? size : -size;
    halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16));
    number = std::bit_cast<float>(static_cast<std::uint32_t>(halves.back()) << 16);
  }
  for (const std::string_view scheme :
       {"fp8-tensor", "fp8-channel", "fp8-block", "mxfp8", "mxfp6", "mxfp4", "nvfp4", "int8-channel", "int4-group"}) {
    const Result<QuantizedTensor> read = quantize({DType::bfloat16, shape, std::as_bytes(std::span(halves))}, scheme);
    ASSERT_TRUE(read) << scheme;
    const QuantizedTensor right = made(numbers, shape, scheme, {.compute_dtype = DType::bfloat16});
    EXPECT_EQ(read->codes, right.codes) << scheme;
    EXPECT_EQ(read->scales, right.scales) << scheme;
  }
}

// Large weights have tables of codes. A row alone is no large one.
TEST(Quantize, LargeWeightsAreThoseOfTheirRows) {
  constexpr std::size_t rows = 130, columns = 2064;
  std::mt19937 random(61);
  std::vector<std::uint16_t> halves;
  for (std::size_t i = 0; i < rows * columns; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const float size = std::ldexp(1.0f + static_cast<float>(bits >> 8) * 0x1p-24f, static_cast<int>(bits % 24) - 20);
    const float number = bits / 64 % 512 == 0 ? 0.0f : bits % 2 == 0 ? size : -size;
    halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16));
  }
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    if (recipe.scheme != "mxfp4" && recipe.scheme != "nvfp4") continue;
    SCOPED_TRACE(std::string(recipe.scheme) + " of " + std::string(recipe.recipe));
    // Numbers above the maximum are out of range.
    const QuantizeOptions options{.recipe = recipe.recipe, .maximum = recipe.scheme == "nvfp4" ? 0.5f : 0.0f};
    const auto quantized = [&](std::size_t first, std::size_t count) {
      const std::span part = std::span(halves).subspan(first * columns, count * columns);
      const Shape shape{static_cast<std::int64_t>(count), std::int64_t{columns}};
      const Result<QuantizedTensor> result =
          quantize({DType::bfloat16, shape, std::as_bytes(part)}, recipe.scheme, options);
      EXPECT_TRUE(result) << (result ? "" : result.error().describe());
      return result ? *result : QuantizedTensor{};
    };
    const QuantizedTensor whole = quantized(0, rows);
    for (std::size_t row = 0; row < rows; ++row) {
      const QuantizedTensor alone = quantized(row, 1);
      const auto is_there = [&](std::span<const std::byte> all, std::span<const std::byte> part) {
        return std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(row * part.size()));
      };
      ASSERT_TRUE(is_there(whole.codes, alone.codes)) << row;
      ASSERT_TRUE(is_there(whole.scales, alone.scales)) << row;
    }
  }
}

// Blocks do not know of others, however far rows reach.
TEST(Quantize, LongRowsOfBlocksAreThoseOfTheirParts) {
  constexpr std::size_t rows = 130, left = 8192, right = 200, columns = left + right;
  const std::vector<float> numbers = random_weights(rows * columns);
  std::vector<float> part(rows * right);
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(&numbers[i * columns + left], right, &part[i * right]);
  for (const std::string_view scheme : {"fp8-block", "mxfp8"}) {
    const QuantizedTensor whole = made(numbers, {rows, columns}, scheme);
    const QuantizedTensor alone = made(part, {rows, right}, scheme);
    for (std::size_t i = 0; i < rows; ++i) {
      ASSERT_TRUE(
          std::equal(&alone.codes[i * right], &alone.codes[i * right] + right, &whole.codes[i * columns + left]))
          << scheme << " row " << i;
    }
  }
}

// A shorter last block is one that zeros fill up.
TEST(Quantize, EdgesAreAsIfPaddedWithZeros) {
  constexpr std::size_t rows = 130, columns = 203, wide = 256;
  const std::vector<float> numbers = random_weights(rows * columns);
  std::vector<float> padded(wide * wide, 0.0f);
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(&numbers[i * columns], columns, &padded[i * wide]);
  for (const QuantizeRecipe& row : quantize_recipes()) {
    if (row.spelling == "gguf") continue;
    SCOPED_TRACE(std::string(row.scheme) + " of " + std::string(row.recipe));
    const auto codes = element_codes(made(numbers, {130, 203}, row.scheme, {.recipe = row.recipe}));
    const auto all = element_codes(made(padded, {256, 256}, row.scheme, {.recipe = row.recipe}));
    for (std::size_t i = 0; i < rows; ++i) {
      ASSERT_TRUE(std::equal(&(*codes)[i * columns], &(*codes)[i * columns] + columns, &(*all)[i * wide])) << i;
    }
  }
}

TEST(Quantize, DequantizesToNumbersNearby) {
  const std::vector<float> numbers = random_weights(std::size_t{256} * 512);
  double power = 0;
  for (const float number : numbers) power += static_cast<double>(number) * number;
  for (const QuantizeRecipe& row : quantize_recipes()) {
    SCOPED_TRACE(std::string(row.scheme) + " of " + std::string(row.recipe));
    const QuantizedTensor tensor = made(numbers, {256, 512}, row.scheme, {.recipe = row.recipe});
    std::vector<float> back(numbers.size());
    ASSERT_TRUE(dequantize(tensor.tensor(), 0, {DType::float32, {256, 512}, std::as_writable_bytes(std::span(back))}));
    double noise = 0;
    for (std::size_t i = 0; i < back.size(); ++i) noise += std::pow(static_cast<double>(back[i]) - numbers[i], 2);
    EXPECT_GT(10 * std::log10(power / noise), row.scheme == "q2_k" ? 7 : 13) << "dB";
  }
}

TEST(Quantize, NarrowScalesAreNumbersOfTheWeightsType) {
  std::mt19937 random(7);
  std::vector<float> numbers(256 * 512);
  for (float& x : numbers) x = std::uniform_real_distribution<float>(-0.07f, 0.07f)(random);
  for (const QuantizeRecipe& row : quantize_recipes()) {
    const bool is_narrow = block::recipe_of(row).narrow_scales;
    if (row.scheme == "fp8-tensor" && !is_narrow) continue;  // one scale may be narrow by chance
    const QuantizedTensor tensor =
        made(numbers, {256, 512}, row.scheme, {.recipe = row.recipe, .compute_dtype = DType::bfloat16});
    if (tensor.scales_dtype != DType::float32) {
      EXPECT_FALSE(is_narrow) << row.scheme << " " << row.recipe;
      continue;
    }
    std::vector<float> scales(tensor.scales.size() / sizeof(float));
    std::memcpy(scales.data(), tensor.scales.data(), tensor.scales.size());
    const bool are_narrow =
        std::all_of(scales.begin(), scales.end(), [](float scale) { return block::round_to_bfloat16(scale) == scale; });
    EXPECT_EQ(are_narrow, is_narrow) << row.scheme << " " << row.recipe;
  }
}

TEST(Quantize, NonfiniteNumbersAreNamed) {
  std::vector<float> numbers(512 * 64, 1.0f);
  numbers[20000] = std::numeric_limits<float>::infinity();
  for (const std::string_view scheme : {"mxfp4", "nvfp4", "fp8-tensor", "fp8-block", "q4_k"}) {
    const Result<QuantizedTensor> result = quantize(view_of(numbers, {128, 256}), scheme);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::out_of_range);
    EXPECT_EQ(result.error().element, 20000u) << scheme;
    const bool is_defined = scheme != "q4_k";  // ggml converts it to an integer
    const Result<QuantizedTensor> made_so =
        quantize(view_of(numbers, {128, 256}), scheme, {.nonfinite = NonFiniteWeights::tool});
    EXPECT_EQ(static_cast<bool>(made_so), is_defined) << scheme;
  }
}

// The tool converts a logarithm to an integer, which depends on its vectors; these are the bytes most blocks have.
TEST(Quantize, CompressedTensorsHasABlockForNanAndOneForInfinity) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const std::string_view scheme : {"mxfp4", "mxfp6", "mxfp8"}) {
    std::vector<float> numbers(96, 1.0f);
    numbers[40] = nan;
    numbers[70] = -infinity;
    const QuantizedTensor result =
        made(numbers, {1, 96}, scheme, {.recipe = "compressed-tensors", .nonfinite = NonFiniteWeights::tool});
    EXPECT_EQ(result.scales.at(1), std::byte{0}) << scheme;
    EXPECT_EQ(result.scales.at(2), std::byte{127}) << scheme;
  }
}

TEST(Quantize, WhatToolsLeaveUndefinedIsRefused) {
  const auto refused = [](std::string_view scheme, std::string_view recipe, float number) {
    std::vector<float> numbers(512 * 64, 1.0f);
    numbers[15] = std::numeric_limits<float>::quiet_NaN();  // in a block with the number
    if (!std::isnan(number)) numbers[15] = number;
    numbers[300] = number;
    const Result<QuantizedTensor> result =
        quantize(view_of(numbers, {128, 256}), scheme, {.recipe = recipe, .nonfinite = NonFiniteWeights::tool});
    if (result) return false;
    EXPECT_EQ(result.error().element, 15u);
    EXPECT_NE(result.error().message.find("what " + std::string(recipe) + " makes of it is undefined"),
              std::string::npos)
        << result.error().message;
    return true;
  };
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const std::string_view scheme : {"mxfp4", "mxfp8"}) {
    EXPECT_TRUE(refused(scheme, "mlx", nan));
    EXPECT_TRUE(refused(scheme, "mlx", -infinity));
    EXPECT_TRUE(refused(scheme, "quark", nan));
    EXPECT_FALSE(refused(scheme, "quark", -infinity));
  }
  EXPECT_FALSE(refused("mxfp4", "ggml", nan));
  EXPECT_TRUE(refused("mxfp4", "ggml", -infinity));
  for (const std::string_view scheme : {"q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q6_k"}) {
    EXPECT_TRUE(refused(scheme, "ggml", nan));
    EXPECT_TRUE(refused(scheme, "ggml", infinity));
  }
}

TEST(Quantize, ZeroPointsOfNanHaveANanScale) {
  std::vector<float> numbers(64, 1.0f);
  numbers[40] = std::numeric_limits<float>::quiet_NaN();
  const QuantizedTensor tensor =
      made(numbers, {1, 64}, "int4-group", {.group_size = 32, .symmetric = false, .nonfinite = NonFiniteWeights::tool});
  ASSERT_EQ(tensor.scales.size(), 2 * sizeof(float));
  float scales[2];
  std::memcpy(scales, tensor.scales.data(), sizeof scales);
  EXPECT_EQ(scales[0], 1.0f / 15);
  EXPECT_TRUE(std::isnan(scales[1]));
  EXPECT_EQ(tensor.zero_points[1], 0);
}

// ggml's products with 4 and 6 are infinite, so 3 is nearest.
TEST(Quantize, TheLargestNumbersOfGgmlMxfp4) {
  std::vector<float> numbers(64, std::numeric_limits<float>::max());
  numbers[1] = -numbers[1];
  numbers[2] = 0.0f;
  const QuantizedTensor tensor = made(numbers, {1, 64}, "mxfp4", {.recipe = "ggml"});
  EXPECT_EQ(tensor.scales[0], std::byte{253});
  const std::vector<int> codes = codes_of(tensor, 64);
  EXPECT_EQ(codes[0], 5);
  EXPECT_EQ(codes[1], 13);
  EXPECT_EQ(codes[2], 0);
  EXPECT_EQ(codes[63], 5);
}

// compressed-tensors takes logarithms of scales in the weights' type: that of 0 and of infinity makes byte 127.
TEST(Quantize, ScalesOfFloat16ByCompressedTensors) {
  const auto scale_of = [](std::uint16_t code) {
    const std::vector<std::uint16_t> numbers(2048, code);
    const TensorView view{DType::float16, {1, 2048}, std::as_bytes(std::span(numbers))};
    const Result<QuantizedTensor> tensor = quantize(view, "mxfp4", {.recipe = "compressed-tensors"});
    EXPECT_TRUE(tensor);
    if (!tensor) return -1;
    EXPECT_EQ(std::ranges::count(tensor->scales, tensor->scales[0]), 64);
    return std::to_integer<int>(tensor->scales[0]);
  };
  EXPECT_EQ(scale_of(0x3c00), 125);  // 1
  EXPECT_EQ(scale_of(0x6fff), 138);  // 8188, rounded up to 2^13
  EXPECT_EQ(scale_of(0x7bff), 127);  // 65504, rounded up to infinity
  EXPECT_EQ(scale_of(0x0333), 111);  // 0.8 * 2^-14, rounded up to 2^-14
  EXPECT_EQ(scale_of(0x02cc), 127);  // 0.7 * 2^-14, rounded to 0
  EXPECT_EQ(scale_of(0), 127);
}

TEST(Quantize, MistakesAreErrors) {
  const std::vector<float> numbers(256, 1.0f);
  const auto refused = [&](std::string_view scheme, const QuantizeOptions& options, const Shape& shape = {1, 256}) {
    const Result<QuantizedTensor> result = quantize(view_of(numbers, shape), scheme, options);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_EQ(refused("nvfp5", {}), "no scheme \"nvfp5\"");
  EXPECT_EQ(
      refused("mxfp6", {.recipe = "mlx"}),
      "no recipe \"mlx\" for mxfp6; there are rceil, rceil-torchao, floor, ceil, even, quark, compressed-tensors");
  EXPECT_EQ(refused("mxfp4", {.group_size = 64}), "mxfp4 has no groups of a size of one's own");
  EXPECT_EQ(refused("int4-group", {.group_size = 48}), "groups of 48, which must be of 32, 64 or 128");
  EXPECT_EQ(refused("int8-channel", {.symmetric = false}), "int8-channel has no zero points");
  EXPECT_EQ(refused("fp8-tensor", {.power_of_two_scales = true}),
            "fp8-tensor of torchao has no scales that are powers of two");
  EXPECT_EQ(refused("nvfp4", {.maximum = -1.0f}), "`maximum` is -1, which is not finite and at least 0");
  EXPECT_NE(refused("nvfp4", {.maximum = std::numeric_limits<float>::quiet_NaN()}), "accepted");
  EXPECT_NE(refused("fp8-tensor", {.maximum = std::numeric_limits<float>::infinity()}), "accepted");
  EXPECT_EQ(refused("q4_k", {}, {2, 128}), "128 columns are no whole blocks of 256");
  EXPECT_NE(refused("mxfp4", {}, {2, 256}), "accepted");
  EXPECT_FALSE(quantize({DType::int8, {1, 1024}, std::as_bytes(std::span(numbers))}, "mxfp4"));
}

TEST(Quantize, NamesAreTheSameInAnyCaseAndWithEitherDash) {
  EXPECT_EQ(find_quantize_recipe("INT4_group"), find_quantize_recipe("int4-group"));
  EXPECT_EQ(find_quantize_recipe("mxfp8_e5m2", "RCEIL_torchao"), find_quantize_recipe("mxfp8-e5m2", "rceil-torchao"));
  EXPECT_EQ(find_block_format("NVFP4", "Compressed_Tensors"), find_block_format("nvfp4", "compressed-tensors"));
  EXPECT_EQ(find_block_format("Q4-K"), find_block_format("q4_k"));
  EXPECT_EQ(find_quantize_recipe("int4group"), nullptr);
  EXPECT_EQ(find_quantize_recipe("mxfp4", "rceil-"), nullptr);
  const std::vector<float> numbers(256, 1.0f);
  const auto made = quantize(view_of(numbers, {1, 256}), "INT4_Group", {.recipe = "Compressed_Tensors"});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->recipe->scheme, "int4-group");
}

TEST(Quantize, E4m3CodesAreTheReferences) {
  std::mt19937 random(11);
  for (int i = 0; i < 200000; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(random()) & 0x7fffffff;
    const float number = std::min(std::bit_cast<float>(bits), 448.0f);
    if (std::isnan(number)) continue;
    const auto expected =
        codec::cast_code(DType::float32, std::bit_cast<std::uint32_t>(number), DType::float8_e4m3fn, {});
    ASSERT_EQ(block::e4m3_code(number), expected.bits) << number;
  }
  for (unsigned code = 0; code < 127; ++code) {
    const auto expected = codec::cast_code(DType::float8_e4m3fn, code, DType::float32, {});
    EXPECT_EQ(std::bit_cast<std::uint32_t>(block::e4m3_number(static_cast<std::uint8_t>(code))), expected.bits);
  }
}

TEST(Quantize, RoundsToTheWeightsTypeAsTheReference) {
  std::mt19937 random(13);
  for (int i = 0; i < 200000; ++i) {
    const float number = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(number)) continue;
    for (const DType dtype : {DType::bfloat16, DType::float16}) {
      const auto rounded = codec::cast_code(DType::float32, std::bit_cast<std::uint32_t>(number), dtype, {});
      const auto expected = codec::cast_code(dtype, rounded.bits, DType::float32, {});
      ASSERT_EQ(std::bit_cast<std::uint32_t>(block::round_to(dtype, number)), expected.bits) << number;
    }
  }
}

// Whole numbers up to 7, which scale 1 holds exactly, and one outlier.
std::vector<float> with_outlier(std::size_t rows) {
  std::vector<float> numbers(rows * 128);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i * 5 % 8) * (i % 3 == 0 ? -1.0f : 1.0f);
  for (std::size_t row = 0; row < rows; ++row) numbers[row * 128 + 9] = 7.5f + static_cast<float>(row);
  return numbers;
}

double squares(const std::vector<float>& numbers, const QuantizedTensor& tensor) {
  std::vector<float> decoded(numbers.size());
  const MutableTensorView out{DType::float32, tensor.shape, std::as_writable_bytes(std::span(decoded))};
  EXPECT_TRUE(dequantize(tensor.tensor(), 0, out));
  double sum = 0.0;
  for (std::size_t i = 0; i < numbers.size(); ++i) sum += std::pow(numbers[i] - static_cast<double>(decoded[i]), 2.0);
  return sum;
}

float first_scale(const QuantizedTensor& tensor) {
  float scale = 0.0f;
  std::memcpy(&scale, tensor.scales.data(), sizeof scale);
  return scale;
}

TEST(Quantize, ClipsWhereTheSquaresOfErrorsAreLeast) {
  const std::vector<float> numbers = with_outlier(3);
  const Shape shape{3, 128};
  const QuantizedTensor plain = made(numbers, shape, "int4-group");
  const QuantizedTensor clipped = made(numbers, shape, "int4-group", {.clip = Clip::mse});
  EXPECT_LT(squares(numbers, clipped), squares(numbers, plain));
  EXPECT_EQ(first_scale(clipped), 1.0f);
  EXPECT_EQ(made(numbers, shape, "int4-group", {.clip = Clip::mse}, {.threads = 4}).codes, clipped.codes);
  // Only the outlier counts.
  std::vector<float> importance(128, 0.0f);
  importance[9] = 1.0f;
  const QuantizedTensor weighed = made(numbers, shape, "int4-group", {.clip = Clip::mse, .importance = importance});
  EXPECT_EQ(codes_of(weighed, 384)[128 + 9], 7);
  EXPECT_GT(squares(numbers, weighed), squares(numbers, clipped));
}

TEST(Quantize, ClipsNeitherTensorsNorGguf) {
  const std::vector<float> numbers = with_outlier(2);
  const Result<QuantizedTensor> tensor = quantize(view_of(numbers, {2, 128}), "fp8-tensor", {.clip = Clip::mse});
  EXPECT_EQ(tensor.error().message, "fp8-tensor has one scale for the whole tensor, which is not searched");
  const Result<QuantizedTensor> ggml = quantize(view_of(numbers, {1, 256}), "q4_k", {.clip = Clip::mse});
  EXPECT_EQ(ggml.error().message, "q4_k of ggml has a search of its own, and no clipping");
  const std::vector<float> few(5, 1.0f);
  const Result<QuantizedTensor> short_one = quantize(view_of(numbers, {1, 256}), "q4_k", {.importance = few});
  EXPECT_EQ(short_one.error().message, "importance of 5 numbers, where the weight has 256 columns");
}

TEST(Quantize, ImportanceChangesTheSearchOfKBlocks) {
  std::mt19937 random(29);
  std::vector<float> numbers(512), importance(256, 1.0f);
  for (float& number : numbers) number = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  for (std::size_t i = 0; i < 256; i += 2) importance[i] = 1e-3f;
  for (const char* scheme : {"q4_k", "q6_k"}) {
    const QuantizedTensor plain = made(numbers, {2, 256}, scheme);
    const QuantizedTensor weighed = made(numbers, {2, 256}, scheme, {.importance = importance});
    EXPECT_NE(plain.codes, weighed.codes) << scheme;
    // A matrix of its own, with its own columns.
    std::vector<float> each(512, 1.0f);
    std::copy(importance.begin(), importance.end(), each.begin() + 256);
    const QuantizedTensor second = made(numbers, {2, 1, 256}, scheme, {.importance = each});
    const std::size_t half = weighed.codes.size() / 2;
    EXPECT_TRUE(std::equal(weighed.codes.begin() + static_cast<std::ptrdiff_t>(half), weighed.codes.end(),
                           second.codes.begin() + static_cast<std::ptrdiff_t>(half)))
        << scheme;
  }
}

}  // namespace
}  // namespace tensorcast
