// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "block/format/description.hpp"
#include "c_api/c_call.hpp"
#include "dtype/formatted.hpp"
#include "dtype/lower_case.hpp"
#include "dtype/try.hpp"
#include "options/quantize_options.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/cast.hpp"

struct tc_prepared_dequantize {
  std::vector<float> table;  // the caller's, as float32
  tensorcast::PreparedDequantize rows;
  tensorcast::BlockCoding coding;
  std::uint64_t columns = 0;
  std::vector<std::byte> codes = {};  // of rows whose first code is behind where the reader begins
};

namespace {

using namespace tensorcast::c_api;
using tensorcast::BlockFormat;
using tensorcast::BlockTensor;
using tensorcast::DType;
using tensorcast::formatted;
using tensorcast::Result;
using tensorcast::TensorView;

// Zero means the usual size, and -1 all.
std::int64_t block_length(std::int64_t given, std::int64_t usual) {
  return given == 0 ? usual : given == -1 ? 0 : given;
}

// The inverse.
std::int64_t c_length(std::int64_t length) { return length == 0 ? -1 : length; }

struct ReadTensor {
  BlockTensor tensor;
  std::vector<float> table;  // the memory of tensor.table, if the caller gave one
};

Result<std::vector<float>> read_table(const tc_array& array) {
  const TensorView view = TRY(view_of(array));
  std::vector<float> numbers;
  if (view.dtype == DType::undefined) return numbers;
  numbers.resize(*element_count(view.shape));
  TRY(cast(view, {DType::float32, view.shape, std::as_writable_bytes(std::span(numbers))}));
  return numbers;
}

// Reports whether layouts of a scheme disagree on what a global scale is.
bool has_two_globals(std::string_view scheme) {
  bool has_factor = false, has_divisor = false;
  for (const BlockFormat& format : tensorcast::block_formats()) {
    if (!tensorcast::is_same_name(format.scheme, scheme)) continue;
    has_factor = has_factor || format.coding.global == tensorcast::GlobalScale::factor;
    has_divisor = has_divisor || format.coding.global == tensorcast::GlobalScale::divisor;
  }
  return has_factor && has_divisor;
}

Result<const BlockFormat*> format_of(const tc_block_tensor& given) {
  if (given.scheme == nullptr) return invalid("the scheme is null");
  const BlockFormat* format =
      tensorcast::find_block_format(given.scheme, given.spelling == nullptr ? "" : given.spelling);
  if (format == nullptr) {
    const std::string spelled = given.spelling == nullptr ? "" : formatted(" in the layout \"{}\"", given.spelling);
    return invalid(formatted("no block format \"{}\"{}", given.scheme, spelled));
  }
  if (given.spelling == nullptr && given.global_scale.data != nullptr && has_two_globals(given.scheme)) {
    return invalid(
        formatted("the global scale of {} is a factor in one layout and a divisor in another", format->scheme),
        "set `spelling`: modelopt (a factor), compressed-tensors (a divisor); or fill the tensor with "
        "tc_quantized_block_tensor()");
  }
  return format;
}

Result<ReadTensor> read_tensor(const tc_block_tensor& given) {
  const BlockFormat* const format = TRY(format_of(given));
  if (given.rank > most_dimensions) return invalid("more than 1024 dimensions");
  if (given.rank != 0 && given.shape == nullptr) return invalid("the shape is null");
  ReadTensor read{.tensor = {.coding = format->coding,
                             .shape = tensorcast::Shape(given.shape, given.rank),
                             .block_rows = block_length(given.block_rows, format->block_rows),
                             .block_columns = block_length(given.block_columns, format->block_columns)},
                  .table = {}};
  BlockTensor& tensor = read.tensor;
  if (given.is_plain != 0) {
    tensor.coding.swizzled = false;
    if (tensor.coding.packing == tensorcast::BlockPacking::high_nibble_first) {
      tensor.coding.packing = tensorcast::BlockPacking::stream;
    }
  }
  struct Field {
    const tc_array& from;
    TensorView& to;
  };
  for (const Field& field :
       {Field{given.codes, tensor.codes}, Field{given.scales, tensor.scales},
        Field{given.global_scale, tensor.global_scale}, Field{given.zero_points, tensor.zero_points},
        Field{given.biases, tensor.biases}, Field{given.group_index, tensor.group_index}}) {
    field.to = TRY(view_of(field.from));
  }
  if (tensor.codes.dtype == DType::undefined && given.codes.dtype != TC_UNDEFINED) {
    static constexpr std::byte nowhere{};  // each call of a prepared one may have codes of its own
    tc_array codes = given.codes;
    codes.data = &nowhere;
    tensor.codes = TRY(view_of(codes));
    tensor.codes.bytes = {};
  }
  read.table = TRY(read_table(given.table));
  tensor.table = read.table.empty() ? format->table : read.table;
  return read;
}

// Sets an option from its field, in which 0 is the default.
template <class Option>
Result<void> take(const tc_quantize_options& given, const Option& option, tensorcast::QuantizeOptions& made) {
  using Value = typename Option::Type;
  if constexpr (Option::is_in_c) {
    const auto field = given.*option.c_member;
    Value& value = made.*option.member;
    if constexpr (std::is_pointer_v<decltype(field)>) {
      if (field != nullptr) value = field;
    } else if constexpr (std::is_same_v<Value, bool>) {
      if (field != 0) value = !option.usual();
    } else if constexpr (Option::is_choice && !std::is_same_v<Value, DType>) {
      if (!option.c_is_truth && (field < 0 || field > option.last())) {
        return invalid(tensorcast::formatted("{} is 0 or {}", option.name, option.last()));
      }
      value = static_cast<Value>(option.c_is_truth ? field != 0 : field);
    } else {
      value = static_cast<Value>(field);
    }
  }
  return {};
}

Result<tensorcast::QuantizeOptions> quantize_options(const tc_quantize_options& given, bool has_columns) {
  tensorcast::QuantizeOptions made;
  Result<void> taken;
  tensorcast::options::all_of(tensorcast::options::quantize_options, [&](const auto& option) {
    taken = take(given, option, made);
    return taken.ok();
  });
  if (!taken) return std::move(taken).error();
  if (given.importance == nullptr && given.importance_count != 0) return invalid("the importance is null");
  if (given.importance != nullptr && given.importance_count == 0 && has_columns) {
    return invalid("the importance has no numbers", "set `importance_count` to the weight's columns");
  }
  if (given.importance != nullptr) made.importance = {given.importance, given.importance_count};
  if (given.maximum != nullptr) made.maximum = *given.maximum;
  return made;
}

// A request to quantize.
struct Quantization {
  tc_quantize_options given = {};
  const BlockFormat* format = nullptr;  // of GGUF; null: as the scheme
  tensorcast::QuantizeOptions options = {};
};

Result<Quantization> read_quantization(const char* scheme, const tensorcast::Shape& shape,
                                       const tc_quantize_options* options) {
  if (scheme == nullptr) return invalid("the scheme is null");
  Quantization read;
  if (options != nullptr) read.given = TRY(read_struct(tc_quantize_options{}, options));
  if (read.given.to_gguf != 0) read.format = tensorcast::find_block_format(scheme, "gguf");
  if (read.given.to_gguf != 0 && read.format == nullptr) return invalid("GGUF has no such scheme");
  read.options = TRY(quantize_options(read.given, shape.empty() || shape.back() != 0));
  return read;
}

// The bytes that the rows' prepared call reads, of codes that begin with the first row's.
Result<std::span<const std::byte>> codes_of_rows(tc_prepared_dequantize& prepared, const void* codes,
                                                 std::int64_t first, std::int64_t rows) {
  const tensorcast::CodeRange range = TRY(prepared.rows.code_range(first, rows));
  if (rows == 0) return std::span<const std::byte>{};
  if (tensorcast::block::has_whole_matrices(prepared.coding)) {
    return invalid("codes of this layout are in whole matrices, not in rows that could be elsewhere",
                   "give NULL, which reads the codes of the tensor");
  }
  const std::span given(static_cast<const std::byte*>(codes), static_cast<std::size_t>(range.end - range.begin));
  if (prepared.coding.packing != tensorcast::BlockPacking::flat) return given;
  const std::uint64_t code = static_cast<std::uint64_t>(first) * prepared.columns;
  if (code % 2 != 0) {
    return invalid(formatted("row {} begins within a byte of the codes", first),
                   "give the codes of the row before, too");
  }
  const auto before = static_cast<std::size_t>(code / 2 - range.begin);
  if (before == 0) return given;
  prepared.codes.resize(given.size());
  std::memcpy(prepared.codes.data() + before, given.data(), given.size() - before);
  return std::span<const std::byte>(prepared.codes);
}

tc_array array_of(DType dtype, const tensorcast::Shape& shape, const void* data) {
  return {data, shape.empty() ? nullptr : shape.begin(), shape.size(), static_cast<tc_dtype>(dtype)};
}

}  // namespace

