// SPDX-License-Identifier: Apache-2.0
// Descriptions of weights in blocks, right ones and changed ones, over buffers of exactly their size, in C++ and in C:
// numbers that are the same in any parts, or an error.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fuzzing.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast.hpp"

namespace {

namespace tc = tensorcast;
using tc::fuzzing::any_length;
using tc::fuzzing::Memory;
using tc::fuzzing::require;
using tc::testing::Choices;

constexpr std::size_t most_bytes = std::size_t{1} << 20;

tc::TensorView view_of(Choices& choices, Memory& memory, tc::DType dtype, const tc::Shape& shape) {
  const tc::Result<std::size_t> count = tc::element_count(shape);
  const std::size_t bytes = count ? tc::storage_bytes(dtype, *count) : 0;
  return {dtype, shape, memory.take(choices, bytes < most_bytes ? bytes : 0)};
}

// A weight, as numbers of matrices, rows and columns.
struct Sizes {
  std::int64_t matrices = 1, rows = 1, columns = 1;
};

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

tc::Shape shape_of(Choices& choices, std::int64_t matrices, std::int64_t rows, std::int64_t columns) {
  switch (choices.below(4)) {
    case 0:
      return {matrices * rows * columns};
    case 1:
      return {matrices, rows, columns};
    default:
      return matrices == 1 ? tc::Shape{rows, columns} : tc::Shape{matrices, rows, columns};
  }
}

tc::TensorView codes_of(Choices& choices, Memory& memory, const tc::BlockCoding& coding, Sizes sizes) {
  if (coding.transposed || coding.packing == tc::BlockPacking::words_down || coding.packing == tc::BlockPacking::awq) {
    std::swap(sizes.rows, sizes.columns);
  }
  tc::DType dtype = tc::DType::uint8;
  std::int64_t rows = sizes.rows, columns = ceiling(sizes.columns * coding.bits, 8);
  switch (coding.packing) {
    case tc::BlockPacking::words_down:
      dtype = tc::DType::int32;
      rows = ceiling(sizes.rows * coding.bits, 32);
      columns = sizes.columns;
      break;
    case tc::BlockPacking::awq:
      dtype = tc::DType::int32;
      columns = ceiling(sizes.columns, 8);
      break;
    case tc::BlockPacking::row_pairs:
      rows = ceiling(sizes.rows, 2);
      columns = sizes.columns;
      break;
    case tc::BlockPacking::flat:
      return view_of(choices, memory, dtype, {ceiling(sizes.matrices * sizes.rows * sizes.columns, 2), 1});
    case tc::BlockPacking::gguf: {
      const tc::GgufBlockSize size = tc::block_size(coding.gguf);
      columns = size.elements == 0 ? 0 : sizes.columns / size.elements * size.bytes;
      break;
    }
    default:
      break;
  }
  return view_of(choices, memory, dtype, {sizes.matrices, rows, columns});
}

struct Described {
  tc::BlockTensor tensor;
  const tc::BlockFormat* format = nullptr;
  Sizes sizes;
};

Described right_tensor(Choices& choices, Memory& memory) {
  const auto formats = tc::block_formats();
  Described made;
  made.format = &formats[choices.below(formats.size())];
  const tc::BlockCoding& coding = made.format->coding;
  const std::int64_t unit = choices.one_in(4) ? 1 : coding.gguf != tc::GgufBlock::none ? 256 : 32;
  made.sizes = {static_cast<std::int64_t>(1 + choices.below(3)), static_cast<std::int64_t>(1 + choices.below(70)),
                static_cast<std::int64_t>(1 + choices.below(unit == 1 ? 300 : 6)) * unit};
  tc::BlockTensor& tensor = made.tensor;
  tensor.coding = coding;
  tensor.shape = {made.sizes.matrices, made.sizes.rows, made.sizes.columns};
  tensor.block_rows = choices.one_in(3) ? static_cast<std::int64_t>(choices.below(40)) : made.format->block_rows;
  tensor.block_columns = choices.one_in(3) ? static_cast<std::int64_t>(choices.below(70)) : made.format->block_columns;
  tensor.codes = codes_of(choices, memory, coding, made.sizes);
  if (coding.element == tc::DType::undefined) {
    tensor.table = made.format->scheme == "fp4" ? tc::fp4_table() : tc::nf4_table();
  }
  Sizes codes = made.sizes;
  if (coding.transposed || coding.packing == tc::BlockPacking::words_down || coding.packing == tc::BlockPacking::awq) {
    std::swap(codes.rows, codes.columns);
  }
  if (coding.packing == tc::BlockPacking::flat) codes = {1, 1, codes.matrices * codes.rows * codes.columns};
  std::int64_t rows = tensor.block_rows == 0 ? 1 : ceiling(codes.rows, tensor.block_rows);
  std::int64_t columns = tensor.block_columns == 0 ? 1 : ceiling(codes.columns, tensor.block_columns);
  const auto grid = [&](tc::DType dtype) {
    return view_of(choices, memory, dtype, shape_of(choices, codes.matrices, rows, columns));
  };
  const std::int64_t grid_rows = rows, grid_columns = columns;
  if (coding.swizzled) rows = ceiling(rows, 128) * 128, columns = ceiling(columns, 4) * 4;
  tensor.scales = grid(
      coding.scale != tc::DType::undefined
          ? coding.scale
          : choices.one_of({tc::DType::float32, tc::DType::float16, tc::DType::bfloat16, tc::DType::float8_e8m0fnu}));
  rows = grid_rows, columns = grid_columns;
  if (coding.global != tc::GlobalScale::none) {
    tensor.global_scale =
        view_of(choices, memory, tc::DType::float32, choices.one_in(2) ? tc::Shape{} : tc::Shape{codes.matrices});
  }
  if (choices.one_in(3)) {
    if (coding.bits < 8 && coding.zeros == tc::BlockPacking::words_down && choices.one_in(2)) {
      rows = ceiling(rows * coding.bits, 32);
      tensor.zero_points = grid(tc::DType::int32);
      rows = grid_rows;
    } else {
      tensor.zero_points = grid(choices.one_of({tc::DType::int8, tc::DType::uint8, tc::DType::float32}));
    }
  }
  if (choices.one_in(4)) tensor.biases = grid(choices.one_of({tc::DType::float32, tc::DType::bfloat16}));
  if (choices.one_in(5)) {
    const std::span<std::byte> index = memory.take(choices, static_cast<std::size_t>(codes.rows) * 4);
    for (std::int64_t i = 0; i < codes.rows; ++i) {
      const auto group = static_cast<std::int32_t>(choices.below(static_cast<std::uint64_t>(grid_rows)));
      std::memcpy(index.data() + 4 * i, &group, sizeof group);
    }
    tensor.group_index = {tc::DType::int32, {codes.rows}, index};
  }
  return made;
}

tc::Shape any_shape(Choices& choices) {
  std::vector<std::int64_t> shape(choices.below(5));
  for (std::int64_t& length : shape) {
    length = choices.one_in(8)
                 ? choices.one_of({std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 62,
                                   std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()})
                 : static_cast<std::int64_t>(choices.below(65));
  }
  return shape;
}

void change_view(Choices& choices, Memory& memory, tc::TensorView& view) {
  switch (choices.below(6)) {
    case 0:
      view = {};
      return;
    case 1:
      view.dtype = static_cast<tc::DType>(choices.below(40));
      return;
    case 2:
      view.shape = any_shape(choices);
      return;
    case 3:
      view.bytes = view.bytes.first(choices.below(view.bytes.size() + 1));
      return;
    case 4:
      view = view_of(choices, memory, choices.dtype(), any_shape(choices));
      return;
    default:
      view.bytes = {static_cast<const std::byte*>(nullptr), choices.one_in(2) ? view.bytes.size() : 0};
  }
}

int any_int(Choices& choices) {
  return choices.one_of({0, -1, 1, 3, 5, 7, 8, 9, 16, 31, 32, 33, 255, -5, std::numeric_limits<int>::max(),
                         std::numeric_limits<int>::min()});
}

void change_coding(Choices& choices, tc::BlockCoding& coding) {
  switch (choices.below(13)) {
    case 0:
      coding.element = choices.one_in(2) ? choices.dtype() : static_cast<tc::DType>(choices.below(40));
      return;
    case 1:
      coding.bits = any_int(choices);
      return;
    case 2:
      coding.packing = static_cast<tc::BlockPacking>(choices.below(9));
      return;
    case 3:
      coding.offset = any_int(choices);
      return;
    case 4:
      coding.zero_added = any_int(choices);
      return;
    case 5:
      coding.zeros = static_cast<tc::BlockPacking>(choices.below(9));
      return;
    case 6:
      coding.positive_zero = !coding.positive_zero;
      return;
    case 7:
      coding.scale = choices.one_in(2) ? choices.dtype() : static_cast<tc::DType>(choices.below(40));
      return;
    case 8:
      coding.global = static_cast<tc::GlobalScale>(choices.below(5));
      return;
    case 9:
      coding.swizzled = !coding.swizzled;
      return;
    case 10:
      coding.factor =
          choices.one_of({0.0f, 2.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()});
      return;
    case 11:
      coding.transposed = !coding.transposed;
      return;
    default:
      coding.gguf = static_cast<tc::GgufBlock>(choices.below(30));
  }
}

void change(Choices& choices, Memory& memory, tc::BlockTensor& tensor) {
  switch (choices.below(12)) {
    case 0:
      tensor.shape = any_shape(choices);
      return;
    case 1:
      tensor.block_rows = any_length(choices);
      return;
    case 2:
      tensor.block_columns = any_length(choices);
      return;
    case 3:
      return change_view(choices, memory, tensor.codes);
    case 4:
      return change_view(choices, memory, tensor.scales);
    case 5:
      return change_view(choices, memory, tensor.global_scale);
    case 6:
      return change_view(choices, memory, tensor.zero_points);
    case 7:
      return change_view(choices, memory, tensor.biases);
    case 8:
      return change_view(choices, memory, tensor.group_index);
    case 9:
      tensor.table = choices.one_in(2) ? std::span<const float>() : tc::nf4_table().first(choices.below(17));
      return;
    default:
      return change_coding(choices, tensor.coding);
  }
}

// Rows [first, first + count), or nothing.
std::optional<std::vector<std::byte>> rows_of(const tc::BlockTensor& tensor, std::int64_t first, std::int64_t count,
                                              tc::DType to, int threads) {
  const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const tc::Shape shape = {count, columns};
  const tc::Result<std::size_t> elements = tc::element_count(shape);
  if (!elements || *elements > most_bytes || tc::bit_width(to) < 8) return std::nullopt;
  const std::size_t bytes = tc::storage_bytes(to, *elements);
  const std::unique_ptr<std::byte[]> out(new std::byte[bytes]);
  const tc::Result<void> done =
      tc::dequantize(tensor, first, {to, shape, {out.get(), bytes}}, {}, nullptr, {.threads = threads});
  if (!done) return std::nullopt;
  return std::vector<std::byte>(out.get(), out.get() + bytes);
}

// Whether as many elements of `to` are the same, NaN apart: of a product of two, processors keep the first, and
// compilers choose which that is.
bool are_same(std::span<const std::byte> a, std::span<const std::byte> b, tc::DType to) {
  if (std::ranges::equal(a, b)) return true;
  const auto numbers_of = [&](std::span<const std::byte> bytes) {
    const tc::Shape shape = {static_cast<std::int64_t>(bytes.size() * 8 / static_cast<std::size_t>(tc::bit_width(to)))};
    std::vector<double> numbers(static_cast<std::size_t>(shape[0]));
    require(tc::cast({to, shape, bytes}, {tc::DType::float64, shape, std::as_writable_bytes(std::span(numbers))}).ok());
    return numbers;
  };
  const auto same = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y) || (std::isnan(x) && std::isnan(y));
  };
  return std::ranges::equal(numbers_of(a), numbers_of(b), same);
}

