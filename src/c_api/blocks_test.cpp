// SPDX-License-Identifier: Apache-2.0
// Weights in blocks in C: what tc_quantize() returns is what tc_dequantize() reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tensorcast/block.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/typed_cast.hpp"

namespace {

constexpr std::int64_t shape[2] = {8, 512};

std::vector<float> small_weights() {
  std::vector<float> weights(8 * 512);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.05f * std::sin(static_cast<float>(i) * 0.37f);
  return weights;
}

TEST(BlocksInC, RowsAreWrittenAndReadInTheCallersMemory) {
  const std::vector<float> weights = small_weights();
  for (const char* scheme : {"q4_k", "mxfp8", "nvfp4"}) {
    const float maximum = 6.0f;
    tc_quantize_options options = TC_QUANTIZE_OPTIONS_INIT;
    options.to_gguf = scheme[0] == 'q';
    options.maximum = &maximum;
    const tc_array array = {weights.data(), shape, 2, TC_FLOAT32};
    tc_quantized* whole = nullptr;
    ASSERT_EQ(tc_quantize(&array, scheme, &options, &whole), TC_OK) << tc_last_error();
    tc_quantized_parts parts = TC_QUANTIZED_PARTS_INIT;
    ASSERT_EQ(tc_quantized_get(whole, &parts), TC_OK);

    tc_quantized_layout layout = TC_QUANTIZED_LAYOUT_INIT;
    ASSERT_EQ(tc_quantized_sizes(scheme, shape, 2, &options, &layout), TC_OK) << tc_last_error();
    EXPECT_EQ(layout.has_global_scale, parts.has_global_scale);
    EXPECT_EQ(layout.global_scale, parts.global_scale);
    std::vector<char> codes(layout.codes_bytes), scales(layout.scales_bytes);
    tc_quantized_buffers out = TC_QUANTIZED_BUFFERS_INIT;
    out.codes = codes.data(), out.codes_bytes = codes.size();
    out.scales = scales.data(), out.scales_bytes = scales.size();
    for (int64_t row = 0; row < shape[0]; ++row) {
      const tc_array one = {weights.data() + row * shape[1], shape + 1, 1, TC_FLOAT32};
      ASSERT_EQ(tc_quantize_rows(scheme, &one, row, &out, &options), TC_OK) << tc_last_error();
    }
    EXPECT_EQ(std::memcmp(codes.data(), parts.codes.data, codes.size()), 0) << scheme;
    EXPECT_TRUE(scales.empty() || std::memcmp(scales.data(), parts.scales.data, scales.size()) == 0) << scheme;
    options.maximum = nullptr;
    EXPECT_EQ(tc_quantize_rows(scheme, &array, 0, &out, &options),
              std::string(scheme) == "nvfp4" ? TC_INVALID_ARGUMENT : TC_OK);

    tc_block_tensor tensor = TC_BLOCK_TENSOR_INIT;
    ASSERT_EQ(tc_quantized_block_tensor(whole, &tensor), TC_OK);
    tc_prepared_dequantize* prepared = nullptr;
    ASSERT_EQ(tc_prepare_dequantize(&tensor, TC_FLOAT32, nullptr, &prepared), TC_OK) << tc_last_error();
    std::vector<float> row(512), expected(512);
    ASSERT_EQ(tc_dequantize(&tensor, 3, 1, expected.data(), TC_FLOAT32, nullptr), TC_OK);
    ASSERT_EQ(tc_dequantize_rows(prepared, nullptr, 3, 1, row.data()), TC_OK) << tc_last_error();
    EXPECT_EQ(row, expected);
    std::fill(row.begin(), row.end(), 0.0f);
    ASSERT_EQ(tc_dequantize_rows(prepared, codes.data() + 3 * layout.codes_row_bytes, 3, 1, row.data()), TC_OK);
    EXPECT_EQ(row, expected);
    EXPECT_EQ(tc_dequantize_rows(prepared, nullptr, shape[0], 1, row.data()), TC_INVALID_ARGUMENT);
    EXPECT_EQ(tc_dequantize_rows(nullptr, nullptr, 0, 1, row.data()), TC_INVALID_ARGUMENT);
    tc_prepared_dequantize_free(prepared);
    tc_prepared_dequantize_free(nullptr);
    tc_quantized_free(whole);
  }
}

// Codes of rows alone, in memory of their own size: rows of nf4 begin anywhere in what the reader takes together, and
// other layouts have no rows.
TEST(BlocksInC, CodesElsewhereAreThoseOfTheRowsOrRefused) {
  std::vector<unsigned char> bytes(4096);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / 32);
  const std::vector<float> scales(256, 0.5f);
  struct Case {
    const char *scheme, *spelling;
    std::int64_t shape[2], codes_shape[2], scales_shape[2];
    std::int64_t row_bytes;  // 0: refused
  };
  for (const Case& of :
       {Case{"nf4", "bitsandbytes", {4, 64}, {128, 1}, {4, 1}, 32},
        Case{"fp4", "bitsandbytes", {3, 192}, {288, 1}, {9, 1}, 96},
        Case{"nf4", "bitsandbytes", {4, 3}, {6, 1}, {1, 1}, 0}, Case{"affine-4", "mlx", {4, 64}, {4, 8}, {4, 1}, 32},
        Case{"gptq-4", "gptq", {8, 32}, {4, 8}, {1, 8}, 0},
        Case{"int4-group", "modelopt", {4, 128}, {2, 128}, {4, 1}, 0},
        Case{"mxfp4", "gpt-oss", {32, 8}, {8, 16}, {8, 1}, 0}}) {
    SCOPED_TRACE(of.scheme);
    const bool is_of_words = of.scheme[0] == 'a' || of.scheme[0] == 'g';
    const std::string scheme = of.scheme;
    tc_block_tensor tensor = TC_BLOCK_TENSOR_INIT;
    tensor.scheme = of.scheme, tensor.spelling = of.spelling, tensor.shape = of.shape, tensor.rank = 2;
    tensor.codes = {bytes.data(), of.codes_shape, 2, is_of_words ? TC_INT32 : TC_UINT8};
    tensor.scales = {scales.data(), of.scales_shape, 2, TC_FLOAT32};
    if (scheme == "mxfp4") tensor.scales = {bytes.data(), of.scales_shape, 2, TC_UINT8};
    if (scheme == "affine-4") tensor.biases = tensor.scales;
    tc_prepared_dequantize* prepared = nullptr;
    ASSERT_EQ(tc_prepare_dequantize(&tensor, TC_FLOAT32, nullptr, &prepared), TC_OK) << tc_last_error();
    const std::int64_t rows = of.shape[0], columns = of.shape[1];
    for (std::int64_t row = 0; row < rows; ++row) {
      std::vector<float> expected(static_cast<std::size_t>((rows - row) * columns)), out(expected.size());
      ASSERT_EQ(tc_dequantize_rows(prepared, nullptr, row, rows - row, expected.data()), TC_OK) << tc_last_error();
      if (of.row_bytes == 0) {
        const bool begins_byte = scheme == "nf4" && row % 2 == 0;
        EXPECT_EQ(tc_dequantize_rows(prepared, bytes.data(), row, 1, out.data()),
                  begins_byte ? TC_OK : TC_INVALID_ARGUMENT);
        continue;
      }
      const std::vector<unsigned char> alone(bytes.begin() + row * of.row_bytes, bytes.begin() + rows * of.row_bytes);
      EXPECT_EQ(tc_dequantize_rows(prepared, alone.data(), row, rows - row, out.data()), TC_OK) << tc_last_error();
      EXPECT_EQ(out, expected) << row;
    }
    EXPECT_EQ(tc_dequantize_rows(prepared, bytes.data(), rows, 0, nullptr), TC_OK);
    tc_prepared_dequantize_free(prepared);

    tc_block_tensor unscaled = tensor;
    unscaled.scales.data = nullptr;
    EXPECT_EQ(tc_prepare_dequantize(&unscaled, TC_FLOAT32, nullptr, &prepared), TC_INVALID_ARGUMENT);
    EXPECT_STREQ(tc_last_error(), "the scales are missing");
    tensor.codes.data = nullptr;
    std::vector<float> first(static_cast<std::size_t>(columns)), again(first.size());
    ASSERT_EQ(tc_prepare_dequantize(&tensor, TC_FLOAT32, nullptr, &prepared), TC_OK) << tc_last_error();
    EXPECT_EQ(tc_dequantize_rows(prepared, nullptr, 0, 1, first.data()), TC_INVALID_ARGUMENT);
    EXPECT_EQ(tc_dequantize(&tensor, 0, 1, first.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
    if (of.row_bytes != 0) {
      EXPECT_EQ(tc_dequantize_rows(prepared, bytes.data(), 0, 1, first.data()), TC_OK) << tc_last_error();
      tensor.codes.data = bytes.data();
      EXPECT_EQ(tc_dequantize(&tensor, 0, 1, again.data(), TC_FLOAT32, nullptr), TC_OK);
      EXPECT_EQ(first, again);
    }
    tc_prepared_dequantize_free(prepared);
  }
}

// Each recipe, with and without zero points: tensor scales that are divisors, swapped nibbles and tiles of other
// layouts do not change what is read.
TEST(BlocksInC, EveryResultIsReadAsCppReadsIt) {
  namespace tc = tensorcast;
  const std::vector<float> weights = small_weights();
  const tc_array array = {weights.data(), shape, 2, TC_FLOAT32};
  int made = 0;
  for (const tc::QuantizeRecipe& recipe : tc::quantize_recipes()) {
    for (const int is_asymmetric : {0, 1}) {
      const std::string scheme(recipe.scheme), name(recipe.recipe);
      tc_quantize_options options = TC_QUANTIZE_OPTIONS_INIT;
      options.recipe = name.c_str();
      options.to_gguf = recipe.spelling == "gguf";
      options.is_asymmetric = is_asymmetric;
      tc_quantized* quantized = nullptr;
      if (tc_quantize(&array, scheme.c_str(), &options, &quantized) != TC_OK) {
        EXPECT_EQ(is_asymmetric, 1) << scheme << " of " << name << ": " << tc_last_error();
        continue;
      }
      ++made;
      tc_block_tensor tensor = TC_BLOCK_TENSOR_INIT;
      ASSERT_EQ(tc_quantized_block_tensor(quantized, &tensor), TC_OK) << tc_last_error();
      tc_quantized_parts parts = TC_QUANTIZED_PARTS_INIT;
      ASSERT_EQ(tc_quantized_get(quantized, &parts), TC_OK);
      EXPECT_EQ(parts.scheme, scheme);
      EXPECT_EQ(parts.spelling, std::string(tensor.spelling));
      std::vector<float> in_c(weights.size()), in_cpp(weights.size());
      ASSERT_EQ(tc_dequantize(&tensor, 0, 8, in_c.data(), TC_FLOAT32, nullptr), TC_OK)
          << scheme << " of " << name << ": " << tc_last_error();
      tc_quantized_free(quantized);
      const tc::QuantizeOptions same{.recipe = name, .symmetric = is_asymmetric == 0};
      const tc::TensorView view = tc::view(weights, {8, 512});
      const tc::Result<tc::QuantizedTensor> again =
          options.to_gguf != 0 ? tc::quantize(view, *tc::find_block_format(scheme, "gguf"), same)
                               : tc::quantize(view, scheme, same);
      ASSERT_TRUE(again.ok());
      ASSERT_TRUE(
          tc::dequantize(again->tensor(), 0, {tc::DType::float32, {8, 512}, std::as_writable_bytes(std::span(in_cpp))})
              .ok());
      EXPECT_EQ(std::memcmp(in_c.data(), in_cpp.data(), weights.size() * sizeof(float)), 0) << scheme << " of " << name;
      double worst = 0;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(in_c[i]) - static_cast<double>(weights[i])));
      }
      EXPECT_LT(worst, 0.05) << scheme << " of " << name;
    }
  }
  EXPECT_GT(made, 50);
}

