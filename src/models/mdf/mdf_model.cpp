// SPDX-License-Identifier: Apache-2.0
#include "models/mdf/mdf_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "models/mdf/mdf_number.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::models::mdf {
namespace {

Error wrong_at(const std::string& where, const std::string& what) {
  return parse_error(fmt::format("{}: {}", where, what));
}

Error unsupported_at(const std::string& where, const std::string& what) {
  return unsupported(fmt::format("{}: {}", where, what));
}

bool is_empty(const Tree* tree) {
  if (tree == nullptr || tree->is_null()) return true;
  const auto* map = tree->as<Tree::Map>();
  const auto* list = tree->as<Tree::List>();
  return (map != nullptr && map->empty()) || (list != nullptr && list->empty());
}

// Returns the map of a key; an empty one if the key is missing, or its value is null or empty.
Result<const Tree::Map*> map_at(const Tree& tree, std::string_view key, const std::string& where) {
  static const Tree::Map none;
  const Tree* found = tree.find(key);
  if (is_empty(found)) return &none;
  if (const auto* map = found->as<Tree::Map>()) return map;
  return wrong_at(where, fmt::format("{} is {}, not a map", key, found->kind()));
}

Result<std::string> text_at(const Tree& tree, std::string_view key, const std::string& where) {
  const Tree* found = tree.find(key);
  if (found == nullptr || found->is_null()) return std::string();
  if (const auto* text = found->as<std::string>()) return *text;
  return wrong_at(where, fmt::format("{} is {}, not a text", key, found->kind()));
}

// Rejects unknown keys, which may change the meaning.
Result<void> check_keys(const Tree& tree, std::initializer_list<std::string_view> known, const std::string& where) {
  const auto* map = tree.as<Tree::Map>();
  if (map == nullptr) return wrong_at(where, fmt::format("is {}, not a map", tree.kind()));
  for (const TreeEntry& entry : *map) {
    if (entry.key == "id" || entry.key == "metadata" || entry.key == "notes") continue;
    if (!contains(known, entry.key)) {
      return unsupported_at(where, fmt::format("the field {} is not known", shown(entry.key)));
    }
  }
  return {};
}

const Tree* value_at(const Tree& tree, std::string_view key) {
  const Tree* found = tree.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

// Parses a list of lengths, or Python's text of a tuple. Text that is not a number is a symbol: any length, or any
// shape.
std::optional<std::vector<std::int64_t>> read_shape(const Tree& tree) {
  const Tree* found = tree.find("shape");
  if (found == nullptr) return std::nullopt;
  std::vector<std::int64_t> shape;
  const auto length = [](const Tree* number) {
    const auto* value = number == nullptr ? nullptr : number->as<std::int64_t>();
    return value == nullptr || *value < 0 ? -1 : *value;
  };
  if (const auto* list = found->as<Tree::List>()) {
    for (const Tree& item : *list) shape.push_back(length(&item));
  } else if (const auto* text = found->as<std::string>()) {
    if (text->size() < 2 || (text->front() != '(' && text->front() != '[')) return std::nullopt;
    const std::string_view inner = std::string_view(*text).substr(1, text->size() - 2);
    for (std::size_t begin = 0; begin < inner.size();) {
      const std::size_t end = std::min(inner.find(',', begin), inner.size());
      const std::string_view item = inner.substr(begin, end - begin);
      begin = end + 1;
      if (item.find_first_not_of(' ') == std::string_view::npos) continue;  // (2,)
      const auto number = parse_number(item);
      shape.push_back(length(number ? &*number : nullptr));
    }
  }
  // Ports without a shape also have this value.
  return shape.empty() ? std::nullopt : std::optional(std::move(shape));
}

Result<InputPort> read_input(const std::string& id, const Tree& tree, const std::string& where) {
  const std::string here = fmt::format("{}: input port {}", where, shown(id));
  TRY(check_keys(tree, {"default_value", "shape", "type", "reduce"}, here));
  std::string type = TRY(text_at(tree, "type", here));
  std::string reduce = TRY(text_at(tree, "reduce", here));
  if (!reduce.empty() && reduce != "overwrite" && reduce != "add" && reduce != "multiply") {
    return wrong_at(here, fmt::format("reduce {} is not one of overwrite, add, multiply", shown(reduce)));
  }
  return InputPort{.id = id,
                   .default_value = value_at(tree, "default_value"),
                   .type = std::move(type),
                   .shape = read_shape(tree),
                   .reduce = reduce == "add"        ? Reduce::add
                             : reduce == "multiply" ? Reduce::multiply
                                                    : Reduce::overwrite};
}

Result<OutputPort> read_output(const std::string& id, const Tree& tree, const std::string& where) {
  const std::string here = fmt::format("{}: output port {}", where, shown(id));
  TRY(check_keys(tree, {"value", "shape", "type"}, here));
  std::string type = TRY(text_at(tree, "type", here));
  OutputPort port{.id = id, .value = value_at(tree, "value"), .type = std::move(type), .shape = read_shape(tree)};
  if (port.value == nullptr) return wrong_at(here, "has no value");
  return port;
}

Result<Term> read_term(const std::string& id, const Tree& tree, bool is_function, const std::string& where) {
  const std::string here = fmt::format("{}: {} {}", where, is_function ? "function" : "parameter", shown(id));
  TRY(check_keys(tree, {"value", "function", "args", "default_initial_value", "time_derivative", "conditions"}, here));
  for (const char* state : {"default_initial_value", "time_derivative"}) {
    if (value_at(tree, state) != nullptr) return unsupported_at(here, fmt::format("has state ({})", state));
  }
  if (!is_empty(tree.find("conditions"))) return unsupported_at(here, "has conditions");

  Term term{.id = id, .value = value_at(tree, "value"), .function = {}, .args = {}, .is_function = is_function};
  if (const Tree* function = value_at(tree, "function"); function != nullptr) {
    const auto* text = function->as<std::string>();
    const auto* map = function->as<Tree::Map>();
    // {NAME: {ARGUMENT: ...}}, as the package writes functions in older files
    const bool is_short = is_function && map != nullptr && map->size() == 1 && is_empty(tree.find("args"));
    if (text == nullptr && !is_short) {
      return unsupported_at(here, fmt::format("the function is {}, not a name", function->kind()));
    }
    term.function = is_short ? map->front().key : *text;
    if (is_short) {
      const Tree::Map* args = TRY(map_at(*function, term.function, here));
      for (const TreeEntry& entry : *args) term.args.emplace_back(entry.key, &entry.tree);
    }
  }
  if (term.value != nullptr && !term.function.empty()) return wrong_at(here, "has a value and a function");
  if (term.value == nullptr && term.function.empty()) return wrong_at(here, "has neither value nor function");
  const Tree::Map* args = TRY(map_at(tree, "args", here));
  for (const TreeEntry& entry : *args) term.args.emplace_back(entry.key, &entry.tree);
  return term;
}

bool has_graph(const Tree& node) { return node.find("nodes") != nullptr; }

Result<Node> read_node(const std::string& id, const Tree& tree, const std::string& graph) {
  const std::string where = fmt::format("{}: node {}", graph, shown(id));
  const std::initializer_list<std::string_view> flat = {"input_ports", "functions", "parameters", "output_ports"};
  const std::initializer_list<std::string_view> nested = {"input_ports",  "functions", "parameters",
                                                          "output_ports", "nodes",     "edges"};
  TRY(check_keys(tree, has_graph(tree) ? nested : flat, where));
  Node node{.id = id, .key = id, .inputs = {}, .terms = {}, .outputs = {}};
  std::set<std::string_view> names;
  const auto is_new = [&](const std::string& name) { return names.insert(name).second; };
  const auto twice = [&](const std::string& name) {
    return wrong_at(where, fmt::format("{} names two of its ports, functions and parameters", shown(name)));
  };
  const Tree::Map* inputs = TRY(map_at(tree, "input_ports", where));
  for (const TreeEntry& entry : *inputs) {
    InputPort port = TRY(read_input(entry.key, entry.tree, where));
    node.inputs.push_back(std::move(port));
  }
  for (const char* list : {"functions", "parameters"}) {
    const Tree::Map* terms = TRY(map_at(tree, list, where));
    for (const TreeEntry& entry : *terms) {
      Term term = TRY(read_term(entry.key, entry.tree, list == std::string_view("functions"), where));
      node.terms.push_back(std::move(term));
    }
  }
  for (const InputPort& port : node.inputs) {
    if (!is_new(port.id)) return twice(port.id);
  }
  for (const Term& term : node.terms) {
    if (!is_new(term.id)) return twice(term.id);
  }
  const Tree::Map* outputs = TRY(map_at(tree, "output_ports", where));
  for (const TreeEntry& entry : *outputs) {
    OutputPort port = TRY(read_output(entry.key, entry.tree, where));
    node.outputs.push_back(std::move(port));
  }
  return node;
}

Result<Edge> read_edge(const std::string& id, const Tree& tree, const std::string& graph) {
  const std::string where = fmt::format("{}: edge {}", graph, shown(id));
  TRY(check_keys(tree, {"sender", "receiver", "sender_port", "receiver_port", "parameters"}, where));
  Edge edge;
  edge.id = id;
  for (const auto& [key, target] :
       {std::pair("sender", &edge.sender), std::pair("receiver", &edge.receiver),
        std::pair("sender_port", &edge.sender_port), std::pair("receiver_port", &edge.receiver_port)}) {
    std::string text = TRY(text_at(tree, key, where));
    if (text.empty()) return wrong_at(where, fmt::format("has no {}", key));
    *target = std::move(text);
  }
  const Tree::Map* parameters = TRY(map_at(tree, "parameters", where));
  for (const TreeEntry& entry : *parameters) {
    if (entry.key != "weight")
      return unsupported_at(where, fmt::format("the parameter {} is not known", shown(entry.key)));
    edge.weight = &entry.tree;
  }
  return edge;
}

// {"node_specific": {NODE: ...}, "termination": ...}
Result<void> check_conditions(const Tree& graph, const std::string& where) {
  const Tree* conditions = graph.find("conditions");
  if (is_empty(conditions)) return {};
  if (const Tree* nodes = conditions->find("node_specific"); !is_empty(nodes)) {
    const auto* map = nodes->as<Tree::Map>();
    const std::string node = map == nullptr ? "" : fmt::format("node {}: ", shown(map->front().key));
    return unsupported_at(where, node + "runs on a condition; every node is run once");
  }
  if (!is_empty(conditions->find("termination"))) {
    return unsupported_at(where, "ends on a condition; every node is run once");
  }
  return {};
}

Result<int> read_opset(const Tree& model, const std::string& where) {
  const Tree* found = value_at(model, "onnx_opset_version");
  if (found == nullptr) return 15;
  std::optional<Tree> number;
  if (const auto* text = found->as<std::string>()) number = parse_number(*text);
  const auto* opset = number ? number->as<std::int64_t>() : found->as<std::int64_t>();
  if (opset == nullptr) return wrong_at(where, "onnx_opset_version is not a whole number");
  if (*opset >= 1 && *opset <= newest_opset()) return static_cast<int>(*opset);
  return unsupported_at(where, fmt::format("onnx_opset_version is {}; 1 to {} are known", *opset, newest_opset()));
}

// {ID: {"graphs": ...}}, or the inner map alone.
Result<std::pair<std::string, const Tree*>> find_model(const Tree& tree) {
  if (tree.find("graphs") != nullptr) return std::pair(std::string(), &tree);
  const auto* map = tree.as<Tree::Map>();
  if (map != nullptr && map->size() == 1 && map->front().tree.find("graphs") != nullptr) {
    return std::pair(map->front().key, &map->front().tree);
  }
  return parse_error("not an MDF model: no map {ID: {graphs: ...}}");
}

// The address of a port: a node's key and the port's id.
using Source = std::pair<std::string, std::string>;

class GraphReader {
 public:
  using Scope = std::map<std::string, Source, std::less<>>;  // input ports of the enclosing nodes

  GraphReader(MdfModel& model, std::string where) : model_(model), where_(std::move(where)) {}

  // `prefix` is the path of the enclosing node, with a dot. The tree's depth limits the recursion.
  Result<void> read(const Tree& graph, const std::string& prefix, const Scope& scope) {
    const std::string here =
        prefix.empty() ? where_ : fmt::format("{}: node {}", where_, shown(prefix.substr(0, prefix.size() - 1)));
    const Tree::Map* nodes = TRY(map_at(graph, "nodes", here));
    if (nodes->empty()) return wrong_at(here, "has no nodes");
    const Tree::Map* edges = TRY(map_at(graph, "edges", here));

    std::set<std::string, std::less<>> nested;
    for (const TreeEntry& entry : *nodes) {
      if (has_graph(entry.tree)) nested.insert(prefix + entry.key);
    }
    std::set<Source> fed;
    for (const TreeEntry& entry : *edges) {
      Edge edge = TRY(read_edge(entry.key, entry.tree, here));
      edge.sender.insert(0, prefix);
      edge.receiver.insert(0, prefix);
      if (nested.contains(edge.receiver)) edge.receiver = entry_of(edge.receiver);
      fed.emplace(edge.receiver, edge.receiver_port);
      model_.edges.push_back(std::move(edge));
    }
    for (const TreeEntry& entry : *nodes) {
      Node node = TRY(read_node(prefix + entry.key, entry.tree, where_));
      const std::string takes = nested.contains(node.key) ? entry_of(node.key) : node.key;
      for (const InputPort& port : node.inputs) {
        const auto around = scope.find(port.id);
        if (around != scope.end() && !fed.contains({takes, port.id})) connect(around->second, {takes, port.id});
      }
      if (takes == node.key) {
        add(std::move(node));
      } else {
        TRY(add_nested(std::move(node), entry.tree, scope));
      }
    }
    return {};
  }

 private:
  // Returns the key of the node that has the input ports. If the file has a node with this key, it is a duplicate.
  static std::string entry_of(const std::string& key) { return key + " (inputs)"; }

  void add(Node node) { model_.nodes.push_back(std::move(node)); }

  void connect(const Source& from, const Source& to) {
    model_.edges.push_back({.id = fmt::format("{}.{}", to.first, to.second),
                            .sender = from.first,
                            .sender_port = from.second,
                            .receiver = to.first,
                            .receiver_port = to.second});
  }

  const Tree* name_of(const std::string& name) { return &model_.names.emplace_back(Tree{name}); }

  Result<void> add_nested(Node node, const Tree& graph, Scope scope) {
    Node entry{.id = node.id, .key = entry_of(node.key), .inputs = std::move(node.inputs), .terms = {}, .outputs = {}};
    node.inputs.clear();
    std::set<std::string, std::less<>> names;
    for (const InputPort& port : entry.inputs) {
      entry.outputs.push_back({.id = port.id, .value = name_of(port.id), .type = {}, .shape = {}});
      node.inputs.push_back({.id = port.id, .default_value = nullptr, .type = {}, .shape = {}});
      connect({entry.key, port.id}, {node.key, port.id});
      scope.insert_or_assign(port.id, Source(entry.key, port.id));
      names.insert(port.id);
    }
    for (const Term& term : node.terms) names.insert(term.id);
    add(std::move(entry));

    const std::size_t first_node = model_.nodes.size();
    const std::size_t first_edge = model_.edges.size();
    const std::string prefix = node.key + ".";
    TRY(read(graph, prefix, scope));
    std::set<std::string, std::less<>> senders;
    for (std::size_t at = first_edge; at < model_.edges.size(); ++at) senders.insert(model_.edges[at].sender);
    std::vector<std::pair<std::string, std::string>> ends;  // keys and ids of output ports
    std::map<std::string_view, std::size_t> uses;
    for (std::size_t at = first_node; at < model_.nodes.size(); ++at) {
      if (senders.contains(model_.nodes[at].key)) continue;
      for (const OutputPort& port : model_.nodes[at].outputs) ends.emplace_back(model_.nodes[at].key, port.id);
    }
    for (const auto& end : ends) ++uses[end.second];
    const bool has_outputs = !node.outputs.empty();
    for (const auto& [key, id] : ends) {
      // The name is the port's id, or NODE.PORT, as for outputs of a model.
      const std::string name = uses[id] > 1 || names.contains(id) ? key.substr(prefix.size()) + "." + id : id;
      if (!names.insert(name).second) {
        return wrong_at(
            fmt::format("{}: node {}", where_, shown(node.id)),
            fmt::format("{} names two of its parts and of the outputs of the graph within it", shown(name)));
      }
      connect({key, id}, {node.key, name});
      node.inputs.push_back({.id = name, .default_value = nullptr, .type = {}, .shape = {}});
      if (!has_outputs) node.outputs.push_back({.id = name, .value = name_of(name), .type = {}, .shape = {}});
    }
    add(std::move(node));
    return {};
  }

  MdfModel& model_;
  std::string where_;
};

}  // namespace

std::string shown(std::string_view id) {
  return id.size() <= 60 ? fmt::format("\"{}\"", id) : fmt::format("\"{}...\"", id.substr(0, 60));
}

Result<MdfModel> read_model(const Tree& tree) {
  std::pair<std::string, const Tree*> found = TRY(find_model(tree));
  const Tree& content = *found.second;
  MdfModel model{.id = found.first, .graph = {}, .nodes = {}, .edges = {}, .names = {}};
  const std::string where = fmt::format("model {}", shown(model.id));
  TRY(check_keys(content, {"format", "generating_application", "onnx_opset_version", "graphs"}, where));
  model.opset = TRY(read_opset(content, where));
  const Tree::Map* graphs = TRY(map_at(content, "graphs", where));
  if (graphs->empty()) return wrong_at(where, "has no graph");
  const TreeEntry& graph = graphs->front();  // like the reference engine, the others are not run
  model.graph = graph.key;
  const std::string here = fmt::format("graph {}", shown(graph.key));
  TRY(check_keys(graph.tree, {"nodes", "edges", "parameters", "conditions"}, here));
  TRY(check_conditions(graph.tree, here));
  TRY(GraphReader(model, here).read(graph.tree, "", {}));
  return model;
}

}  // namespace tensorcast::models::mdf
