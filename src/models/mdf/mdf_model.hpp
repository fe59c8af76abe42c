// SPDX-License-Identifier: Apache-2.0
// An MDF model in its specification's terms: the first graph, its nodes and its edges. Values point into the tree.
// Graphs within nodes are flattened: see read_model().
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/mdf/mdf_tree.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::models::mdf {

// An identifier of the file in an error, quoted and not at any length.
[[nodiscard]] std::string shown(std::string_view id);

enum class Reduce { overwrite, add, multiply };  // how several edges into one port combine

struct InputPort {
  std::string id;
  const Tree* default_value = nullptr;
  std::string type;
  std::optional<std::vector<std::int64_t>> shape;  // absent: any; -1: a symbol
  Reduce reduce = Reduce::overwrite;
};

struct OutputPort {
  std::string id;
  const Tree* value = nullptr;
  std::string type;
  std::optional<std::vector<std::int64_t>> shape;
};

// A parameter or a function of a node: a value, or a function of arguments.
struct Term {
  std::string id;
  const Tree* value = nullptr;
  std::string function;  // "onnx::Cast"; empty for a value
  std::vector<std::pair<std::string, const Tree*>> args;
  bool is_function = false;  // listed under "functions"
};

struct Node {
  std::string id;   // for messages: the file's id, prefixed with the ids of the enclosing nodes
  std::string key;  // unique; used by edges
  std::vector<InputPort> inputs;
  std::vector<Term> terms;
  std::vector<OutputPort> outputs;
};

struct Edge {
  std::string id;
  std::string sender;  // a node's key
  std::string sender_port;
  std::string receiver;
  std::string receiver_port;
  const Tree* weight = nullptr;
};

struct MdfModel {
  std::string id;
  std::string graph;
  int opset = 15;  // the reference engine's opset, unless the model names one
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::deque<Tree> names;  // values that are not in the file
};

// A node with a graph inside becomes: a node with its input ports, the nodes of that graph ("OUTER.INNER"), and a node
// with the other parts, which also receives the outputs of nested nodes without outgoing edges. A nested port without
// an edge reads the port of the same id of the nearest enclosing node.
//
// `tree` outlives the model. Errors: parse: another structure; unsupported: conditions, state.
// Messages name graph, node and part.
[[nodiscard]] Result<MdfModel> read_model(const Tree& tree);

}  // namespace tensorcast::models::mdf
