// Encodes fields of a message, and attributes of a new node, as a model's file has them.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <protozero/varint.hpp>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "models/onnx/wire/model_schema.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx {

// Returns the key and length of a field of `length` bytes.
[[nodiscard]] inline std::string encode_head(std::uint32_t number, std::uint64_t length) {
  std::string text;
  protozero::write_varint(std::back_inserter(text), std::uint64_t{number} << 3 | 2);
  protozero::write_varint(std::back_inserter(text), length);
  return text;
}

[[nodiscard]] inline std::string encode_field(std::uint32_t number, std::string_view contents) {
  return encode_head(number, contents.size()) += contents;
}

[[nodiscard]] inline std::string encode_varint_field(std::uint32_t number, std::uint64_t value) {
  std::string text;
  protozero::write_varint(std::back_inserter(text), std::uint64_t{number} << 3);
  protozero::write_varint(std::back_inserter(text), value);
  return text;
}

// `value` is the field of the attribute that holds the value, or its ref_attr_name.
[[nodiscard]] inline std::string encode_attribute(std::string_view name, AttributeType type, std::string_view value) {
  return encode_field(attribute_field::name, name) + std::string(value) +
         encode_varint_field(attribute_field::type, static_cast<std::uint64_t>(type));
}

[[nodiscard]] inline std::string encode_int_attribute(std::string_view name, std::uint64_t value) {
  return encode_attribute(name, AttributeType::int_, encode_varint_field(attribute_field::i, value));
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

}  // namespace tensorcast::models::onnx