tc_array array_of(const tc::TensorView& view) {
  return {view.bytes.empty() ? nullptr : view.bytes.data(), view.shape.data(), view.shape.size(),
          static_cast<tc_dtype>(view.dtype)};
}

bool is_whole(const tc::TensorView& view) {
  const tc::Result<std::size_t> count = tc::element_count(view.shape);
  return count && tc::storage_bytes(view.dtype, *count) == view.bytes.size();
}

// C has the coding of a format alone, and takes buffers to be as long as their shapes say.
void check_in_c(const Described& described, tc::DType to) {
  const tc::BlockTensor& tensor = described.tensor;
  if (tensor.coding != described.format->coding) return;
  for (const tc::TensorView* view : {&tensor.codes, &tensor.scales, &tensor.global_scale, &tensor.zero_points,
                                     &tensor.biases, &tensor.group_index}) {
    if (!is_whole(*view)) return;
  }
  tc_block_tensor in_c = TC_BLOCK_TENSOR_INIT;
  in_c.scheme = described.format->scheme.data();
  in_c.spelling = described.format->spelling.data();
  in_c.shape = tensor.shape.data();
  in_c.rank = tensor.shape.size();
  in_c.block_rows = tensor.block_rows == 0 ? -1 : tensor.block_rows;
  in_c.block_columns = tensor.block_columns == 0 ? -1 : tensor.block_columns;
  in_c.codes = array_of(tensor.codes);
  in_c.scales = array_of(tensor.scales);
  in_c.global_scale = array_of(tensor.global_scale);
  in_c.zero_points = array_of(tensor.zero_points);
  in_c.biases = array_of(tensor.biases);
  in_c.group_index = array_of(tensor.group_index);
  const std::int64_t table_size = static_cast<std::int64_t>(tensor.table.size());
  if (table_size != 0) in_c.table = {tensor.table.data(), &table_size, 1, TC_FLOAT32};
  const std::int64_t rows = described.sizes.matrices * described.sizes.rows;
  const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const tc::Result<std::size_t> elements = tc::element_count(tc::Shape{rows, columns});
  if (!elements || *elements > most_bytes) return;
  const std::size_t bytes = tc::storage_bytes(to, *elements);
  const std::unique_ptr<std::byte[]> out(new std::byte[bytes]);
  const tc_status status = tc_dequantize(&in_c, 0, rows, out.get(), static_cast<tc_dtype>(to), nullptr);
  const auto in_cpp = rows_of(tensor, 0, rows, to, 0);
  if (!in_cpp) return;
  require(status == TC_OK && std::equal(in_cpp->begin(), in_cpp->end(), out.get()), "C differs from C++");
}

