// SPDX-License-Identifier: Apache-2.0
// For tests: models as the bytes of their files, and as the converter reads them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/onnx/tensor_proto_schema.hpp"
#include "io/input_file.hpp"
#include "models/onnx/ir/type_inference.hpp"
#include "models/onnx/wire/encode.hpp"

namespace tensorcast::models::onnx::testing {

using Names = std::vector<std::string>;

inline constexpr DType f32 = DType::float32, i64 = DType::int64, boolean = DType::boolean, f16 = DType::float16,
                       f64 = DType::float64, bf16 = DType::bfloat16, untyped = DType::undefined;

// What a node has besides its operator, inputs and outputs.
struct NodeParts {
  Names attributes = {};  // encoded
  std::string name = {};
  std::string domain = {};
};

inline std::string node(std::string_view op, const Names& inputs, const Names& outputs, const NodeParts& parts = {}) {
  std::string text = encode_node({op, inputs, outputs, parts.name, parts.attributes});
  if (!parts.domain.empty()) text += encode_field(node_field::domain, parts.domain);
  return text;
}

inline std::string cast(const std::string& input, const std::string& output, DType to) {
  return node("Cast", {input}, {output}, {.attributes = {encode_int_attribute("to", to)}, .name = "to_" + output});
}

inline std::string graph_attribute(std::string_view name, const std::string& graph) {
  return encode_attribute(name, AttributeType::graph, encode_field(attribute_field::g, graph));
}

using Edges = std::vector<std::pair<std::string, DType>>;  // names and element types; undefined: no type

struct GraphParts {
  Names nodes;
  Edges inputs = {};
  Edges outputs = {};
  Edges initializers = {};  // of one element, 0
  Names annotated = {};
};

inline std::string graph(const GraphParts& parts) {
  using formats::onnx::Field;
  const auto declared = [](const std::pair<std::string, DType>& edge) {
    const std::string tensor = encode_varint_field(tensor_type_field::elem_type, edge.second);
    return encode_field(value_field::name, edge.first) +
           (edge.second == DType::undefined
                ? std::string()
                : encode_field(value_field::type, encode_field(type_field::tensor, tensor)));
  };
  std::string text;
  for (const std::string& each : parts.nodes) text += encode_field(graph_field::node, each);
  for (const auto& edge : parts.inputs) text += encode_field(graph_field::input, declared(edge));
  for (const auto& edge : parts.outputs) text += encode_field(graph_field::output, declared(edge));
  for (const auto& [name, element] : parts.initializers) {
    const std::string tensor = encode_varint_field(Field::dims, 1) + encode_varint_field(Field::data_type, element) +
                               encode_field(Field::name, name) +
                               encode_field(Field::raw_data, std::string(storage_bytes(element, 1), '\0'));
    text += encode_field(graph_field::initializer, tensor);
  }
  for (const std::string& name : parts.annotated) {
    text += encode_field(graph_field::quantization_annotation, encode_field(annotation_field::tensor_name, name));
  }
  return text;
}

inline std::string opset_import(std::string_view domain, std::uint64_t version) {
  return encode_field(opset_field::domain, domain) + encode_varint_field(opset_field::version, version);
}

// A function of the domain "mine" in opset 21.
inline std::string function(std::string_view name, const Names& inputs, const Names& outputs, const Names& nodes) {
  std::string text = encode_field(function_field::name, name) + encode_field(function_field::domain, "mine");
  for (const std::string& input : inputs) text += encode_field(function_field::input, input);
  for (const std::string& output : outputs) text += encode_field(function_field::output, output);
  for (const std::string& each : nodes) text += encode_field(function_field::node, each);
  for (const std::string_view domain : {"", "mine"}) {
    text += encode_field(function_field::opset_import, opset_import(domain, domain.empty() ? 21 : 1));
  }
  return text;
}

struct ModelParts {
  std::uint64_t opset = 21;
  Names functions = {};
  bool has_training = false;
};

inline std::string model(const GraphParts& main, const ModelParts& parts = {}) {
  std::string text = encode_varint_field(model_field::ir_version, 10) + encode_field(model_field::graph, graph(main)) +
                     encode_field(model_field::opset_import, opset_import("", parts.opset)) +
                     encode_field(model_field::opset_import, opset_import("mine", 1));
  for (const std::string& each : parts.functions) text += encode_field(model_field::functions, each);
  if (parts.has_training) text += encode_field(model_field::training_info, "");
  return text;
}

// Reads a model and infers its types.
class TestModel {
 public:
  explicit TestModel(std::string bytes) : bytes_(std::make_unique<const std::string>(std::move(bytes))) {
    Result<std::unique_ptr<Model>> read = read_model(file_);
    EXPECT_TRUE(read.ok()) << read.error().describe();
    model_ = read ? std::move(*read) : std::make_unique<Model>();
    if (read) infer_types(*model_);
  }
  explicit TestModel(const GraphParts& main, const ModelParts& parts = {}) : TestModel(model(main, parts)) {}

  const Model& operator*() const { return *model_; }
  const Model* operator->() const { return model_.get(); }
  const io::InputFile& file() const { return file_; }

  // The first value of this name.
  ValueId id(std::string_view name) const {
    for (ValueId each = 0; each < model_->values.size(); ++each) {
      if (model_->values[each].name == name) return each;
    }
    ADD_FAILURE() << "no value " << name;
    return 0;
  }
  DType element(std::string_view name) const { return model_->values[id(name)].type.element; }
  // The node that makes the value.
  const Node& maker(std::string_view name) const { return *model_->values[id(name)].producer; }

 private:
  std::unique_ptr<const std::string> bytes_;
  io::InputFile file_ = io::InputFile::in_memory(std::as_bytes(std::span(*bytes_)));
  std::unique_ptr<Model> model_;
};

}  // namespace tensorcast::models::onnx::testing
