// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/weight_quantization.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "block/code_packing.hpp"
#include "block/quantizer.hpp"
#include "dtype/errors.hpp"
#include "dtype/lower_case.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_reader.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr WeightScheme schemes[] = {
    {"nvfp4", "nvfp4", DType::float4_e2m1fn, 23},
    {"mxfp4", "mxfp4", DType::float4_e2m1fn, 24},  // with float8_e8m0fnu
    {"int4-group", "int4-group", DType::int4, 21},
    {"int8", "int8-channel", DType::int8, 10},
    {"float8", "fp8-channel", DType::float8_e4m3fn, 19},
};

std::size_t product(std::span<const std::int64_t> shape) {
  std::size_t count = 1;
  for (const std::int64_t dimension : shape) count *= static_cast<std::size_t>(dimension);
  return count;
}

bool has_transpose(const Node& node, std::string_view name) {
  const Attribute* attribute = node.attribute(name);
  return attribute != nullptr && attribute->i != 0;
}

// Of [a, b, c]: swaps the first two axes, or the last two.
enum class Swap : std::uint8_t { none, first, last };

template <class Element>
void swap_axes(Swap swap, std::size_t a, std::size_t b, std::size_t c, const Element* from, Element* to) {
  constexpr std::size_t tile = 32;
  if (swap == Swap::first) {
    for (std::size_t i = 0; i < a; ++i) {
      for (std::size_t j = 0; j < b; ++j) std::copy_n(from + (i * b + j) * c, c, to + (j * a + i) * c);
    }
    return;
  }
  for (std::size_t i = 0; i < a; ++i, from += b * c, to += b * c) {
    for (std::size_t row = 0; row < b; row += tile) {
      for (std::size_t column = 0; column < c; column += tile) {
        for (std::size_t j = row; j < std::min(row + tile, b); ++j) {
          for (std::size_t k = column; k < std::min(column + tile, c); ++k) to[k * b + j] = from[j * c + k];
        }
      }
    }
  }
}

std::vector<std::byte> swapped(Swap swap, std::size_t a, std::size_t b, std::size_t c, std::size_t width,
                               std::vector<std::byte> bytes) {
  const bool is_same = swap == Swap::none || (swap == Swap::first ? a == 1 || b == 1 : b == 1 || c == 1);
  if (is_same) return bytes;
  std::vector<std::byte> made(bytes.size());
  const auto run = [&]<class Element>(Element) {
    swap_axes(swap, a, b, c, reinterpret_cast<const Element*>(bytes.data()), reinterpret_cast<Element*>(made.data()));
  };
  if (width == 1) run(std::uint8_t{});
  if (width == 2) run(std::uint16_t{});
  if (width == 4) run(std::uint32_t{});
  return made;
}

Result<std::vector<std::byte>> read_all(const io::InputFile& file, formats::onnx::ByteRange tensor) {
  auto reader = TRY(formats::onnx::TensorProtoReader::open(file, tensor));
  const formats::TensorInfo& info = reader->tensors().front();
  std::vector<std::byte> bytes(storage_bytes(info.dtype, static_cast<std::size_t>(info.count)));
  TRY(reader->read(0, 0, bytes));
  return bytes;
}

}  // namespace

Result<WeightRecipe> parse_weight_recipe(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(':'));
  const auto* const scheme = std::ranges::find_if(
      schemes, [&](const WeightScheme& row) { return is_same_name(row.word, word) || is_same_name(row.scheme, word); });
  if (scheme == std::end(schemes)) {
    std::string known;
    for (const WeightScheme& row : schemes) known.append(known.empty() ? "" : ", ").append(row.word);
    return invalid(fmt::format("weights of a model cannot become \"{}\"", word), "schemes are " + known);
  }
  WeightRecipe made{.scheme = scheme, .recipe = std::string(text.substr(std::min(word.size() + 1, text.size())))};
  const block::Quantizer quantizer =
      TRY(block::Quantizer::make(DType::float32, {1, 1}, scheme->scheme, {.recipe = made.recipe}));
  const QuantizedTensor& layout = quantizer.layout();
  if (layout.coding.global == GlobalScale::divisor) {
    return invalid(fmt::format("{} of {} divides by the tensor's scale, and DequantizeLinear multiplies",
                               layout.recipe->recipe, word));
  }
  made.block = layout.block_columns;
  made.scales = layout.scales_dtype;
  made.has_tensor_scale = layout.coding.global == GlobalScale::factor;
  return made;
}

Quantization::Quantization(WeightRecipe recipe, Source source, std::size_t axis, bool by_axis,
                           std::shared_ptr<LastWeight> last)
    : recipe_(std::move(recipe)), source_(std::move(source)), axis_(axis), by_axis_(by_axis), last_(std::move(last)) {
  const std::span<const std::int64_t> shape(source_.shape);
  if (!by_axis_) {
    length_ = 1;
    inner_ = product(shape);
    return;
  }
  outer_ = product(shape.first(axis));
  length_ = static_cast<std::size_t>(shape[axis]);
  inner_ = product(shape.subspan(axis + 1));
  if (recipe_.block == 0) {
    scales_shape_ = {shape[axis]};
  } else {
    scales_shape_ = source_.shape;
    scales_shape_[axis] = (shape[axis] + recipe_.block - 1) / recipe_.block;
  }
}