// What tc_quantized_sizes() says is enough to read the rows.
TEST(BlocksInC, RowsAreReadByTheirLayout) {
  namespace tc = tensorcast;
  const std::vector<float> weights = small_weights();
  const tc_array array = {weights.data(), shape, 2, TC_FLOAT32};
  for (const tc::QuantizeRecipe& recipe : tc::quantize_recipes()) {
    for (const int is_asymmetric : {0, 1}) {
      const std::string scheme(recipe.scheme), name(recipe.recipe);
      SCOPED_TRACE(scheme + " of " + name);
      const float maximum = 0.05f;
      tc_quantize_options options = TC_QUANTIZE_OPTIONS_INIT;
      options.recipe = name.c_str();
      options.to_gguf = recipe.spelling == "gguf";
      options.is_asymmetric = is_asymmetric;
      options.group_size = scheme == "int4-group" ? 32 : 0;
      options.compute_dtype = TC_FLOAT32;
      options.maximum = &maximum;
      tc_quantized_layout layout = TC_QUANTIZED_LAYOUT_INIT;
      if (tc_quantized_sizes(scheme.c_str(), shape, 2, &options, &layout) != TC_OK) {
        EXPECT_EQ(is_asymmetric, 1) << tc_last_error();
        continue;
      }
      std::vector<char> codes(layout.codes_bytes), scales(layout.scales_bytes);
      std::vector<std::int8_t> zeros(layout.zero_points_bytes);
      tc_quantized_buffers out = TC_QUANTIZED_BUFFERS_INIT;
      out.codes = codes.data(), out.codes_bytes = codes.size();
      out.scales = scales.data(), out.scales_bytes = scales.size();
      out.zero_points = zeros.data(), out.zero_points_bytes = zeros.size();
      ASSERT_EQ(tc_quantize_rows(scheme.c_str(), &array, 0, &out, &options), TC_OK) << tc_last_error();

      const std::int64_t codes_shape[2] = {layout.rows, static_cast<std::int64_t>(layout.codes_row_bytes)};
      const std::int64_t scales_shape =
          static_cast<std::int64_t>(scales.empty() ? 0 : scales.size() / tc_storage_bytes(layout.scales_dtype, 1));
      tc_block_tensor tensor = TC_BLOCK_TENSOR_INIT;
      tensor.scheme = scheme.c_str(), tensor.spelling = layout.spelling, tensor.is_plain = 1;
      tensor.shape = shape, tensor.rank = 2, tensor.block_columns = layout.block_columns;
      tensor.codes = {codes.data(), codes_shape, 2, TC_UINT8};
      if (!scales.empty()) tensor.scales = {scales.data(), &scales_shape, 1, layout.scales_dtype};
      if (!zeros.empty()) tensor.zero_points = {zeros.data(), &scales_shape, 1, TC_INT8};
      if (layout.has_global_scale != 0 || layout.global_scale != 0) {
        tensor.global_scale = {&layout.global_scale, nullptr, 0, TC_FLOAT32};
      }
      std::vector<float> back(weights.size());
      ASSERT_EQ(tc_dequantize(&tensor, 0, 8, back.data(), TC_FLOAT32, nullptr), TC_OK) << tc_last_error();
      tc_quantized* whole = nullptr;
      ASSERT_EQ(tc_quantize(&array, scheme.c_str(), &options, &whole), TC_OK);
      tc_block_tensor described = TC_BLOCK_TENSOR_INIT;
      ASSERT_EQ(tc_quantized_block_tensor(whole, &described), TC_OK);
      std::vector<float> expected(weights.size());
      ASSERT_EQ(tc_dequantize(&described, 0, 8, expected.data(), TC_FLOAT32, nullptr), TC_OK);
      EXPECT_EQ(back, expected);
      EXPECT_EQ(std::string(layout.spelling), described.spelling);
      tc_quantized_parts parts = TC_QUANTIZED_PARTS_INIT;
      ASSERT_EQ(tc_quantized_get(whole, &parts), TC_OK);
      EXPECT_EQ(layout.global_is_divisor, parts.global_is_divisor);
      tc_quantized_free(whole);
    }
  }
}

