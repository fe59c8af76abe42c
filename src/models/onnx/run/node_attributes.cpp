// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/run/node_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "models/onnx/wire/encode.hpp"

namespace tensorcast::models::onnx {
namespace {

struct AttributeRow {
  std::string_view op_type;
  std::string_view attribute;
  int since;
};
constexpr AttributeRow attribute_rows[] = {
    {"Cast", "to", 1},
    {"Cast", "saturate", 19},
    {"Cast", "round_mode", 24},
    {"CastLike", "saturate", 19},
    {"CastLike", "round_mode", 24},
    {"BitCast", "to", 26},
    {"QuantizeLinear", "axis", 13},
    {"QuantizeLinear", "saturate", 19},
    {"QuantizeLinear", "block_size", 21},
    {"QuantizeLinear", "output_dtype", 21},
    {"QuantizeLinear", "precision", 23},
    {"DequantizeLinear", "axis", 13},
    {"DequantizeLinear", "block_size", 21},
    {"DequantizeLinear", "output_dtype", 23},
    {"Constant", "value", 1},
    {"Constant", "sparse_value", 11},
    {"Constant", "value_int", 12},
    {"Constant", "value_ints", 12},
    {"Constant", "value_float", 12},
    {"Constant", "value_floats", 12},
    {"Constant", "value_string", 12},
    {"Constant", "value_strings", 12},
    {"If", "then_branch", 1},
    {"If", "else_branch", 1},
};

Result<void> expect_type(const Attribute& attribute, AttributeType type, std::string_view words) {
  if (attribute.type == type) return {};
  return parse_error(fmt::format("the attribute \"{}\" is not {}", shown(attribute.name), words));
}

const Attribute* find(const Attributes& attributes, std::string_view name) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : found->second;
}

Result<Tensor> texts(std::vector<std::int64_t> shape, std::span<const std::string> values) {
  StringBuffer buffer;
  buffer.offsets.push_back(0);
  for (const std::string& value : values) {
    buffer.data.insert(buffer.data.end(), value.begin(), value.end());
    buffer.offsets.push_back(static_cast<std::int64_t>(buffer.data.size()));
  }
  return Tensor::own(std::move(shape), std::move(buffer));
}

}  // namespace

Result<Attributes> resolve_attributes(const Node& node, const Attributes* outer) {
  Attributes attributes;
  for (const Attribute& attribute : node.attributes) {
    const Attribute* value = &attribute;
    if (!attribute.reference.empty()) {
      if (outer == nullptr) {
        return parse_error(fmt::format("the attribute \"{}\" refers to an attribute of a function, but stands in none",
                                       shown(attribute.name)));
      }
      value = find(*outer, attribute.reference);
      if (value == nullptr) continue;
      if (attribute.type != AttributeType::undefined && attribute.type != value->type) {
        return parse_error(fmt::format("the attribute \"{}\" is not of the type of \"{}\", to which it refers",
                                       shown(attribute.name), shown(attribute.reference)));
      }
    }
    if (!attributes.emplace(attribute.name, value).second) {
      return parse_error(fmt::format("the attribute \"{}\" stands there twice", shown(attribute.name)));
    }
  }
  return attributes;
}

int attribute_since(std::string_view op_type, std::string_view attribute) noexcept {
  const auto* row = std::ranges::find_if(attribute_rows, [&](const AttributeRow& candidate) {
    return candidate.op_type == op_type && candidate.attribute == attribute;
  });
  return row == std::end(attribute_rows) ? 0 : row->since;
}

Result<void> check_attributes(std::string_view op_type, int opset, const Attributes& attributes) {
  for (const auto& [name, attribute] : attributes) {
    const int since = attribute_since(op_type, name);
    if (since != 0 && since <= opset) continue;
    return unsupported(fmt::format("{} of opset {} has no attribute \"{}\"{}", op_type, opset, shown(name),
                                   since == 0 ? "" : fmt::format("; it came with opset {}", since)));
  }
  return {};
}

Result<CastOptions> cast_options(int opset, const Attributes& attributes) {
  CastOptions options;
  options.opset = opset;
  if (const Attribute* saturate = find(attributes, "saturate")) {
    TRY(expect_type(*saturate, AttributeType::int_, "an integer"));
    options.saturate = saturate->i != 0;
  }
  if (const Attribute* mode = find(attributes, "round_mode")) {
    TRY(expect_type(*mode, AttributeType::string, "a string"));
    if (mode->s == "up") {
      options.round_mode = RoundMode::up;
    } else if (mode->s == "down") {
      options.round_mode = RoundMode::down;
    } else if (mode->s == "nearest") {
      options.round_mode = RoundMode::nearest;
    } else {
      return parse_error(fmt::format("round_mode \"{}\" is not one of up, down, nearest", mode->s.substr(0, 40)));
    }
  }
  return options;
}

