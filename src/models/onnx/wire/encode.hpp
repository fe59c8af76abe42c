// SPDX-License-Identifier: Apache-2.0
// Encodes fields of a message, and attributes of a new node, as a model's file has them.
#pragma once

#include <protozero/varint.hpp>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/tensor_proto_schema.hpp"
#include "models/onnx/wire/model_schema.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx {

// The number of a field of a model's messages, or of a TensorProto.
struct FieldNumber {
  constexpr FieldNumber(std::uint32_t given) : value(given) {}
  constexpr FieldNumber(formats::onnx::Field given) : value(static_cast<std::uint32_t>(given)) {}
  std::uint64_t value;
};

// Returns the key and length of a field of `length` bytes.
[[nodiscard]] inline std::string encode_head(FieldNumber number, std::uint64_t length) {
  std::string text;
  protozero::write_varint(std::back_inserter(text), number.value << 3 | 2);
  protozero::write_varint(std::back_inserter(text), length);
  return text;
}

[[nodiscard]] inline std::string encode_field(FieldNumber number, std::string_view contents) {
  return encode_head(number, contents.size()) += contents;
}

[[nodiscard]] inline std::string encode_varint_field(FieldNumber number, std::uint64_t value) {
  std::string text;
  protozero::write_varint(std::back_inserter(text), number.value << 3);
  protozero::write_varint(std::back_inserter(text), value);
  return text;
}
[[nodiscard]] inline std::string encode_varint_field(FieldNumber number, DType dtype) {
  return encode_varint_field(number, static_cast<std::uint32_t>(dtype));
}

// `value` is the field of the attribute that holds the value, or its ref_attr_name.
[[nodiscard]] inline std::string encode_attribute(std::string_view name, AttributeType type, std::string_view value) {
  return encode_field(attribute_field::name, name) + std::string(value) +
         encode_varint_field(attribute_field::type, static_cast<std::uint64_t>(type));
}

[[nodiscard]] inline std::string encode_int_attribute(std::string_view name, std::uint64_t value) {
  return encode_attribute(name, AttributeType::int_, encode_varint_field(attribute_field::i, value));
}
[[nodiscard]] inline std::string encode_int_attribute(std::string_view name, DType dtype) {
  return encode_int_attribute(name, static_cast<std::uint32_t>(dtype));
}

[[nodiscard]] inline std::string encode_string_attribute(std::string_view name, std::string_view value) {
  return encode_attribute(name, AttributeType::string, encode_field(attribute_field::s, value));
}

// Returns the type as `to` of a Cast before opset 6 names it.
[[nodiscard]] inline std::string cast_word(DType dtype) {
  std::string word(dtype == DType::float32 ? "FLOAT" : dtype == DType::float64 ? "DOUBLE" : name(dtype));
  for (char& c : word) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return word;
}

// Returns the attribute `to` of a Cast.
[[nodiscard]] inline std::string encode_cast_target(DType to, std::int64_t opset) {
  return opset < 6 ? encode_string_attribute("to", cast_word(to)) : encode_int_attribute("to", to);
}

// A new node; its attributes are encoded.
struct NewNode {
  std::string_view op_type;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::string_view name = {};
  std::vector<std::string> attributes = {};
};

[[nodiscard]] inline std::string encode_node(const NewNode& node) {
  std::string text;
  for (const std::string& input : node.inputs) text += encode_field(node_field::input, input);
  for (const std::string& output : node.outputs) text += encode_field(node_field::output, output);
  if (!node.name.empty()) text += encode_field(node_field::name, node.name);
  text += encode_field(node_field::op_type, node.op_type);
  for (const std::string& attribute : node.attributes) text += encode_field(node_field::attribute, attribute);
  return text;
}

}  // namespace tensorcast::models::onnx
