// SPDX-License-Identifier: Apache-2.0
// Rows in the caller's memory: quantize_rows() and PreparedDequantize against quantize() and dequantize().
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tensorcast/block.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::int64_t all_rows = 260, columns = 512;  // the last block of 128 rows is short

std::vector<float> weights() {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(all_rows * columns);
  for (float& number : numbers) number = normal(random);
  for (std::int64_t i = 0; i < columns; ++i) numbers[static_cast<std::size_t>(5 * columns + i)] = 0.0f;
  return numbers;
}

TensorView rows_of(const std::vector<float>& numbers, std::int64_t first, std::int64_t count) {
  const auto all = std::as_bytes(std::span(numbers));
  return {DType::float32,
          {count, columns},
          all.subspan(static_cast<std::size_t>(first * columns) * 4, static_cast<std::size_t>(count * columns) * 4)};
}

struct Buffers {
  Bytes codes, scales;
  std::vector<std::int8_t> zero_points;

  explicit Buffers(const QuantizedSizes& sizes)
      : codes(sizes.codes), scales(sizes.scales), zero_points(sizes.zero_points) {}
  operator QuantizedBuffers() { return {codes, scales, zero_points}; }
};

// With the coding that rows are written in, which is not that of all files.
BlockFormat format_of(const QuantizeRecipe& recipe) {
  BlockFormat format = *find_block_format(recipe.scheme, recipe.spelling);
  if (format.coding.gguf == GgufBlock::none) {
    format.coding = quantized_sizes(recipe.scheme, {1, 256}, {.recipe = recipe.recipe}).value().layout.coding;
  }
  return format;
}

// Another thread may have written the rest.
TEST(QuantizeRows, OfZerosWriteTheScalesOfTheirOwnRows) {
  constexpr std::byte untouched{0xEE};
  const BlockFormat& format = *find_block_format("nvfp4");
  const QuantizeOptions options{.maximum = 0.0f};
  Buffers out(*quantized_sizes(format, {2, columns}, options));
  std::ranges::fill(out.scales, untouched);
  ASSERT_TRUE(quantize_rows(format, rows_of(std::vector<float>(columns), 0, 1), 1, out, options).ok());
  const auto second = out.scales.begin() + static_cast<std::ptrdiff_t>(out.scales.size() / 2);
  EXPECT_TRUE(std::all_of(out.scales.begin(), second, [](std::byte scale) { return scale == untouched; }));
  EXPECT_TRUE(std::none_of(second, out.scales.end(), [](std::byte scale) { return scale == untouched; }));
}

TEST(QuantizeRows, HaveTheBytesOfTheWholeWeight) {
  const std::vector<float> numbers = weights();
  int compared = 0;
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    for (const bool symmetric : {true, false}) {
      const QuantizeOptions options{
          .recipe = recipe.recipe, .symmetric = symmetric, .compute_dtype = DType::float32, .maximum = 6.0f};
      const BlockFormat format = format_of(recipe);
      const Result<QuantizedTensor> whole = quantize(rows_of(numbers, 0, all_rows), format, options);
      const Result<QuantizedSizes> sizes = quantized_sizes(format, {all_rows, columns}, options);
      ASSERT_EQ(whole.ok(), sizes.ok()) << recipe.scheme;
      if (!whole) {
        EXPECT_EQ(whole.error().message, sizes.error().message);
        continue;
      }
      Buffers out(*sizes);
      const std::int64_t step = sizes->block_rows;
      EXPECT_EQ(sizes->rows, all_rows);
      for (std::int64_t row = 0; row < all_rows; row += step) {
        const std::int64_t count = std::min(step, all_rows - row);
        const Result<void> done = quantize_rows(format, rows_of(numbers, row, count), row, out, options);
        ASSERT_TRUE(done.ok()) << recipe.scheme << " of " << recipe.recipe << ": " << done.error().describe();
      }
      EXPECT_EQ(out.codes, Bytes(whole->codes.begin(), whole->codes.end())) << recipe.scheme << " " << recipe.recipe;
      EXPECT_EQ(out.scales, whole->scales) << recipe.scheme << " " << recipe.recipe;
      EXPECT_EQ(out.zero_points, whole->zero_points);
      EXPECT_EQ(sizes->global_scale, whole->global_scale);
      ++compared;
    }
  }
  EXPECT_GE(compared, 20);
}