TEST(BlocksInC, StochasticRoundingTakesTheWeightsPlace) {
  const std::vector<float> weights = small_weights();
  const tc_array array = {weights.data(), shape, 2, TC_FLOAT32};
  tc_quantized* whole = nullptr;
  ASSERT_EQ(tc_quantize(&array, "fp8-channel", nullptr, &whole), TC_OK) << tc_last_error();
  tc_block_tensor tensor = TC_BLOCK_TENSOR_INIT;
  ASSERT_EQ(tc_quantized_block_tensor(whole, &tensor), TC_OK);
  std::vector<float> numbers(weights.size());
  ASSERT_EQ(tc_dequantize(&tensor, 0, shape[0], numbers.data(), TC_FLOAT32, nullptr), TC_OK);
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.rounding = TC_ROUNDING_STOCHASTIC;
  options.seed = 5;
  options.first_element = 4096;
  std::vector<std::uint16_t> expected(weights.size()), got(512);
  ASSERT_EQ(tc_cast(numbers.data(), TC_FLOAT32, expected.data(), TC_BFLOAT16, numbers.size(), &options), TC_OK);
  ASSERT_EQ(tc_dequantize(&tensor, 3, 1, got.data(), TC_BFLOAT16, &options), TC_OK) << tc_last_error();
  EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin() + 3 * 512));
  tc_prepared_dequantize* prepared = nullptr;
  EXPECT_EQ(tc_prepare_dequantize(&tensor, TC_BFLOAT16, &options, &prepared), TC_INVALID_ARGUMENT);
  tc_quantized_free(whole);
}