void check_described(Choices& choices) {
  Memory memory;
  Described described = right_tensor(choices, memory);
  const tc::DType to = choices.one_of(
      {tc::DType::float32, tc::DType::bfloat16, tc::DType::float16, tc::DType::float64, tc::DType::float8_e4m3fn});
  for (std::uint64_t changes = choices.below(4); changes > 0; --changes) change(choices, memory, described.tensor);
  const tc::BlockTensor& tensor = described.tensor;
  (void)tc::weight_shape(tensor.coding, tensor.codes.dtype, tensor.codes.shape, tensor.scales.shape).ok();
  (void)tc::code_range(tensor, any_length(choices), any_length(choices)).ok();
  (void)rows_of(tensor, any_length(choices), any_length(choices), choices.dtype(), 0);
  check_in_c(described, to);

  const std::int64_t rows = described.sizes.matrices * described.sizes.rows;
  const auto whole = rows_of(tensor, 0, rows, to, 0);
  if (!whole || whole->empty()) return;
  require(rows_of(tensor, 0, rows, to, 1) == whole, "threads change numbers");
  // A part of the rows from the bytes of their codes alone.
  const auto first = static_cast<std::int64_t>(choices.below(static_cast<std::uint64_t>(rows)));
  const auto count = static_cast<std::int64_t>(choices.below(static_cast<std::uint64_t>(rows - first) + 1));
  const tc::Result<tc::CodeRange> range = tc::code_range(tensor, first, count);
  require(range.ok(), "no range of codes of rows that are decoded");
  tc::BlockTensor part = tensor;
  const std::size_t bytes = range->end - range->begin;
  const std::unique_ptr<std::byte[]> copy(new std::byte[bytes]);
  std::copy_n(tensor.codes.bytes.data() + range->begin, bytes, copy.get());
  part.codes.bytes = {copy.get(), bytes};
  const auto some = rows_of(part, first, count, to, 0);
  require(some.has_value(), "rows that are decoded with others are not decoded alone");
  const std::size_t row_bytes = whole->size() / static_cast<std::size_t>(rows);
  const auto same_rows = std::span(*whole).subspan(static_cast<std::size_t>(first) * row_bytes, some->size());
  require(are_same(*some, same_rows, to), "rows alone have other numbers");
}

