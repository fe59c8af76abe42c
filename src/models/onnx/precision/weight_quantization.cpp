// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/weight_quantization.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "block/encode/weight_layout.hpp"
#include "block/format/code_packing.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/lower_case.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_reader.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "quantized/rewrite/damage.hpp"
#include "quantized/rewrite/loss_meter.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/dtype.hpp"

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

bool is_set(const Node& node, std::string_view name) {
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

// Packs codes that are one a byte.
std::vector<std::byte> packed(DType dtype, std::vector<std::byte> codes) {
  if (bit_width(dtype) == 8) return codes;
  std::vector<std::byte> made(storage_bytes(dtype, codes.size()));
  block::pack_stream(bit_width(dtype), {reinterpret_cast<const std::uint8_t*>(codes.data()), codes.size()},
                     made.data());
  return made;
}

Result<std::vector<std::byte>> read_all(const io::InputFile& file, formats::onnx::ByteRange tensor) {
  auto reader = TRY(formats::onnx::TensorProtoReader::open(file, tensor));
  const formats::TensorInfo& info = reader->tensors().front();
  std::vector<std::byte> bytes(storage_bytes(info.dtype, static_cast<std::size_t>(info.count)));
  TRY(reader->read(0, 0, bytes));
  return bytes;
}

// Returns what a matrix loses.
Result<quantized::QuantizedLoss> loss_of(const QuantizedTensor& made, const TensorView& matrix) {
  const auto rows = static_cast<std::uint64_t>(matrix.shape[0]);
  quantized::LossMeter meter(matrix.dtype, rows);
  TRY(meter.add(0, rows, matrix.bytes, made.tensor(), {.threads = 1}));
  return meter.loss();
}

bool is_matrix_product(const Node& node) {
  return node.op_type == "MatMul" || node.op_type == "FusedMatMul" || node.op_type == "Gemm" ||
         node.op_type == "Attention";
}

// Returns the axis of a product's matrix along which it sums, or the other one. Gemm and FusedMatMul may transpose a
// matrix, and FusedMatMul takes its rows from the first axis if transBatchA or transBatchB says so.
std::size_t matrix_axis(const Node& node, std::size_t index, std::size_t rank, bool of_sum) {
  const bool is_right = index == 1;
  const bool is_transposed = is_right ? is_set(node, "transB") : index == 0 && is_set(node, "transA");
  const bool sums_rows = is_right != is_transposed;
  if (sums_rows != of_sum) return rank - 1;
  return is_set(node, is_right ? "transBatchB" : "transBatchA") ? 0 : rank - 2;
}

bool is_recurrent(const Node& node) {
  return node.domain.empty() && (node.op_type == "LSTM" || node.op_type == "GRU" || node.op_type == "RNN");
}

}  // namespace

bool is_matrix_input(const Node& node, std::size_t index) {
  if (is_recurrent(node)) return index == 1 || index == 2;  // W and R, not biases and states
  if (node.op_type == "MatMul" || node.op_type == "Gemm") return node.domain.empty() && index < 2;
  return node.domain == fused_domain &&
         (node.op_type == "FusedMatMul" ? index < 2 : node.op_type == "Attention" && index == 1);
}

Result<WeightRecipe> parse_weight_recipe(std::string_view text, std::uint64_t group_size, bool symmetric) {
  const std::string_view word = text.substr(0, text.find(':'));
  const auto* const scheme = std::ranges::find_if(
      schemes, [&](const WeightScheme& row) { return is_same_name(row.word, word) || is_same_name(row.scheme, word); });
  if (scheme == std::end(schemes)) {
    std::string known;
    for (const WeightScheme& row : schemes) {
      known.append(known.empty() ? "" : ", ").append(row.word);
      if (row.word != row.scheme) known.append(" (").append(row.scheme).append(")");
    }
    const Result<DType> type = parse_dtype(word);
    const bool is_type = type && is_onnx(*type) && family(*type) == Family::floating;
    return invalid(
        fmt::format("weights of a model cannot become \"{}\"", word),
        (is_type ? fmt::format("`to` {} and `weights_only` without a scheme store them in that type; ", name(*type))
                 : std::string()) +
            "schemes are " + known);
  }
  WeightRecipe made{.scheme = scheme, .recipe = std::string(text.substr(std::min(word.size() + 1, text.size())))};
  constexpr std::uint64_t largest_group = std::uint64_t{1} << 30;
  made.group_size = static_cast<std::int64_t>(std::min(group_size, largest_group));
  made.symmetric = symmetric;
  const block::SharedLayout quantized = TRY(
      block::WeightLayout::make(DType::float32, {1, 1}, scheme->scheme,
                                {.recipe = made.recipe, .group_size = made.group_size, .symmetric = made.symmetric}));
  const QuantizedTensor& layout = quantized->tensor;
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
  if (!recipe_.has_float_scales()) return recipe_.scales;
  return source_.float32_scales ? DType::float32 : source_.dtype;
}