TEST(BlocksInC, AnArrayWithoutElementsMayHaveNoData) {
  const std::int64_t none[2] = {0, 64};
  const tc_array array = {nullptr, none, 2, TC_FLOAT32}, some = {nullptr, shape, 2, TC_FLOAT32};
  tc_quantized* quantized = nullptr;
  ASSERT_EQ(tc_quantize(&array, "mxfp8", nullptr, &quantized), TC_OK) << tc_last_error();
  tc_quantized_free(quantized);
  tc_quantized_buffers out = TC_QUANTIZED_BUFFERS_INIT;
  EXPECT_EQ(tc_quantize_rows("mxfp8", &array, 0, &out, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(tc_quantize_rows("int4", &array, 0, &out, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(tc_last_error_hint()).rfind("there are fp8-tensor, ", 0), 0u);
  EXPECT_EQ(tc_quantize(&some, "mxfp8", nullptr, &quantized), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error(), "a buffer is null");
  EXPECT_EQ(tc_quantize_rows("mxfp8", &some, 0, &out, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error(), "a buffer is null");
}

// It was passed over in silence.
TEST(BlocksInC, ImportanceHasACount) {
  const std::vector<float> weights = small_weights();
  const tc_array array = {weights.data(), shape, 2, TC_FLOAT32};
  const std::int64_t none[2] = {8, 0};
  const tc_array empty = {weights.data(), none, 2, TC_FLOAT32};
  tc_quantize_options options = TC_QUANTIZE_OPTIONS_INIT;
  options.importance = weights.data();
  tc_quantized* quantized = nullptr;
  EXPECT_EQ(tc_quantize(&array, "mxfp8", &options, &quantized), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error(), "the importance has no numbers; set `importance_count` to the weight's columns");
  ASSERT_EQ(tc_quantize(&empty, "mxfp8", &options, &quantized), TC_OK) << tc_last_error();
  tc_quantized_free(quantized);
}

// compressed-tensors divides by its global scale, the others multiply: without a word the numbers were off by 1e8.
TEST(BlocksInC, AGlobalScaleNeedsItsLayout) {
  const std::vector<float> weights = small_weights();
  const tc_array array = {weights.data(), shape, 2, TC_FLOAT32};
  tc_quantize_options options = TC_QUANTIZE_OPTIONS_INIT;
  options.recipe = "compressed-tensors";
  tc_quantized* quantized = nullptr;
  ASSERT_EQ(tc_quantize(&array, "nvfp4", &options, &quantized), TC_OK) << tc_last_error();
  tc_block_tensor tensor = TC_BLOCK_TENSOR_INIT;
  ASSERT_EQ(tc_quantized_block_tensor(quantized, &tensor), TC_OK);
  std::vector<float> out(weights.size());
  tensor.spelling = nullptr;
  EXPECT_EQ(tc_dequantize(&tensor, 0, 8, out.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "the global scale of nvfp4 is a factor in one layout and a divisor in another");
  EXPECT_NE(std::strstr(tc_last_error_hint(), "compressed-tensors (a divisor)"), nullptr);
  tensor.spelling = "compressed-tensors";
  EXPECT_EQ(tc_dequantize(&tensor, 0, 8, out.data(), TC_FLOAT32, nullptr), TC_OK);
  tensor.spelling = "awq";
  EXPECT_EQ(tc_dequantize(&tensor, 0, 8, out.data(), TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "no block format \"nvfp4\" in the layout \"awq\"");
  EXPECT_EQ(tc_quantized_block_tensor(nullptr, &tensor), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_quantized_block_tensor(quantized, nullptr), TC_INVALID_ARGUMENT);
  tensor.struct_size = 8;
  EXPECT_EQ(tc_quantized_block_tensor(quantized, &tensor), TC_INVALID_ARGUMENT);
  tc_quantized_free(quantized);
}

}  // namespace