// Rows in buffers without a spare byte, one after the other where no rows share scales: the bytes of the whole weight,
// unless that is zero, which no row tells.
void check_rows(const tc::TensorView& weight, const tc::BlockFormat& format, tc::QuantizeOptions options) {
  options.maximum = 3.0f;
  if (options.compute_dtype == tc::DType::undefined)
    options.compute_dtype = weight.dtype;  // global scales differ by it
  const tc::Result<tc::QuantizedTensor> whole = tc::quantize(weight, format, options);
  const tc::Result<tc::QuantizedSizes> sizes = tc::quantized_sizes(format, weight.shape, options);
  if (!whole || !sizes || weight.bytes.empty()) return;
  const std::unique_ptr<std::byte[]> codes(new std::byte[sizes->codes]), scales(new std::byte[sizes->scales]);
  const std::unique_ptr<std::int8_t[]> zeros(new std::int8_t[sizes->zero_points]);
  const tc::QuantizedBuffers out{.codes = {codes.get(), sizes->codes},
                                 .scales = {scales.get(), sizes->scales},
                                 .zero_points = {zeros.get(), sizes->zero_points}};
  const bool is_by_rows = sizes->block_rows == 1 && options.importance.empty();
  const std::int64_t columns = weight.shape.empty() ? 1 : weight.shape.back();
  const std::int64_t rows = is_by_rows ? 1 : sizes->rows;
  if (!is_by_rows && weight.shape.size() > 2) return;  // rows of several matrices share no scales
  const std::size_t bytes = weight.bytes.size() / static_cast<std::size_t>(sizes->rows / rows);
  for (std::int64_t row = 0; row < sizes->rows; row += rows) {
    const auto part = weight.bytes.subspan(static_cast<std::size_t>(row) * bytes, bytes);
    const tc::Result<void> done = tc::quantize_rows(format, {weight.dtype, {rows, columns}, part}, row, out, options);
    require(done.ok(), "rows that are refused, of a weight that is not");
  }
  require(std::equal(whole->codes.begin(), whole->codes.end(), codes.get()), "rows have other codes than the weight");
  require(whole->global_scale == sizes->global_scale, "rows have another global scale than the weight");
  const bool is_known = !options.recipe.empty();  // else a weight of zeros has scale 1
  require(!is_known || std::equal(whole->scales.begin(), whole->scales.end(), scales.get()), "rows have other scales");
  require(!is_known || rows_of(sizes->tensor(out), 0, sizes->rows, tc::DType::float32, 1) ==
                           rows_of(whole->tensor(), 0, sizes->rows, tc::DType::float32, 1),
          "rows are read as other numbers than the weight");
}