// The whole weight's largest magnitude, before the weights are rounded, is `maximum`.
TEST(QuantizeRows, HaveTheBytesAndTheScaleOfRoundedWeights) {
  const std::vector<float> numbers = weights();
  float largest = 0.0f;
  for (const float number : numbers) largest = std::max(largest, std::fabs(number));
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    for (const DType type : {DType::float32, DType::bfloat16, DType::float16}) {
      QuantizeOptions options{.recipe = recipe.recipe, .compute_dtype = type};
      const BlockFormat format = format_of(recipe);
      const QuantizedTensor whole = quantize(rows_of(numbers, 0, all_rows), format, options).value();
      options.maximum = largest;
      const QuantizedSizes sizes = quantized_sizes(format, {all_rows, columns}, options).value();
      Buffers out(sizes);
      ASSERT_TRUE(quantize_rows(format, rows_of(numbers, 0, all_rows), 0, out, options));
      EXPECT_EQ(out.codes, Bytes(whole.codes.begin(), whole.codes.end())) << recipe.scheme << " " << recipe.recipe;
      EXPECT_EQ(out.scales, whole.scales) << recipe.scheme << " " << recipe.recipe;
      EXPECT_EQ(sizes.global_scale, whole.global_scale) << recipe.scheme << " " << recipe.recipe;
    }
  }
}

// Without the weights, only `compute_dtype` says which type the recipe rounds the global scale to.
TEST(QuantizeRows, TheirGlobalScaleIsThatOfATypeWhichIsSaid) {
  QuantizeOptions options{.recipe = "comfy", .maximum = 6.0f};
  EXPECT_EQ(quantized_sizes("nvfp4", {1, 32}, options).error().describe(),
            "the global scale of nvfp4 by comfy depends on the type of the weights; set `compute_dtype` to it");
  options.compute_dtype = DType::bfloat16;
  const Bytes ones(64, std::byte{0x3f});
  const Result<QuantizedTensor> whole = quantize({DType::bfloat16, {1, 32}, ones}, "nvfp4", options);
  EXPECT_EQ(quantized_sizes("nvfp4", {1, 32}, options).value().global_scale, whole.value().global_scale);
  options.compute_dtype = DType::undefined;
  options.maximum.reset();
  EXPECT_TRUE(quantized_sizes("nvfp4", {1, 32}, options).ok());
  EXPECT_TRUE(quantized_sizes("nvfp4", {1, 32}, {.recipe = "modelopt", .maximum = 6.0f}).ok());
}

TEST(QuantizeRows, RememberNoOtherOptions) {
  const std::vector<float> numbers = weights();
  const std::vector<float> importance(columns, 2.0f);
  const BlockFormat& format = *find_block_format("int4-group");
  for (int round = 0; round < 2; ++round) {
    for (const QuantizeOptions& options :
         {QuantizeOptions{}, QuantizeOptions{.group_size = 32}, QuantizeOptions{.clip = Clip::mse},
          QuantizeOptions{.clip = Clip::mse, .importance = importance}}) {
      Buffers out(quantized_sizes(format, {1, columns}, options).value());
      ASSERT_TRUE(quantize_rows(format, rows_of(numbers, 2, 1), 0, out, options));
      EXPECT_EQ(out.scales, quantize(rows_of(numbers, 2, 1), format, options).value().scales);
    }
  }
}