std::size_t Quantization::zero_points_bytes() const {
  return recipe_.symmetric ? 0 : storage_bytes(recipe_.scheme->codes, product(scales_shape_));
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

std::optional<double> Quantization::snr_db() const {
  const auto found = last_->snr_db.find(source_.tensor.offset);
  return found == last_->snr_db.end() ? std::nullopt : std::optional(found->second);
}

// The weight's rows are channels, or lie along the axis, as quantize() takes them; codes and scales then go back to
// the weight's own order.
Result<StoredWeight> Quantization::quantized() const {
  std::vector<std::byte> numbers = TRY(read_all(*source_.file, source_.tensor));
  const bool is_blocked = recipe_.block != 0;
  const Swap swap = is_blocked ? Swap::last : Swap::first;
  const auto width = static_cast<std::size_t>(bit_width(source_.dtype)) / 8;
  numbers = swapped(swap, outer_, length_, inner_, width, std::move(numbers));
  DType dtype = source_.dtype;
  if (source_.float32_scales) {
    const std::int64_t count[] = {static_cast<std::int64_t>(outer_ * length_ * inner_)};
    std::vector<std::byte> wide(storage_bytes(DType::float32, outer_ * length_ * inner_));
    TRY(cast(TensorView{dtype, count, numbers}, MutableTensorView{DType::float32, count, wide}));
    numbers = std::move(wide);
    dtype = DType::float32;
  }
  const std::size_t rows = is_blocked ? outer_ * inner_ : length_;
  const std::size_t columns = is_blocked ? length_ : outer_ * inner_;
  const std::int64_t shape[] = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
  const QuantizedTensor made_codes =
      TRY(quantize(TensorView{dtype, shape, numbers}, recipe_.scheme->scheme,
                   {.recipe = recipe_.recipe, .group_size = recipe_.group_size, .symmetric = recipe_.symmetric}));
  const quantized::QuantizedLoss loss = TRY(loss_of(made_codes, TensorView{dtype, shape, numbers}));
  last_->snr_db[source_.tensor.offset] = loss.report.snr_db();
  const ConversionSettings settings{.refuse_zeroed = !source_.allow_loss};
  std::optional<Damage> damage = file_conversion::find_quantizing_damage(loss.report, loss.nonzero, true);
  if (damage) damage->remedy = "another scheme or `keep` would help";
  TRY(at_tensor(source_.name, file_conversion::judge(settings, std::move(damage))));
  numbers = {};

  StoredWeight made;
  std::vector<std::byte> codes = TRY(element_codes(made_codes));
  if (made_codes.coding.positive_zero) {  // this layout's code of -0 means +0
    for (std::byte& code : codes) code = code == std::byte{8} ? std::byte{0} : code;
  }
  codes = is_blocked ? swapped(Swap::last, outer_, inner_, length_, 1, std::move(codes))
                     : swapped(Swap::first, length_, outer_, inner_, 1, std::move(codes));
  made.codes = packed(recipe_.scheme->codes, std::move(codes));

  const std::size_t stored_width = recipe_.has_float_scales() ? sizeof(float) : 1;
  made.scales = made_codes.scales;
  const std::size_t count = made.scales.size() / stored_width;
  if (is_blocked && rows != 0) {
    made.scales = swapped(Swap::last, outer_, inner_, count / rows, stored_width, std::move(made.scales));
  }
  if (!recipe_.symmetric) {
    std::vector<std::byte> zeros(made_codes.zero_points.size());
    std::ranges::transform(made_codes.zero_points, zeros.begin(),
                           [](std::int8_t zero) { return std::byte(zero & 0xf); });
    const std::size_t blocks = rows == 0 ? 0 : count / rows;
    zeros = swapped(Swap::last, outer_, inner_, blocks, 1, std::move(zeros));
    made.zero_points = packed(recipe_.scheme->codes, std::move(zeros));
  }
  if (recipe_.has_float_scales() && scales_dtype() != DType::float32) {
    const std::int64_t scales_shape[] = {static_cast<std::int64_t>(count)};
    std::vector<std::byte> narrow(storage_bytes(source_.dtype, count));
    CastReport report;
    TRY(cast(TensorView{DType::float32, scales_shape, made.scales},
             MutableTensorView{source_.dtype, scales_shape, narrow}, {}, report));
    if (report.inexact != 0 || report.overflowed != 0) {
      return unsupported(fmt::format("{} has no scales of {}", made_codes.recipe->recipe, name(source_.dtype)),
                         "take another recipe");
    }
    made.scales = std::move(narrow);
  }
  if (made_codes.global_scale) last_->tensor_scales[source_.tensor.offset] = *made_codes.global_scale;
  return made;
}

std::size_t channel_axis(const Node& node, std::size_t index, std::size_t rank) {
  if (rank < 2) return 0;
  if (is_matrix_product(node)) return matrix_axis(node, index, rank, false);
  return node.op_type == "ConvTranspose" || is_recurrent(node) ? 1 : 0;  // Conv, Gather and others: 0
}

std::size_t input_axis(const Node& node, std::size_t index, std::size_t rank) {
  if (rank < 2) return 0;
  if (is_matrix_product(node)) return matrix_axis(node, index, rank, true);
  if (node.op_type == "ConvTranspose") return 0;
  return node.op_type == "Conv" ? 1 : rank - 1;
}

}  // namespace tensorcast::models::onnx
