// SPDX-License-Identifier: Apache-2.0
// A whole ONNX model without the elements of its tensors: graphs, subgraphs and functions, names resolved to values.
// Everything remembers its place in the file, so that what does not change is copied byte for byte.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/onnx/wire_reader.hpp"
#include "io/input_file.hpp"
#include "io/memory_budget.hpp"
#include "models/onnx/wire/model_schema.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::models::onnx {

using formats::onnx::ByteRange;
using formats::onnx::WireField;

using ValueId = std::uint32_t;
inline constexpr ValueId no_value = UINT32_MAX;  // an omitted input or output

struct ValueType {
  enum class Kind : std::uint8_t { unknown, tensor, sequence, optional, optional_sequence, other } kind = Kind::unknown;
  DType element = DType::undefined;  // undefined: unknown; any number that a file has

  [[nodiscard]] bool is_tensor() const noexcept { return kind == Kind::tensor; }
  auto operator<=>(const ValueType&) const = default;
};
[[nodiscard]] inline ValueType tensor_of(DType element) { return {ValueType::Kind::tensor, element}; }
// Returns the type, or undefined if it is none of ONNX that tensorcast has.
[[nodiscard]] inline DType known(DType dtype) noexcept { return is_onnx(dtype) ? dtype : DType::undefined; }

struct Graph;

struct Attribute {
  static constexpr std::size_t max_ints = 8;

  WireField field;
  std::string name;
  std::string reference;                          // the attribute of the function that stands here; may be empty
  AttributeType type = AttributeType::undefined;  // as declared; any number
  std::uint32_t present = 0;                      // a bit for each AttributeType of which there is a value
  std::int64_t i = 0;
  std::string s;
  std::vector<float> floats;         // one for a float
  std::vector<std::int64_t> ints;    // the first max_ints, unless the whole model is read
  std::vector<std::string> strings;  // if the whole model is read
  ByteRange tensor;                  // a TensorProto, or the values of a SparseTensorProto
  DType tensor_element = DType::undefined;
  std::uint64_t tensor_count = 0;  // of elements; saturated
  std::size_t tensor_rank = 0;
  bool tensor_is_external = false;
  std::vector<std::unique_ptr<Graph>> graphs;
};

struct Node {
  WireField field;
  std::uint32_t id = 0;  // dense, over the whole model
  std::string name;
  std::string op_type;
  std::string domain;  // "" for the standard operators, however the file spells it
  std::string overload;
  std::string callee = {};  // if not empty: the copy of a function that this node calls instead
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Attribute> attributes;

  [[nodiscard]] const Attribute* attribute(std::string_view wanted) const noexcept;
  // Returns the graphs in its attributes.
  [[nodiscard]] std::vector<Graph*> bodies() const;
};

// An input, output or value_info of a graph.
struct Declaration {
  WireField field;
  std::string name;
  ValueType type;
  std::uint32_t type_field = 0;                         // of TypeProto; 0: none
  std::optional<std::vector<std::int64_t>> shape = {};  // if the whole model is read; -1: any length
  ValueId value = no_value;
};

struct Initializer {
  WireField field;
  ByteRange tensor;  // for a sparse one, that of its values
  std::string name;
  DType element = DType::undefined;
  std::uint64_t count = 0;  // of elements; saturated
  std::size_t rank = 0;
  bool sparse = false;
  bool external = false;
  ValueId value = no_value;
};

// Returns the tensor of an attribute as an initializer without name, value and field.
[[nodiscard]] Initializer as_initializer(const Attribute& attribute);

struct Opset {
  WireField field;
  std::string domain;
  std::int64_t version = 0;
  std::int64_t file_version = 0;  // differs after upgrade_opset()
};