// Which a reader with the format's coding would read wrong.
TEST(QuantizeRows, AreRefusedInLayoutsThatAreNotWritten) {
  const std::vector<float> numbers = weights();
  int refused = 0;
  for (const BlockFormat& format : block_formats()) {
    if (format.coding.gguf != GgufBlock::none) continue;
    SCOPED_TRACE(std::string(format.scheme) + " of " + std::string(format.spelling));
    const QuantizeOptions options{.maximum = 6.0f};
    const Result<QuantizedSizes> sizes = quantized_sizes(format.scheme, {2, columns}, options);
    if (!sizes) continue;  // only read
    const Result<QuantizedSizes> of_format = quantized_sizes(format, {2, columns}, options);
    Buffers out(*sizes);
    const Result<void> done = quantize_rows(format, rows_of(numbers, 0, 2), 0, out, options);
    EXPECT_EQ(of_format.ok(), sizes->layout.coding == format.coding);
    EXPECT_EQ(of_format.ok(), done.ok());
    if (done) continue;
    ++refused;
    EXPECT_EQ(done.error().describe(), of_format.error().describe());
    EXPECT_NE(done.error().message.find("are not written in the layout " + std::string(format.spelling)),
              std::string::npos);
  }
  EXPECT_EQ(refused, 6);
}

TEST(QuantizeRows, AreReadThroughTheirSizes) {
  const std::vector<float> numbers = weights();
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    for (const bool symmetric : {true, false}) {
      const QuantizeOptions options{
          .recipe = recipe.recipe, .symmetric = symmetric, .compute_dtype = DType::float32, .maximum = 6.0f};
      const Result<QuantizedSizes> sizes = quantized_sizes(recipe.scheme, {all_rows, columns}, options);
      if (!sizes) continue;
      Buffers out(*sizes);
      ASSERT_TRUE(quantize_rows(recipe.scheme, rows_of(numbers, 0, all_rows), 0, out, options));
      const QuantizedTensor whole = quantize(rows_of(numbers, 0, all_rows), recipe.scheme, options).value();
      Bytes from_rows(numbers.size() * 4), from_whole(from_rows.size());  // of zeros, some recipes make NaN
      const auto read = [](const BlockTensor& tensor, Bytes& to) {
        return dequantize(tensor, 0, {DType::float32, {all_rows, columns}, to}).ok();
      };
      EXPECT_TRUE(read(sizes->tensor(out), from_rows)) << recipe.scheme << " " << recipe.recipe;
      EXPECT_TRUE(read(whole.tensor(), from_whole));
      EXPECT_EQ(from_rows, from_whole) << recipe.scheme << " " << recipe.recipe;
    }
  }
}

// Tables of one format's scales, which buffers keep, are not another's.
TEST(QuantizeRows, RememberNoOtherFormat) {
  constexpr std::int64_t rows = 128, wide = 2048;
  const Bytes weights(rows * wide * 2, std::byte{0x3f});  // bfloat16
  const TensorView view{DType::bfloat16, {rows, wide}, weights};
  for (int round = 0; round < 2; ++round) {
    for (const QuantizeRecipe& recipe : quantize_recipes()) {
      const QuantizeOptions options{.recipe = recipe.recipe, .compute_dtype = DType::bfloat16, .maximum = 1.0f};
      const BlockFormat format = format_of(recipe);
      Buffers out(quantized_sizes(format, view.shape, options).value());
      ASSERT_TRUE(quantize_rows(format, view, 0, out, options));
      const QuantizedTensor whole = quantize(view, format, options).value();
      EXPECT_EQ(out.codes, Bytes(whole.codes.begin(), whole.codes.end())) << recipe.scheme << " " << recipe.recipe;
      EXPECT_EQ(out.scales, whole.scales) << recipe.scheme << " " << recipe.recipe;
    }
  }
}

