// SPDX-License-Identifier: Apache-2.0
// Weights in blocks as an engine in C has them: quantized whole and in rows to memory of its own, described, changed,
// and read back by prepared calls. Buffers have exactly the sizes that tc_quantized_sizes() and shapes say.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "fuzzing.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/c_api.h"

namespace {

namespace tc = tensorcast;
using tc::fuzzing::any_length;
using tc::fuzzing::Memory;
using tc::fuzzing::require;
using tc::testing::Choices;

constexpr std::size_t most_bytes = std::size_t{1} << 20;

using Quantized = tc::fuzzing::Held<tc_quantized, tc_quantized_free>;

struct Weight {
  std::string scheme = {}, recipe = {};
  std::vector<std::int64_t> shape = {};
  std::span<std::byte> bytes = {};
  tc_dtype dtype = TC_FLOAT32;
  tc_quantize_options options = TC_QUANTIZE_OPTIONS_INIT;
  float maximum = 0;

  [[nodiscard]] tc_array array() const { return {bytes.data(), shape.data(), shape.size(), dtype}; }
};

std::size_t bytes_of(tc_dtype dtype, const std::int64_t* shape, std::size_t rank) {
  const tc::Result<std::size_t> count = tc::element_count(tc::Shape(shape, rank));
  const std::size_t bytes = count ? tc_storage_bytes(dtype, *count) : 0;
  return bytes < most_bytes ? bytes : 0;
}

void choose_options(Choices& choices, Memory& memory, const tc::QuantizeRecipe& recipe, Weight& weight) {
  tc_quantize_options& options = weight.options;
  if (!choices.one_in(4)) options.recipe = weight.recipe.c_str();
  if (choices.one_in(4)) options.group_size = choices.one_in(2) ? 32 : any_length(choices);
  options.is_asymmetric = choices.one_in(4);
  options.power_of_two_scales = choices.one_in(6);
  options.allows_nonfinite = choices.one_in(2);
  options.to_gguf = recipe.spelling == "gguf" || choices.one_in(8);
  options.clip = choices.one_in(12) ? -1 : choices.one_in(4);
  options.threads = choices.one_in(8) ? -3 : static_cast<std::int32_t>(choices.below(3));
  if (choices.one_in(3)) options.compute_dtype = weight.dtype;
  if (choices.one_in(12)) options.compute_dtype = static_cast<tc_dtype>(choices.below(30));
  if (choices.one_in(8)) {
    const std::size_t columns = choices.one_in(3) ? choices.below(600)
                                                  : static_cast<std::size_t>(std::clamp<std::int64_t>(
                                                        weight.shape.empty() ? 1 : weight.shape.back(), 0, 4096));
    const std::span<std::byte> importance = memory.take(choices, 4 * columns);
    options.importance = reinterpret_cast<const float*>(importance.data());
    options.importance_count = columns;
  }
  weight.maximum = choices.one_of({3.0f, 4.0f, 0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()});
  if (choices.one_in(2)) options.maximum = &weight.maximum;
}

Weight any_weight(Choices& choices, Memory& memory) {
  const auto recipes = tc::quantize_recipes();
  const tc::QuantizeRecipe& recipe = recipes[choices.below(recipes.size())];
  Weight weight{.scheme = std::string(recipe.scheme), .recipe = std::string(recipe.recipe)};
  weight.dtype = choices.one_in(12) ? static_cast<tc_dtype>(choices.dtype())
                                    : choices.one_of({TC_FLOAT32, TC_BFLOAT16, TC_FLOAT16});
  weight.shape.resize(choices.one_in(6) ? choices.below(5) : 2);
  for (std::int64_t& length : weight.shape)
    length = choices.one_in(16) ? any_length(choices) : static_cast<std::int64_t>(1 + choices.below(12));
  if (!weight.shape.empty() && !choices.one_in(6))
    weight.shape.back() = static_cast<std::int64_t>(1 + choices.below(3)) * 256;
  // C takes memory to be as long as a shape says.
  tc::Result<std::size_t> count = tc::element_count(weight.shape);
  if (count && *count != 0 && bytes_of(weight.dtype, weight.shape.data(), weight.shape.size()) == 0) {
    weight.shape = {3, 256};
    count = tc::element_count(weight.shape);
  }
  weight.bytes = memory.take(choices, bytes_of(weight.dtype, weight.shape.data(), weight.shape.size()));
  if (!choices.one_in(6)) {
    const std::size_t elements = weight.bytes.empty() ? 0 : *count;
    (void)tc::fuzzing::fill_with_numbers(choices, weight.bytes, weight.dtype, elements);
  }
  choose_options(choices, memory, recipe, weight);
  return weight;
}

// The whole weight in one call and in several, to buffers of the sizes that are named; one byte less is refused.
void check_rows(Choices& choices, Memory& memory, const Weight& weight, const tc_quantized_layout& layout,
                const tc_quantized_parts& parts) {
  if (layout.block_rows != 1 && weight.shape.size() > 2) return;  // each matrix would have buffers of its own
  tc_quantized_buffers out = TC_QUANTIZED_BUFFERS_INIT;
  out.codes = memory.zeros(layout.codes_bytes).data();
  out.codes_bytes = layout.codes_bytes;
  if (layout.scales_bytes != 0) out.scales = memory.zeros(layout.scales_bytes).data();
  out.scales_bytes = layout.scales_bytes;
  if (layout.zero_points_bytes != 0)
    out.zero_points = reinterpret_cast<std::int8_t*>(memory.zeros(layout.zero_points_bytes).data());
  out.zero_points_bytes = layout.zero_points_bytes;

  const std::int64_t columns = weight.shape.empty() ? 1 : weight.shape.back();
  const bool is_split = weight.shape.size() <= 2 && weight.options.importance == nullptr && choices.one_in(2);
  const std::int64_t step =
      !is_split ? layout.rows
                : std::max<std::int64_t>(1, layout.block_rows) * static_cast<std::int64_t>(1 + choices.below(3));
  const std::size_t row_bytes = tc_storage_bytes(weight.dtype, static_cast<std::size_t>(columns));
  const char* const scheme = weight.scheme.c_str();
  tc_status status = TC_OK;
  for (const bool refuses : {true, false}) {  // the last calls write all rows
    for (std::int64_t row = 0; row < layout.rows && status == TC_OK; row += step) {
      const std::int64_t rows = std::min(step, layout.rows - row);
      const std::vector<std::int64_t> shape = is_split ? std::vector<std::int64_t>{rows, columns} : weight.shape;
      const std::span<const std::byte> from =
          weight.bytes.subspan(static_cast<std::size_t>(row) * row_bytes, static_cast<std::size_t>(rows) * row_bytes);
      const tc_array array = {memory.copy(from.data(), from.size(), from.size()), shape.data(), shape.size(),
                              weight.dtype};
      if (!refuses) {
        status = tc_quantize_rows(scheme, &array, row, &out, &weight.options);
        continue;
      }
      tc_quantized_buffers small = out;
      --small.codes_bytes;
      const bool is_of_rows = layout.codes_row_bytes == 1;  // of one row fewer
      require(is_of_rows || tc_quantize_rows(scheme, &array, row, &small, &weight.options) != TC_OK,
              "too few bytes are filled");
      require(tc_quantize_rows(scheme, &array, layout.rows - rows + 1, &out, &weight.options) != TC_OK,
              "rows beyond the weight");
      (void)tc_quantize_rows(scheme, &array, any_length(choices), &out, &weight.options);
      tc_quantized_buffers shared = out;
      shared.scales = shared.codes;
      require(shared.scales_bytes == 0 || tc_quantize_rows(scheme, &array, row, &shared, &weight.options) != TC_OK,
              "scales are written over codes");
    }
  }
  require(status == TC_OK || weight.options.maximum == nullptr, "rows that are refused, of a weight that is not");
  if (status != TC_OK || weight.options.recipe == nullptr) return;
  require(std::memcmp(out.codes, parts.codes.data, layout.codes_bytes) == 0, "rows have other codes than the weight");
  require(layout.scales_bytes == 0 || std::memcmp(out.scales, parts.scales.data, layout.scales_bytes) == 0,
          "rows have other scales than the weight");
  require(layout.zero_points_bytes == 0 ||
              std::memcmp(out.zero_points, parts.zero_points.data, layout.zero_points_bytes) == 0,
          "rows have other zero points than the weight");
}

bool is_whole(const tc_array& array) {
  return array.data == nullptr || bytes_of(array.dtype, array.shape, array.rank) != 0;
}

// Changes the array, in memory of exactly its new size.
void change_array(Choices& choices, Memory& memory, tc_array& array) {
  const std::size_t before = array.data == nullptr ? 0 : bytes_of(array.dtype, array.shape, array.rank);
  std::vector<std::int64_t> shape(array.shape, array.shape + array.rank);
  switch (choices.below(4)) {
    case 0:
      array = TC_ARRAY_INIT;
      return;
    case 1:
      array.dtype =
          choices.one_in(2) ? static_cast<tc_dtype>(choices.dtype()) : static_cast<tc_dtype>(choices.below(40));
      break;
    case 2:
      shape.resize(choices.below(5));
      for (std::int64_t& length : shape) length = any_length(choices);
      break;
    default:
      if (shape.empty()) break;
      shape[choices.below(shape.size())] = any_length(choices);
  }
  auto* const kept =
      memory.copy(shape.data(), shape.size() * sizeof(std::int64_t), shape.size() * sizeof(std::int64_t));
  array.shape = reinterpret_cast<const std::int64_t*>(kept);
  array.rank = shape.size();
  const std::size_t bytes = bytes_of(array.dtype, array.shape, array.rank);
  const void* const from = array.data;
  const std::span<std::byte> made = memory.take(choices, bytes);
  if (from != nullptr && before != 0) std::memcpy(made.data(), from, std::min(before, bytes));
  array.data = made.data();
}

void change(Choices& choices, Memory& memory, tc_block_tensor& tensor) {
  const auto formats = tc::block_formats();
  tc_array* const arrays[] = {&tensor.codes,  &tensor.scales,      &tensor.global_scale, &tensor.zero_points,
                              &tensor.biases, &tensor.group_index, &tensor.table};
  switch (choices.below(12)) {
    case 0:
      tensor.scheme = choices.one_in(8) ? "nvfp5" : formats[choices.below(formats.size())].scheme.data();
      return;
    case 1:
      tensor.spelling = choices.one_in(4) ? nullptr : formats[choices.below(formats.size())].spelling.data();
      return;
    case 2:
      tensor.block_rows = any_length(choices);
      return;
    case 3:
      tensor.block_columns = any_length(choices);
      return;
    case 4:
      tensor.is_plain = tensor.is_plain == 0 ? 1 : 0;
      return;
    case 5: {
      std::vector<std::int64_t> shape(choices.below(5));
      for (std::int64_t& length : shape) length = any_length(choices);
      tensor.shape =
          reinterpret_cast<const std::int64_t*>(memory.copy(shape.data(), 8 * shape.size(), 8 * shape.size()));
      tensor.rank = shape.size();
      return;
    }
    default:
      change_array(choices, memory, *arrays[choices.below(std::size(arrays))]);
  }
}

// Rows by tc_dequantize(), by a prepared call, and by one whose codes lie elsewhere, unless the layout has no rows.
// `has_rows`: it has.
void check_read(Choices& choices, Memory& memory, const tc_block_tensor& tensor, bool has_rows) {
  const tc_dtype to = choices.one_of({TC_FLOAT32, TC_BFLOAT16, TC_FLOAT16, TC_FLOAT8_E4M3FN});
  const std::int64_t columns = tensor.rank == 0 ? 1 : tensor.shape[tensor.rank - 1];
  const tc::Result<std::size_t> count = tc::element_count(tc::Shape(tensor.shape, tensor.rank));
  if (!count || *count > most_bytes || columns <= 0) return;
  const std::int64_t rows = static_cast<std::int64_t>(*count) / columns;
  const std::int64_t first = static_cast<std::int64_t>(choices.below(static_cast<std::uint64_t>(rows) + 1));
  const std::int64_t some = static_cast<std::int64_t>(choices.below(static_cast<std::uint64_t>(rows - first) + 1));
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  if (choices.one_in(4)) options.rounding = static_cast<std::int32_t>(choices.below(8));
  if (options.rounding == TC_ROUNDING_STOCHASTIC) options.seed = choices.below(1000);
  if (choices.one_in(4)) options.out_of_range = static_cast<std::int32_t>(choices.below(4));
  const std::size_t bytes = tc_storage_bytes(to, static_cast<std::size_t>(some * columns));
  const std::span<std::byte> plain = memory.zeros(bytes), prepared_once = memory.zeros(bytes),
                             elsewhere = memory.zeros(bytes);
  require(tc_dequantize(&tensor, first, rows - first + 1, plain.data(), to, &options) != TC_OK,
          "a row beyond the weight");
  const tc_status status = tc_dequantize(&tensor, first, some, plain.data(), to, &options);
  if (status == TC_OK && !plain.empty() && tensor.scales.data != nullptr) {
    auto* const scales = const_cast<void*>(tensor.scales.data);
    require(tc_dequantize(&tensor, first, some, scales, to, &options) != TC_OK, "numbers are written over scales");
  }
  tc_prepared_dequantize* prepared = nullptr;
  const tc_status made = tc_prepare_dequantize(&tensor, to, &options, &prepared);
  require((made == TC_OK) == (prepared != nullptr), "a prepared call beside an error");
  if (made == TC_OK) {
    require(tc_dequantize_rows(prepared, nullptr, first, some, prepared_once.data()) == status,
            "a prepared call has another status");
    require(status != TC_OK || std::equal(plain.begin(), plain.end(), prepared_once.begin()),
            "a prepared call reads other numbers");
    require(tc_dequantize_rows(prepared, nullptr, first, rows - first + 1, nullptr) != TC_OK, "rows beyond the weight");
    const std::size_t all_codes = bytes_of(tensor.codes.dtype, tensor.codes.shape, tensor.codes.rank);
    if (rows != 0 && all_codes % static_cast<std::size_t>(rows) == 0) {
      const std::size_t row_codes = all_codes / static_cast<std::size_t>(rows);
      const std::size_t codes = row_codes * static_cast<std::size_t>(some);
      const std::byte* const at =
          static_cast<const std::byte*>(tensor.codes.data) + row_codes * static_cast<std::size_t>(first);
      const std::byte* const copy = memory.copy(at, codes, codes);
      const tc_status alone = tc_dequantize_rows(prepared, copy, first, some, elsewhere.data());
      require(alone == status || (!has_rows && alone == TC_INVALID_ARGUMENT), "codes elsewhere have another status");
      require(alone != TC_OK || std::equal(plain.begin(), plain.end(), elsewhere.begin()),
              "codes elsewhere are other numbers");
    }
  } else {
    require(status != TC_OK || some == 0, "what is read is not prepared");
  }
  tc_prepared_dequantize_free(prepared);
}

void check_quantized(Choices& choices) {
  Memory memory;
  const Weight weight = any_weight(choices, memory);
  const tc_array array = weight.array();
  tc_quantized_layout layout = TC_QUANTIZED_LAYOUT_INIT;
  const tc_status sizes =
      tc_quantized_sizes(weight.scheme.c_str(), weight.shape.data(), weight.shape.size(), &weight.options, &layout);
  Quantized quantized;
  if (tc_quantize(&array, weight.scheme.c_str(), &weight.options, &quantized.it) != TC_OK) {
    require(quantized.it == nullptr, "a result beside an error");
    return;
  }
  tc_quantized_parts parts = TC_QUANTIZED_PARTS_INIT;
  tc_block_tensor tensor = TC_BLOCK_TENSOR_INIT;
  require(tc_quantized_get(quantized.it, &parts) == TC_OK && tc_quantized_block_tensor(quantized.it, &tensor) == TC_OK,
          tc_last_error());
  const auto bytes = [](const tc_array& of) { return of.data == nullptr ? 0 : bytes_of(of.dtype, of.shape, of.rank); };
  if (sizes == TC_OK) {
    require(bytes(parts.codes) == layout.codes_bytes && bytes(parts.scales) == layout.scales_bytes &&
                bytes(parts.zero_points) == layout.zero_points_bytes && parts.codes.dtype == layout.codes_dtype &&
                (weight.options.maximum == nullptr || parts.has_global_scale == layout.has_global_scale),
            "other sizes than were named");
    require(layout.codes_row_bytes * static_cast<std::size_t>(layout.rows) == layout.codes_bytes,
            "rows of other sizes than the codes");
    require(std::strcmp(parts.spelling, layout.spelling) == 0 && tensor.block_columns == layout.block_columns &&
                parts.global_is_divisor == layout.global_is_divisor,
            "another layout than was named");
    if (layout.codes_bytes != 0) check_rows(choices, memory, weight, layout, parts);
  }
  check_read(choices, memory, tensor, sizes == TC_OK);
  for (std::uint64_t changes = 1 + choices.below(3); changes > 0; --changes) change(choices, memory, tensor);
  for (const tc_array& part : {tensor.codes, tensor.scales, tensor.global_scale, tensor.zero_points, tensor.biases,
                               tensor.group_index, tensor.table}) {
    if (!is_whole(part)) return;  // C takes buffers to be as long as their shapes say
  }
  check_read(choices, memory, tensor, false);
}

// nf4 and fp4, which are read alone.
void check_table(Choices& choices) {
  Memory memory;
  const std::int64_t shape[2] = {static_cast<std::int64_t>(1 + choices.below(12)),
                                 static_cast<std::int64_t>(1 + choices.below(choices.one_in(2) ? 12 : 600))};
  const std::int64_t count = shape[0] * shape[1];
  const std::int64_t codes_shape[2] = {(count + 1) / 2, 1}, scales_shape = (count + 63) / 64;
  tc_block_tensor tensor = TC_BLOCK_TENSOR_INIT;
  tensor.scheme = choices.one_in(2) ? "nf4" : "fp4";
  tensor.shape = shape;
  tensor.rank = 2;
  tensor.codes = {memory.take(choices, static_cast<std::size_t>(codes_shape[0])).data(), codes_shape, 2, TC_UINT8};
  tensor.scales = {memory.take(choices, 4 * static_cast<std::size_t>(scales_shape)).data(), &scales_shape, 1,
                   TC_FLOAT32};
  check_read(choices, memory, tensor, shape[1] % 2 == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  Choices choices({bytes, size});
  if (choices.one_in(8)) {
    check_table(choices);
  } else {
    check_quantized(choices);
  }
  return 0;
}