DType Quantization::scales_dtype() const noexcept {
  return recipe_.has_float_scales() ? source_.dtype : recipe_.scales;
}

std::size_t Quantization::scales_bytes() const { return storage_bytes(scales_dtype(), product(scales_shape_)); }

Result<std::shared_ptr<const StoredWeight>> Quantization::stored() const {
  if (last_->tensor == source_.tensor.offset) return last_->stored;
  StoredWeight made = TRY(quantized());
  last_->tensor = source_.tensor.offset;
  last_->stored = std::make_shared<const StoredWeight>(std::move(made));
  return last_->stored;
}

Result<float> Quantization::tensor_scale() const {
  if (!last_->tensor_scales.contains(source_.tensor.offset)) {
    TRY(stored());
  }
  return last_->tensor_scales[source_.tensor.offset];
}

// The weight's rows are channels, or lie along the axis, as quantize() takes them; codes and scales then go back to
// the weight's own order.
Result<StoredWeight> Quantization::quantized() const {
  std::vector<std::byte> numbers = TRY(read_all(*source_.file, source_.tensor));
  const bool is_blocked = recipe_.block != 0;
  const Swap swap = is_blocked ? Swap::last : Swap::first;
  const auto width = static_cast<std::size_t>(bit_width(source_.dtype)) / 8;
  numbers = swapped(swap, outer_, length_, inner_, width, std::move(numbers));
  const std::size_t rows = is_blocked ? outer_ * inner_ : length_;
  const std::size_t columns = is_blocked ? length_ : outer_ * inner_;
  const std::int64_t shape[] = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
  const QuantizedTensor quantized =
      TRY(quantize(TensorView{source_.dtype, shape, numbers}, recipe_.scheme->scheme, {.recipe = recipe_.recipe}));
  numbers = {};

  StoredWeight made;
  std::vector<std::byte> codes = TRY(element_codes(quantized));
  if (quantized.coding.positive_zero) {  // this layout's code of -0 means +0
    for (std::byte& code : codes) code = code == std::byte{8} ? std::byte{0} : code;
  }
  codes = is_blocked ? swapped(Swap::last, outer_, inner_, length_, 1, std::move(codes))
                     : swapped(Swap::first, length_, outer_, inner_, 1, std::move(codes));
  if (bit_width(recipe_.scheme->codes) == 8) {
    made.codes = std::move(codes);
  } else {
    made.codes.resize(storage_bytes(recipe_.scheme->codes, codes.size()));
    block::pack_stream(bit_width(recipe_.scheme->codes),
                       {reinterpret_cast<const std::uint8_t*>(codes.data()), codes.size()}, made.codes.data());
  }

  const std::size_t stored_width = recipe_.has_float_scales() ? sizeof(float) : 1;
  made.scales = quantized.scales;
  const std::size_t count = made.scales.size() / stored_width;
  if (is_blocked && rows != 0) {
    made.scales = swapped(Swap::last, outer_, inner_, count / rows, stored_width, std::move(made.scales));
  }
  if (recipe_.has_float_scales() && source_.dtype != DType::float32) {
    const std::int64_t scales_shape[] = {static_cast<std::int64_t>(count)};
    std::vector<std::byte> narrow(storage_bytes(source_.dtype, count));
    CastReport report;
    TRY(cast(TensorView{DType::float32, scales_shape, made.scales},
             MutableTensorView{source_.dtype, scales_shape, narrow}, {}, report));
    if (report.inexact != 0 || report.overflowed != 0) {
      return unsupported(fmt::format("{} has no scales of {}", quantized.recipe->recipe, name(source_.dtype)),
                         "take another recipe");
    }
    made.scales = std::move(narrow);
  }
  if (quantized.global_scale) last_->tensor_scales[source_.tensor.offset] = *quantized.global_scale;
  return made;
}

std::size_t channel_axis(const Node& node, std::size_t index, std::size_t rank) {
  std::size_t axis = 0;  // Conv, Gather and others
  if (node.op_type == "MatMul") axis = index == 1 ? rank - 1 : rank - 2;
  if (node.op_type == "Gemm") axis = index == 1 && !has_transpose(node, "transB") ? 1 : 0;
  if (node.op_type == "ConvTranspose") axis = 1;
  return std::min(axis, rank - 1);
}

std::size_t input_axis(const Node& node, std::size_t index, std::size_t rank) {
  std::size_t axis = rank - 1;
  if (node.op_type == "MatMul") axis = index == 1 ? rank - 2 : rank - 1;
  if (node.op_type == "Gemm") axis = index == 1 && !has_transpose(node, "transB") ? 0 : 1;
  if (node.op_type == "Conv") axis = 1;
  if (node.op_type == "ConvTranspose") axis = 0;
  return std::min(axis, rank - 1);
}

}  // namespace tensorcast::models::onnx