TEST(QuantizeRows, NameWhatIsWrong) {
  const std::vector<float> numbers = weights();
  const auto message = [&](const char* scheme, std::int64_t count, std::int64_t first, const QuantizedBuffers& out) {
    const Result<void> done = quantize_rows(scheme, rows_of(numbers, 0, count), first, out);
    return done ? "" : done.error().describe();
  };
  Bytes codes(columns * 4), scales(columns / 32 * 4);
  EXPECT_EQ(message("mxfp8", 1, 3, {codes, scales, {}}), "");
  EXPECT_EQ(message("mxfp8", 2, 3, {codes, scales, {}}), "2 rows from row 3 on, but the buffer of codes has 4");
  EXPECT_EQ(message("mxfp8", 1, -1, {codes, scales, {}}), "1 rows from row -1 on, but the buffer of codes has 4");
  EXPECT_EQ(message("mxfp8", 1, 0, {codes, {}, {}}),
            "the buffer of scales has 0 bytes, but those of 4 rows take 64; give quantized_sizes() of the whole "
            "weight; of several matrices, one at a time");
  EXPECT_EQ(message("mxfp8", 1, 0, {}), "0 bytes of codes are no rows of 512");
  EXPECT_EQ(message("nvfp4", 1, 0, {std::span(codes).first(256), std::span(scales).first(32), {}}),
            "nvfp4 has a scale for the whole weight, which some of its rows do not tell; set `maximum` to the largest "
            "magnitude of all rows, or call quantize()");
  EXPECT_EQ(message("fp8-block", 1, 1, {codes, std::span(scales).first(16), {}}),
            "rows 1 to 2 are no whole blocks of 128 rows; quantize the rows that share scales in one call");
  for (const std::int64_t count : {1, 0}) {
    EXPECT_EQ(
        message("no-such", count, 0, {codes, scales, {}}).rfind("no scheme \"no-such\"; there are fp8-tensor, ", 0),
        0u);
  }

  std::vector<float> bad(columns);
  bad[7] = INFINITY;
  const Result<void> done = quantize_rows("mxfp8", rows_of(bad, 0, 1), 2, {codes, scales, {}});
  EXPECT_EQ(done.error().code, ErrorCode::out_of_range);
  EXPECT_EQ(done.error().element, 7u);
}

TEST(QuantizeRows, AndPreparedDequantizeRefuseSharedMemory) {
  std::vector<float> numbers = weights();
  Bytes memory(static_cast<std::size_t>(columns) * 4);
  const std::span<std::byte> codes = std::span(memory).first(columns), after = std::span(memory).subspan(columns);
  const auto refusal = [&](const TensorView& rows, const QuantizedBuffers& out) {
    const Result<void> done = quantize_rows("mxfp8", rows, 0, out);
    return done ? "" : done.error().describe();
  };
  const TensorView row = rows_of(numbers, 0, 1);
  EXPECT_EQ(refusal(row, {codes, after.first(16), {}}), "");
  EXPECT_EQ(refusal(row, {codes, std::span(memory).subspan(columns - 1, 16), {}}),
            "the codes and the scales overlap; give each a buffer of its own");
  EXPECT_EQ(refusal({DType::bfloat16, {1, columns}, std::span(memory).first(columns * 2)},
                    {codes, std::as_writable_bytes(std::span(numbers)).first(16), {}}),
            "the codes and the rows overlap; give each a buffer of its own");
  EXPECT_EQ(refusal(row, {codes, std::as_writable_bytes(std::span(numbers)).first(16), {}}),
            "the scales and the rows overlap; give each a buffer of its own");

  QuantizedTensor made = quantize(row, "mxfp8").value();
  const BlockTensor tensor = made.tensor();
  PreparedDequantize prepared = prepare_dequantize(tensor, DType::float8_e5m2).value();
  for (const std::span<std::byte> written : {std::span<std::byte>(made.codes), std::span<std::byte>(made.scales)}) {
    const MutableTensorView out{DType::float8_e5m2, {1, columns}, {written.data() + written.size() - 1, columns}};
    EXPECT_EQ(dequantize(tensor, 0, out).error().message.rfind("the target and the ", 0), 0u);
    EXPECT_EQ(prepared(0, 1, out.bytes.data()).error().code, ErrorCode::invalid_argument);
  }
  EXPECT_TRUE(prepared(0, 1, memory.data()));
}

