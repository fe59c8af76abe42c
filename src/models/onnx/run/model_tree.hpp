// An ONNX model as in its file; the elements of tensors stay there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/onnx/wire_reader.hpp"
#include "io/input_file.hpp"
#include "models/onnx/wire/model_schema.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::models::onnx {

struct GraphTree;

struct AttributeTree {
  std::string name;
  std::string reference;  // name of the function's attribute that stands here; may be empty
  AttributeType type = AttributeType::undefined;
  float f = 0;
  std::int64_t i = 0;
  std::string s;
  formats::onnx::ByteRange t;
  std::unique_ptr<GraphTree> g;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string> strings;
};

struct NodeTree {
  std::string name;
  std::string op_type;
  std::string domain;  // "" for the standard operators, however the file spells it
  std::string overload;
  std::vector<std::string> inputs;  // "" for an omitted input
  std::vector<std::string> outputs;
  std::vector<AttributeTree> attributes;
};

struct GraphTree {
  std::string name;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<NodeTree> nodes;
  std::vector<formats::onnx::ByteRange> initializers;
};

struct OpsetTree {
  std::string domain;
  std::int64_t version = 0;
};

struct FunctionTree {
  std::string name;
  std::string domain;
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;  // without default
  std::vector<AttributeTree> defaults;
  std::vector<NodeTree> nodes;
  std::vector<OpsetTree> opsets;
};

struct ModelTree {
  std::int64_t ir_version = 0;
  std::vector<OpsetTree> opsets;
  GraphTree graph;
  std::vector<FunctionTree> functions;
};

// Errors: parse; unsupported: values that are not tensors, sparse tensors, more than a model of conversions can have;
// io. Memory is bounded whatever the file says.
[[nodiscard]] Result<ModelTree> read_model_tree(const io::InputFile& file);

// Shortens a name from a file, which may have any length, for messages.
[[nodiscard]] std::string shown(std::string_view name);

// Returns "" for both names of the standard operators' domain.
[[nodiscard]] std::string normal_domain(std::string domain);

}  // namespace tensorcast::models::onnx