struct Graph {
  WireField field;
  std::uint32_t id = 0;  // dense; the main graph is 0
  const Graph* parent = nullptr;
  const std::vector<Opset>* opsets = nullptr;
  bool is_function = false;
  std::string name;
  std::vector<Node> nodes;
  std::vector<Declaration> inputs;  // of a function: names without type
  std::vector<Declaration> outputs;
  std::vector<Declaration> infos;
  std::vector<Initializer> initializers;
  std::unordered_map<std::string, ValueId> names;  // values that this graph defines
  std::vector<std::string> annotated;              // values that quantization_annotation names

  [[nodiscard]] std::int64_t opset(std::string_view domain) const noexcept;  // 0: not imported
  // The value of this name that this graph sees.
  [[nodiscard]] ValueId lookup(const std::string& wanted) const;
};

struct Function {
  Function* origin = nullptr;             // of a copy: the function in the file
  std::vector<const Function*> copies{};  // of a function in the file
  WireField name_field;
  std::string name;
  std::string domain;
  std::string overload;
  std::vector<Opset> opsets;
  std::vector<std::string> attributes;  // without default
  std::vector<Attribute> defaults;      // names and numbers only, unless the whole model is read
  Graph body;
};

struct Value {
  std::string name;
  const Graph* graph = nullptr;
  const Node* producer = nullptr;            // null: an input or an initializer of its graph
  const Initializer* initializer = nullptr;  // also of an input with a default
  bool is_input = false;
  bool is_output = false;  // of its own graph
  ValueType type = {};     // declared first, then inferred
};

struct Model {
  std::int64_t ir_version = 0;
  std::vector<Opset> opsets;
  std::unique_ptr<Graph> graph;
  std::vector<std::unique_ptr<Function>> functions;
  std::unordered_multimap<std::string, const Function*> functions_by_name;
  std::vector<Value> values;
  bool has_training = false;                     // training_info, whose graphs may name values of this one
  std::vector<std::unique_ptr<Graph>> training;  // these, if the whole model is read
  bool has_external_data = false;
  std::uint32_t node_count = 0;
  std::uint32_t graph_count = 0;
  std::set<std::string, std::less<>> value_names;  // in any scope
  std::set<std::string, std::less<>> node_names;

  [[nodiscard]] const Function* function(const Node& node) const noexcept;
};

struct OpenModel {
  io::InputFile file;
  std::unique_ptr<Model> model;
};

// Visits a graph and the subgraphs of its nodes.
template <class Visit>
void each_graph(const Graph& graph, const Visit& visit) {
  visit(graph);
  for (const Node& node : graph.nodes) {
    for (const Graph* inner : node.bodies()) each_graph(*inner, visit);
  }
}
// Visits the graphs of functions, too.
template <class Visit>
void each_graph(const Model& model, const Visit& visit) {
  each_graph(*model.graph, visit);
  for (const auto& function : model.functions) each_graph(function->body, visit);
}

// Reads what precision needs, and resolves names. Errors: parse; unsupported: nested too deep, names defined twice; io.
// Memory is bounded by the file's size.
[[nodiscard]] Result<std::unique_ptr<Model>> read_model(const io::InputFile& file);
[[nodiscard]] Result<OpenModel> open_model(const std::string& path);

// Reads everything but the elements of tensors, and resolves no name. Takes its memory from `budget`. Errors: as
// read_model().
[[nodiscard]] Result<std::unique_ptr<Model>> parse_model(const io::InputFile& file, io::MemoryBudget& budget);

// Adds a copy of a function under a name that no other has; its memory is taken from `budget`. Errors: as read_model().
[[nodiscard]] Result<const Function*> copy_function(const io::InputFile& file, Model& model, Function& origin,
                                                    std::string name, io::MemoryBudget& budget);

// Shortens a name from a file, which may have any length, for messages.
[[nodiscard]] std::string shown(std::string_view name);

// Returns "" for both names of the standard operators' domain.
[[nodiscard]] std::string normal_domain(std::string domain);

}  // namespace tensorcast::models::onnx