Result<DType> cast_target(int opset, const Attributes& attributes) {
  const Attribute* to = find(attributes, "to");
  if (to == nullptr) return parse_error("the attribute \"to\" is missing");
  if (opset < 6) {
    TRY(expect_type(*to, AttributeType::string, "a string, as before opset 6"));
    for (const DType dtype : all_dtypes()) {
      const bool is_old = is_onnx(dtype) && since_opset(dtype) < 13;
      if (is_old && cast_word(dtype) == to->s) return dtype;
    }
    return unsupported(fmt::format("\"to\" is \"{}\", which is not a type of opset {}", to->s.substr(0, 40), opset));
  }
  TRY(expect_type(*to, AttributeType::int_, "an integer"));
  if (to->i == 0) return parse_error("\"to\" is 0, UNDEFINED");
  Result<DType> dtype = formats::onnx::parse_data_type(static_cast<std::uint64_t>(to->i));
  if (dtype) return dtype;
  return unsupported(fmt::format("\"to\" is {}, which is not a supported type", to->i));
}

Result<std::int64_t> integer_attribute(std::string_view name, std::int64_t otherwise, const Attributes& attributes) {
  const Attribute* found = find(attributes, name);
  if (found == nullptr) return otherwise;
  TRY(expect_type(*found, AttributeType::int_, "an integer"));
  return found->i;
}

Result<DType> type_attribute(std::string_view name, const Attributes& attributes) {
  const std::int64_t number = TRY(integer_attribute(name, 0, attributes));
  if (number == 0) return DType::undefined;
  Result<DType> dtype = formats::onnx::parse_data_type(static_cast<std::uint64_t>(number));
  if (dtype) return dtype;
  return unsupported(fmt::format("\"{}\" is {}, which is not a supported type", name, number));
}

Result<Tensor> constant_value(const Attributes& attributes, TensorLoader& loader) {
  if (attributes.size() != 1) {
    return parse_error(fmt::format("a Constant has exactly one value, not {}", attributes.size()));
  }
  const auto& [name, attribute] = *attributes.begin();
  const auto is = [&](AttributeType type, std::string_view words) { return expect_type(*attribute, type, words); };
  if (name == "value") {
    TRY(is(AttributeType::tensor, "a tensor"));
    NamedTensor tensor = TRY(loader.load(attribute->tensor));
    return std::move(tensor.tensor);
  }
  if (name == "value_int") {
    TRY(is(AttributeType::int_, "an integer"));
    return Tensor::own(std::vector{attribute->i}, Shape{});
  }
  if (name == "value_ints") {
    TRY(is(AttributeType::ints, "a list of integers"));
    return Tensor::own(attribute->ints);
  }
  if (name == "value_float") {
    TRY(is(AttributeType::float_, "a float"));
    const float value = attribute->floats.empty() ? 0.0f : attribute->floats.back();  // protobuf may leave out a zero
    return Tensor::own(std::vector{value}, Shape{});
  }
  if (name == "value_floats") {
    TRY(is(AttributeType::floats, "a list of floats"));
    return Tensor::own(attribute->floats);
  }
  if (name == "value_string") {
    TRY(is(AttributeType::string, "a string"));
    return texts({}, std::span(&attribute->s, 1));
  }
  if (name == "value_strings") {
    TRY(is(AttributeType::strings, "a list of strings"));
    return texts({static_cast<std::int64_t>(attribute->strings.size())}, attribute->strings);
  }
  return unsupported("sparse tensors are not supported");
}

Result<const Graph*> branch(std::string_view name, const Attributes& attributes) {
  const Attribute* attribute = find(attributes, name);
  if (attribute == nullptr) return parse_error(fmt::format("the attribute \"{}\" is missing", name));
  if (attribute->type != AttributeType::graph || attribute->graphs.empty()) {
    return parse_error(fmt::format("the attribute \"{}\" is not a graph", name));
  }
  return static_cast<const Graph*>(attribute->graphs.front().get());
}

}  // namespace tensorcast::models::onnx