TEST(PreparedDequantize, ReadsRowsAsDequantize) {
  const std::vector<float> numbers = weights();
  int compared = 0;
  for (const QuantizeRecipe& recipe : quantize_recipes()) {
    const QuantizedTensor made =
        quantize(rows_of(numbers, 0, all_rows), format_of(recipe), {.recipe = recipe.recipe}).value();
    BlockTensor tensor = made.tensor();
    const float one = 1.0f;
    if (tensor.coding.global != GlobalScale::none && !made.global_scale) {
      tensor.global_scale = {DType::float32, {}, std::as_bytes(std::span(&one, 1))};
    }
    for (const DType to : {DType::float32, DType::bfloat16, DType::float8_e5m2}) {
      Result<PreparedDequantize> rows = prepare_dequantize(tensor, to);
      ASSERT_TRUE(rows.ok()) << recipe.scheme << ": " << rows.error().describe();
      for (const std::int64_t first : {0, 7, 200, 7}) {
        constexpr std::int64_t count = 3;
        const std::size_t bytes = storage_bytes(to, count * columns);
        Bytes expected(bytes), actual(bytes), elsewhere(bytes);
        ASSERT_TRUE(dequantize(tensor, first, {to, {count, columns}, expected}));
        ASSERT_TRUE((*rows)(first, count, actual.data()));
        EXPECT_EQ(expected, actual) << recipe.scheme << " to " << name(to);
        const CodeRange range = rows->code_range(first, count).value();
        const Bytes page(tensor.codes.bytes.begin() + static_cast<std::ptrdiff_t>(range.begin),
                         tensor.codes.bytes.begin() + static_cast<std::ptrdiff_t>(range.end));
        ASSERT_TRUE((*rows)(page, first, count, elsewhere.data()));
        EXPECT_EQ(expected, elsewhere) << recipe.scheme << " to " << name(to);
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 100);
}

TEST(PreparedDequantize, ReadsScalesThatHaveChanged) {
  const std::vector<float> numbers = weights();
  QuantizedTensor made = quantize(rows_of(numbers, 0, 4), "mxfp8").value();
  PreparedDequantize rows = prepare_dequantize(made.tensor(), DType::float32).value();
  std::vector<float> before(columns), after(columns);
  ASSERT_TRUE(rows(0, 1, before.data()));
  for (std::byte& scale : made.scales) scale = static_cast<std::byte>(std::to_integer<int>(scale) + 1);
  ASSERT_TRUE(rows(0, 1, after.data()));
  EXPECT_EQ(after[3], 2.0f * before[3]);
}

TEST(PreparedDequantize, NamesWhatIsWrong) {
  const std::vector<float> numbers = weights();
  const QuantizedTensor made = quantize(rows_of(numbers, 0, 4), *find_block_format("q4_0")).value();
  std::vector<float> out(columns);
  PreparedDequantize rows = prepare_dequantize(made.tensor(), DType::float32).value();
  EXPECT_EQ(rows(3, 2, out.data()).error().message, "2 rows from row 3 on, but the weight has 4");
  EXPECT_EQ(rows(-1, 1, out.data()).error().message, "1 rows from row -1 on, but the weight has 4");
  EXPECT_EQ(rows(0, 1, nullptr).error().message, "the target buffer is null");
  EXPECT_TRUE(rows(4, 0, nullptr));
  const Bytes few(7);
  EXPECT_EQ(rows(few, 0, 1, out.data()).error().message, "7 bytes of codes, where 0 to 288 of 1152 are needed");
  EXPECT_EQ(prepare_dequantize(made.tensor(), DType::int8).error().message,
            "the target is no floating-point type of 8 bits or more");
  const PreparedDequantize moved = std::move(rows);
  EXPECT_EQ(rows(0, 1, out.data()).error().message, "this PreparedDequantize was moved from");
}

}  // namespace
}  // namespace tensorcast