// One row after the other, of codes that are copied to a buffer of their size.
void check_prepared(const tc::QuantizedTensor& made, std::int64_t rows) {
  const tc::BlockTensor tensor = made.tensor();
  tc::Result<tc::PreparedDequantize> prepared = tc::prepare_dequantize(tensor, tc::DType::float16);
  const std::size_t row_bytes = static_cast<std::size_t>(made.shape.empty() ? 1 : made.shape.back()) * 2;
  for (std::int64_t row = 0; prepared && row < rows; ++row) {
    const std::unique_ptr<std::byte[]> out(new std::byte[row_bytes]);
    const tc::CodeRange range = prepared->code_range(row, 1).value();
    const std::vector<std::byte> codes(made.codes.begin() + static_cast<std::ptrdiff_t>(range.begin),
                                       made.codes.begin() + static_cast<std::ptrdiff_t>(range.end));
    require((*prepared)(codes, row, 1, out.get()).ok(), "a row that is not read");
    const auto expected = rows_of(tensor, row, 1, tc::DType::float16, 1);
    require(expected && std::equal(expected->begin(), expected->end(), out.get()), "a prepared row differs");
  }
}

void check_quantized(Choices& choices) {
  Memory memory;
  const auto recipes = tc::quantize_recipes();
  const tc::QuantizeRecipe& recipe = recipes[choices.below(recipes.size())];
  const tc::DType dtype = choices.one_in(8)
                              ? choices.dtype()
                              : choices.one_of({tc::DType::float32, tc::DType::bfloat16, tc::DType::float16});
  const tc::Shape shape = choices.one_in(6) ? any_shape(choices)
                                            : tc::Shape{static_cast<std::int64_t>(1 + choices.below(40)),
                                                        static_cast<std::int64_t>((1 + choices.below(4)) * 256)};
  tc::TensorView weight = view_of(choices, memory, dtype, shape);
  if (!choices.one_in(4) && dtype == tc::DType::float32) {  // numbers of similar size
    const std::size_t count = weight.bytes.size() / 4;
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; ++i)
      numbers[i] = static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000) / 977;
    const std::span<std::byte> kept = memory.take(choices, weight.bytes.size());
    std::copy_n(reinterpret_cast<const std::byte*>(numbers.data()), count * 4, kept.data());
    weight.bytes = kept;
  }
  tc_quantize_options options = TC_QUANTIZE_OPTIONS_INIT;
  const std::string scheme(recipe.scheme), name(recipe.recipe);
  if (!choices.one_in(4)) options.recipe = name.c_str();
  if (choices.one_in(3)) options.group_size = any_length(choices);
  options.is_asymmetric = choices.one_in(4);
  options.power_of_two_scales = choices.one_in(4);
  options.allows_nonfinite = choices.one_in(2);
  options.to_gguf = recipe.spelling == "gguf" || choices.one_in(8);
  options.clip = choices.one_in(6) ? any_int(choices) : choices.one_in(3);
  options.threads = choices.one_in(8) ? any_int(choices) : 0;
  if (choices.one_in(4)) options.compute_dtype = static_cast<tc_dtype>(choices.below(30));
  const std::span<std::byte> importance = memory.take(choices, 4 * choices.below(300));
  if (choices.one_in(5)) {
    options.importance = reinterpret_cast<const float*>(importance.data());
    options.importance_count = importance.size() / 4;
  }
  const tc_array array = array_of(weight);
  tc_quantized* quantized = nullptr;
  if (tc_quantize(&array, scheme.c_str(), &options, &quantized) != TC_OK) {
    require(quantized == nullptr, "a result beside an error");
    return;
  }
  tc_block_tensor described = TC_BLOCK_TENSOR_INIT;
  require(tc_quantized_block_tensor(quantized, &described) == TC_OK, "a result without a description");
  const tc::Result<std::size_t> count = tc::element_count(shape);
  const std::int64_t columns = shape.empty() ? 1 : shape.back();
  const std::int64_t rows = columns == 0 ? 0 : static_cast<std::int64_t>(*count) / columns;
  const std::unique_ptr<float[]> in_c(new float[*count]);
  require(tc_dequantize(&described, 0, rows, in_c.get(), TC_FLOAT32, nullptr) == TC_OK, tc_last_error());
  tc_quantized_free(quantized);

  tc::QuantizeOptions in_cpp{.recipe = options.recipe == nullptr ? "" : options.recipe,
                             .group_size = options.group_size,
                             .symmetric = options.is_asymmetric == 0,
                             .power_of_two_scales = options.power_of_two_scales != 0,
                             .compute_dtype = static_cast<tc::DType>(options.compute_dtype)};
  if (options.allows_nonfinite != 0) in_cpp.nonfinite = tc::NonFiniteWeights::tool;
  in_cpp.clip = static_cast<tc::Clip>(options.clip);
  if (options.importance != nullptr) in_cpp.importance = {options.importance, options.importance_count};
  const tc::BlockFormat* const gguf = tc::find_block_format(scheme, "gguf");
  const tc::Result<tc::QuantizedTensor> made =
      options.to_gguf != 0 ? tc::quantize(weight, *gguf, in_cpp) : tc::quantize(weight, scheme, in_cpp);
  require(made.ok(), "C quantizes what C++ refuses");
  tc::BlockFormat format = options.to_gguf != 0 ? *gguf : *tc::find_block_format(scheme);
  format.coding = made->coding;  // files' are refused where they differ
  check_rows(weight, format, in_cpp);
  check_prepared(*made, rows);
  (void)tc::element_codes(*made).ok();
  const auto decoded = rows_of(made->tensor(), 0, rows, tc::DType::float32, 1);
  require(decoded.has_value(), "a result that is not decoded");
  const auto* const numbers = reinterpret_cast<const std::byte*>(in_c.get());
  const auto other = std::mismatch(decoded->begin(), decoded->end(), numbers).first - decoded->begin();
  require(other == static_cast<std::ptrdiff_t>(*count * 4),
          (scheme + " of " + name + ": C decodes another number than C++, at byte " + std::to_string(other)).c_str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  Choices choices({bytes, size});
  if (choices.one_in(3)) {
    check_quantized(choices);
  } else {
    check_described(choices);
  }
  return 0;
}
