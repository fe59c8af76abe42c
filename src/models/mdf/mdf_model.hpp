// An MDF model as its specification has it: the first graph, its nodes and its edges. Values point into the tree.
// Graphs within nodes are flat: see read_model().
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/mdf/mdf_tree.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::models::mdf {

enum class Reduce { overwrite, add, multiply };  // what several edges into one port make

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
  bool is_function = false;  // stands under "functions"
};

struct Node {
  std::string id;   // for people: that of the file, with those of the nodes around it
  std::string key;  // for edges, unique
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
  int opset = 15;  // what the reference engine runs, unless the model says
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::deque<Tree> names;  // values that are not in the file
};

// A node that has a graph within it becomes a node of its input ports, the nodes of that graph ("OUTER.INNER"), and a
// node of everything else, which takes what the graph sends nowhere. Ports within that no edge feeds take the port of
// the same id of the nearest node around them.
//
// `tree` outlives the model. Errors: parse: not of this shape; unsupported: conditions, state.
// Messages name graph, node and part.
[[nodiscard]] Result<MdfModel> read_model(const Tree& tree);

}  // namespace tensorcast::models::mdf
