// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/code_pairs.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "dtype/try.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/precision/tensor_conversion.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr std::size_t most_codes = std::size_t{1} << 24;

std::int64_t number_of(const Node& node, std::string_view name, std::int64_t otherwise) {
  const Attribute* attribute = node.attribute(name);
  return attribute == nullptr ? otherwise : attribute->i;
}

bool has_known_attributes(const Node& node) {
  constexpr std::string_view known[] = {"axis", "saturate", "block_size", "output_dtype", "precision"};
  return std::ranges::all_of(node.attributes, [&](const Attribute& attribute) {
    return attribute.reference.empty() && std::ranges::find(known, attribute.name) != std::end(known);
  });
}

ValueId input_of(const Node& node, std::size_t index) {
  return index < node.inputs.size() ? node.inputs[index] : no_value;
}

using ScaleAndZero = std::pair<double, double>;

struct Pair {
  DequantizeLinearOp dequantize;
  QuantizeLinearOp quantize;
  DType type = DType::undefined;  // of the codes
  DType scale_type = DType::undefined;
  bool has_zeros = false, has_zeros_behind = false;
};

// All codes of a type, packed. Precondition: they fill whole bytes.
std::vector<std::byte> all_codes(DType type) {
  const int bits = bit_width(type);
  const std::size_t count = std::size_t{1} << bits;
  std::vector<std::byte> packed(storage_bytes(type, count));
  for (std::size_t code = 0; code < count; ++code) {
    for (int bit = 0; bit < bits; ++bit) {
      const std::size_t place = code * static_cast<std::size_t>(bits) + static_cast<std::size_t>(bit);
      if ((code >> bit & 1) != 0) packed[place / 8] |= static_cast<std::byte>(1u << place % 8);
    }
  }
  return packed;
}

// One number is a scalar.
Result<Tensor> tensor_of(DType dtype, const std::vector<double>& numbers) {
  std::vector<std::int64_t> shape;
  if (numbers.size() > 1) shape.push_back(static_cast<std::int64_t>(numbers.size()));
  std::vector<std::byte> bytes(storage_bytes(dtype, numbers.size()));
  const TensorView view{DType::float64, Shape(shape), std::as_bytes(std::span(numbers))};
  TRY(cast(view, {dtype, Shape(shape), bytes}));
  return Tensor::own(dtype, Shape(shape), std::move(bytes));
}

// Runs both nodes on a row of all codes for each scale and zero point.
bool gives_back_all(const Pair& pair, const std::set<ScaleAndZero>& distinct) {
  const std::vector<std::byte> row = all_codes(pair.type);
  std::vector<std::byte> codes;
  std::vector<double> scale_numbers, zero_numbers;
  for (const auto& [scale, zero] : distinct) {
    codes.insert(codes.end(), row.begin(), row.end());
    scale_numbers.push_back(scale);
    zero_numbers.push_back(zero);
  }
  const Shape shape(
      std::vector<std::int64_t>{static_cast<std::int64_t>(distinct.size()), std::int64_t{1} << bit_width(pair.type)});
  const Result<Tensor> all = Tensor::own(pair.type, shape, codes);
  const Result<Tensor> scale = tensor_of(pair.scale_type, scale_numbers), zero = tensor_of(pair.type, zero_numbers);
  if (!all || !scale || !zero) return false;

  std::vector<std::string> first = {"codes", "scale"}, second = {"numbers", "scale"};
  if (pair.has_zeros) first.emplace_back("zero");
  if (pair.has_zeros_behind) second.emplace_back("zero");
  ::tensorcast::Graph graph;
  graph.inputs = {{.name = "codes", .dtype = pair.type}, {.name = "scale", .dtype = pair.scale_type}};
  std::vector<NamedTensor> inputs = {{"codes", *all}, {"scale", *scale}};
  if (pair.has_zeros || pair.has_zeros_behind) {
    graph.inputs.push_back({.name = "zero", .dtype = pair.type});
    inputs.push_back({"zero", *zero});
  }
  DequantizeLinearOp dequantize = pair.dequantize;
  QuantizeLinearOp quantize = pair.quantize;
  if (distinct.size() > 1) dequantize.axis = quantize.axis = 0;
  graph.nodes.push_back({.operation = dequantize, .inputs = first, .outputs = {"numbers"}});
  graph.nodes.push_back({.operation = quantize, .inputs = second, .outputs = {"back"}});
  graph.outputs = {{.name = "back"}};
  const Result<Program> program = Program::compile(std::move(graph));
  if (!program) return false;
  const Result<std::vector<NamedTensor>> outputs = program->run(inputs);
  if (!outputs || outputs->size() != 1) return false;
  const Tensor& back = (*outputs)[0].tensor;
  return back.dtype() == pair.type && std::ranges::equal(back.bytes(), codes);
}

}  // namespace