struct tc_quantized {
  tensorcast::QuantizedTensor tensor;
  std::string recipe, scheme, spelling;
};

extern "C" {

tc_status tc_quantize(const tc_array* weight, const char* scheme, const tc_quantize_options* options,
                      tc_quantized** quantized) {
  return run([&]() -> Result<void> {
    if (weight == nullptr || scheme == nullptr || quantized == nullptr) return invalid("a pointer is null");
    const TensorView view = TRY(view_of(*weight));
    if (weight->data == nullptr && view.dtype == DType::undefined) return invalid("a buffer is null");
    const Quantization request = TRY(read_quantization(scheme, view.shape, options));
    const BlockFormat* const format = request.format;
    const tensorcast::Execution execution{.threads = request.given.threads};
    tensorcast::QuantizedTensor made =
        TRY(format == nullptr ? tensorcast::quantize(view, scheme, request.options, execution)
                              : tensorcast::quantize(view, *format, request.options, execution));
    // The views of the table of recipes do not end with a zero; strings of C do.
    *quantized = new tc_quantized{std::move(made), std::string(made.recipe->recipe), std::string(made.recipe->scheme),
                                  std::string(format == nullptr ? made.recipe->spelling : format->spelling)};
    return {};
  });
}

void tc_quantized_free(tc_quantized* quantized) { delete quantized; }

tc_status tc_quantized_get(const tc_quantized* quantized, tc_quantized_parts* parts) {
  return run([&]() -> Result<void> {
    if (quantized == nullptr || parts == nullptr) return invalid("a pointer is null");
    const tensorcast::QuantizedTensor& tensor = quantized->tensor;
    tc_quantized_parts filled{};
    filled.recipe = quantized->recipe.c_str();
    filled.codes = array_of(tensor.codes_dtype, tensor.codes_shape, tensor.codes.data());
    if (tensor.scales_dtype != DType::undefined) {
      filled.scales = array_of(tensor.scales_dtype, tensor.scales_shape, tensor.scales.data());
    }
    if (!tensor.zero_points.empty()) {
      filled.zero_points = array_of(DType::int8, tensor.scales_shape, tensor.zero_points.data());
    }
    filled.global_scale = tensor.global_scale.value_or(0.0f);
    filled.has_global_scale = tensor.global_scale ? 1 : 0;
    filled.global_is_divisor = tensor.coding.global == tensorcast::GlobalScale::divisor ? 1 : 0;
    filled.scheme = quantized->scheme.c_str();
    filled.spelling = quantized->spelling.c_str();
    return fill_struct(parts, filled);
  });
}

tc_status tc_quantized_block_tensor(const tc_quantized* quantized, tc_block_tensor* tensor) {
  return run([&]() -> Result<void> {
    if (quantized == nullptr || tensor == nullptr) return invalid("a pointer is null");
    const BlockTensor borrowed = quantized->tensor.tensor();
    const auto array = [](const TensorView& view, const tensorcast::Shape& shape) {
      return view.dtype == DType::undefined ? tc_array{} : array_of(view.dtype, shape, view.bytes.data());
    };
    const tensorcast::QuantizedTensor& made = quantized->tensor;
    tc_block_tensor filled{};
    filled.scheme = quantized->scheme.c_str();
    filled.spelling = quantized->spelling.c_str();
    filled.shape = made.shape.data();
    filled.rank = made.shape.size();
    filled.block_rows = c_length(made.block_rows);
    filled.block_columns = c_length(made.block_columns);
    // Shapes of the tensor itself, as those of `borrowed` end with this call.
    filled.codes = array(borrowed.codes, made.codes_shape);
    filled.scales = array(borrowed.scales, made.scales_shape);
    filled.global_scale = array(borrowed.global_scale, {});
    // A recipe without the scale that its layout has: all are multiplied by 1.
    const BlockFormat* const format = tensorcast::find_block_format(quantized->scheme, quantized->spelling);
    if (!made.global_scale && format != nullptr && format->coding.global != tensorcast::GlobalScale::none) {
      static constexpr float one = 1.0f;
      filled.global_scale = array_of(DType::float32, {}, &one);
    }
    filled.zero_points = array(borrowed.zero_points, made.scales_shape);
    filled.is_plain = 1;
    return fill_struct(tensor, filled);
  });
}

tc_status tc_dequantize(const tc_block_tensor* tensor, int64_t first, int64_t rows, void* dst, tc_dtype to,
                        const tc_cast_options* options) {
  return run([&]() -> Result<void> {
    if (tensor == nullptr) return invalid("the tensor is null");
    const tc_block_tensor given = TRY(read_struct(tc_block_tensor{}, tensor));
    const ReadTensor read = TRY(read_tensor(given));
    const tc_cast_options chosen = TRY(read_placed_options(options));
    const tensorcast::Shape shape{rows, read.tensor.shape.empty() ? 1 : read.tensor.shape.back()};
    const std::size_t count = TRY(element_count(shape));
    if (dst == nullptr && count != 0) return invalid("a buffer is null");
    const auto target = static_cast<DType>(to);
    CallersPool pool(chosen);
    return tensorcast::dequantize(
        read.tensor, first, {target, shape, {static_cast<std::byte*>(dst), tensorcast::storage_bytes(target, count)}},
        options_of(chosen), nullptr, pool.execution());
  });
}

tc_status tc_prepare_dequantize(const tc_block_tensor* tensor, tc_dtype to, const tc_cast_options* options,
                                tc_prepared_dequantize** prepared) {
  return run([&]() -> Result<void> {
    if (tensor == nullptr || prepared == nullptr) return invalid("a pointer is null");
    const tc_block_tensor given = TRY(read_struct(tc_block_tensor{}, tensor));
    ReadTensor read = TRY(read_tensor(given));
    const tc_cast_options chosen = TRY(read_options(options));
    tensorcast::PreparedDequantize made =
        TRY(tensorcast::prepare_dequantize(read.tensor, static_cast<DType>(to), options_of(chosen)));
    const tensorcast::Shape& shape = read.tensor.shape;
    *prepared = new tc_prepared_dequantize{.table = std::move(read.table),
                                           .rows = std::move(made),
                                           .coding = read.tensor.coding,
                                           .columns = static_cast<std::uint64_t>(shape.empty() ? 1 : shape.back())};
    return {};
  });
}

tc_status tc_dequantize_rows(tc_prepared_dequantize* prepared, const void* codes, int64_t first, int64_t rows,
                             void* dst) {
  return run([&]() -> Result<void> {
    if (prepared == nullptr) return invalid("a pointer is null");
    if (codes == nullptr) return prepared->rows(first, rows, dst);
    const std::span<const std::byte> given = TRY(codes_of_rows(*prepared, codes, first, rows));
    return prepared->rows(given, first, rows, dst);
  });
}

void tc_prepared_dequantize_free(tc_prepared_dequantize* prepared) { delete prepared; }

tc_status tc_quantized_sizes(const char* scheme, const int64_t* shape, size_t rank, const tc_quantize_options* options,
                             tc_quantized_layout* layout) {
  return run([&]() -> Result<void> {
    if (layout == nullptr || (shape == nullptr && rank != 0)) return invalid("a pointer is null");
    if (rank > most_dimensions) return invalid("more than 1024 dimensions");
    const tensorcast::Shape of_weight(shape, rank);
    const Quantization request = TRY(read_quantization(scheme, of_weight, options));
    const tensorcast::QuantizedSizes sizes =
        TRY(request.format == nullptr ? tensorcast::quantized_sizes(scheme, of_weight, request.options)
                                      : tensorcast::quantized_sizes(*request.format, of_weight, request.options));
    tc_quantized_layout filled{};
    filled.rows = sizes.rows;
    filled.codes_bytes = sizes.codes;
    filled.codes_row_bytes = sizes.row_codes;
    filled.scales_bytes = sizes.scales;
    filled.zero_points_bytes = sizes.zero_points;
    filled.block_rows = sizes.block_rows;
    filled.codes_dtype = static_cast<tc_dtype>(sizes.codes_dtype);
    filled.scales_dtype = static_cast<tc_dtype>(sizes.scales_dtype);
    filled.global_scale = sizes.global_scale.value_or(0.0f);
    filled.has_global_scale = sizes.global_scale ? 1 : 0;
    const BlockFormat* const format = request.format != nullptr
                                          ? request.format
                                          : tensorcast::find_block_format(sizes.recipe->scheme, sizes.recipe->spelling);
    const bool lacks_global = sizes.layout.coding.global == tensorcast::GlobalScale::none;
    if (lacks_global && format->coding.global != tensorcast::GlobalScale::none) filled.global_scale = 1.0f;
    filled.spelling = format->spelling.data();  // a literal
    filled.block_columns = c_length(sizes.layout.block_columns);
    filled.global_is_divisor = sizes.layout.coding.global == tensorcast::GlobalScale::divisor ? 1 : 0;
    return fill_struct(layout, filled);
  });
}

tc_status tc_quantize_rows(const char* scheme, const tc_array* rows, int64_t first_row, const tc_quantized_buffers* out,
                           const tc_quantize_options* options) {
  return run([&]() -> Result<void> {
    if (rows == nullptr || out == nullptr) return invalid("a pointer is null");
    const tc_quantized_buffers given = TRY(read_struct(tc_quantized_buffers{}, out));
    const TensorView view = TRY(view_of(*rows));
    if (rows->data == nullptr && view.dtype == DType::undefined) return invalid("a buffer is null");
    const Quantization request = TRY(read_quantization(scheme, view.shape, options));
    const tensorcast::QuantizedBuffers buffers{.codes = {static_cast<std::byte*>(given.codes), given.codes_bytes},
                                               .scales = {static_cast<std::byte*>(given.scales), given.scales_bytes},
                                               .zero_points = {given.zero_points, given.zero_points_bytes}};
    return request.format == nullptr
               ? tensorcast::quantize_rows(scheme, view, first_row, buffers, request.options)
               : tensorcast::quantize_rows(*request.format, view, first_row, buffers, request.options);
  });
}

}  // extern "C"