struct CodePairs::Numbers {
  DType dtype = DType::undefined;
  std::vector<std::int64_t> shape;
  std::vector<double> numbers;

  friend bool operator==(const Numbers&, const Numbers&) = default;
};

bool CodePairs::read(ValueId id, Numbers& found) const {
  const Value& value = plan_.model().values[id];
  formats::onnx::ByteRange tensor;
  if (value.initializer != nullptr && !value.is_input && !value.initializer->sparse) {
    tensor = value.initializer->tensor;
  } else if (is_constant_node(value.producer)) {
    const Attribute* constant = value.producer->attribute("value");
    if (constant == nullptr || !constant->reference.empty() || constant->type != AttributeType::tensor) return false;
    tensor = constant->tensor;
  } else {
    return false;
  }
  found.dtype = value.type.element;
  const auto begin = [&](const std::vector<std::int64_t>& shape) { found.shape = shape; };
  const auto take = [&](std::uint64_t, const std::vector<double>& numbers) {
    if (found.numbers.size() <= most_codes) {
      found.numbers.insert(found.numbers.end(), numbers.begin(), numbers.end());
    }
  };
  return each_number(file_, tensor, begin, take).ok() && found.numbers.size() <= most_codes;
}

bool CodePairs::give_back(const Node& dequantize, const Node& quantize, const Graph& graph) const {
  if (!has_known_attributes(dequantize) || !has_known_attributes(quantize)) return false;
  if (number_of(dequantize, "axis", 1) != number_of(quantize, "axis", 1) ||
      number_of(dequantize, "block_size", 0) != number_of(quantize, "block_size", 0)) {
    return false;
  }
  const ValueId codes_id = input_of(dequantize, 0), scale_id = input_of(dequantize, 1);
  if (codes_id == no_value || scale_id == no_value || input_of(quantize, 1) == no_value) return false;
  const DType type = plan_.produced(codes_id);
  if (type == DType::undefined || !is_castable(type) || plan_.produced(quantize.outputs[0]) != type) return false;
  const int bits = bit_width(type);
  if (bits == 0 || bits > 16 || 8 % std::min(bits, 8) != 0) return false;
  Numbers scales, scales_behind, zeros, zeros_behind;
  if (!read(scale_id, scales) || !read(input_of(quantize, 1), scales_behind) || scales != scales_behind) return false;
  const auto read_zeros = [&](const Node& node, Numbers& found) {
    const ValueId id = input_of(node, 2);
    if (id != no_value) return read(id, found) && found.dtype == type && found.shape == scales.shape;
    found = {.dtype = type, .shape = scales.shape, .numbers = std::vector<double>(scales.numbers.size(), 0.0)};
    return true;
  };
  if (!read_zeros(dequantize, zeros) || !read_zeros(quantize, zeros_behind) || zeros != zeros_behind) return false;

  std::set<ScaleAndZero> distinct;
  for (std::size_t i = 0; i < scales.numbers.size(); ++i) {
    if (scales.numbers[i] != scales.numbers[i]) return false;
    distinct.emplace(scales.numbers[i], zeros.numbers[i]);
  }
  const std::size_t count = std::size_t{1} << bits;
  if (distinct.empty() || distinct.size() * count > most_codes) return false;

  const auto none = static_cast<std::int64_t>(DType::undefined);
  const Pair pair{.dequantize = {.opset = static_cast<int>(graph.opset("")),
                                 .output_dtype = static_cast<DType>(number_of(dequantize, "output_dtype", none))},
                  .quantize = {.opset = static_cast<int>(graph.opset("")),
                               .saturate = number_of(quantize, "saturate", 1) != 0,
                               .output_dtype = static_cast<DType>(number_of(quantize, "output_dtype", none)),
                               .precision = static_cast<DType>(number_of(quantize, "precision", none))},
                  .type = type,
                  .scale_type = scales.dtype,
                  .has_zeros = input_of(dequantize, 2) != no_value,
                  .has_zeros_behind = input_of(quantize, 2) != no_value};
  return gives_back_all(pair, distinct);
}

}  // namespace tensorcast::models::onnx
