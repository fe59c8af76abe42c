#include "models/mdf/mdf_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <set>

#include "models/mdf/mdf_number.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::models::mdf {
namespace {

std::string shown(std::string_view id) {
  return id.size() <= 60 ? fmt::format("\"{}\"", id) : fmt::format("\"{}...\"", id.substr(0, 60));
}

Error parse_error(const std::string& where, const std::string& what) {
  return Error{.code = ErrorCode::parse, .message = fmt::format("{}: {}", where, what)};
}

Error unsupported(const std::string& where, const std::string& what) {
  return Error{.code = ErrorCode::unsupported, .message = fmt::format("{}: {}", where, what)};
}

bool is_empty(const Tree* tree) {
  if (tree == nullptr || tree->is_null()) return true;
  const auto* map = tree->as<Tree::Map>();
  const auto* list = tree->as<Tree::List>();
  return (map != nullptr && map->empty()) || (list != nullptr && list->empty());
}

// The map under a key; null when it is missing, null or empty.
Result<const Tree::Map*> map_at(const Tree& tree, std::string_view key, const std::string& where) {
  const Tree* found = tree.find(key);
  if (is_empty(found)) return nullptr;
  if (const auto* map = found->as<Tree::Map>()) return map;
  return parse_error(where, fmt::format("{} is {}, not a map", key, found->kind()));
}

Result<std::string> text_at(const Tree& tree, std::string_view key, const std::string& where) {
  const Tree* found = tree.find(key);
  if (found == nullptr || found->is_null()) return std::string();
  if (const auto* text = found->as<std::string>()) return *text;
  return parse_error(where, fmt::format("{} is {}, not a text", key, found->kind()));
}

// What nobody here knows might matter.
Result<void> check_keys(const Tree& tree, std::initializer_list<std::string_view> known, const std::string& where) {
  const auto* map = tree.as<Tree::Map>();
  if (map == nullptr) return parse_error(where, fmt::format("is {}, not a map", tree.kind()));
  for (const TreeEntry& entry : *map) {
    if (entry.key == "id" || entry.key == "metadata" || entry.key == "notes") continue;
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      return unsupported(where, fmt::format("the field {} is not known", shown(entry.key)));
    }
  }
  return {};
}

const Tree* value_at(const Tree& tree, std::string_view key) {
  const Tree* found = tree.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

// A list of lengths, or Python's text of a tuple. What is no number is a symbol: any length, or any shape at all.
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
  // Also what ports have that were never given a shape.
  return shape.empty() ? std::nullopt : std::optional(std::move(shape));
}

Result<InputPort> read_input(const std::string& id, const Tree& tree, const std::string& where) {
  const std::string here = fmt::format("{}: input port {}", where, shown(id));
  if (Result<void> checked = check_keys(tree, {"default_value", "shape", "type", "reduce"}, here); !checked) {
    return std::move(checked).error();
  }
  Result<std::string> type = text_at(tree, "type", here);
  if (!type) return std::move(type).error();
  Result<std::string> reduce = text_at(tree, "reduce", here);
  if (!reduce) return std::move(reduce).error();
  if (!reduce->empty() && *reduce != "overwrite" && *reduce != "add" && *reduce != "multiply") {
    return parse_error(here, fmt::format("reduce {} is none of overwrite, add, multiply", shown(*reduce)));
  }
  return InputPort{
      .id = id, .default_value = value_at(tree, "default_value"), .type = std::move(*type), .shape = read_shape(tree)};
}

Result<OutputPort> read_output(const std::string& id, const Tree& tree, const std::string& where) {
  const std::string here = fmt::format("{}: output port {}", where, shown(id));
  if (Result<void> checked = check_keys(tree, {"value", "shape", "type"}, here); !checked) {
    return std::move(checked).error();
  }
  Result<std::string> type = text_at(tree, "type", here);
  if (!type) return std::move(type).error();
  OutputPort port{.id = id, .value = value_at(tree, "value"), .type = std::move(*type), .shape = read_shape(tree)};
  if (port.value == nullptr) return parse_error(here, "has no value");
  return port;
}

Result<Term> read_term(const std::string& id, const Tree& tree, bool is_function, const std::string& where) {
  const std::string here = fmt::format("{}: {} {}", where, is_function ? "function" : "parameter", shown(id));
  if (Result<void> checked = check_keys(
          tree, {"value", "function", "args", "default_initial_value", "time_derivative", "conditions"}, here);
      !checked) {
    return std::move(checked).error();
  }
  for (const char* state : {"default_initial_value", "time_derivative"}) {
    if (value_at(tree, state) != nullptr) return unsupported(here, fmt::format("has state ({})", state));
  }
  if (!is_empty(tree.find("conditions"))) return unsupported(here, "has conditions");

  Term term{.id = id, .value = value_at(tree, "value"), .function = {}, .args = {}, .is_function = is_function};
  if (const Tree* function = value_at(tree, "function"); function != nullptr) {
    const auto* text = function->as<std::string>();
    if (text == nullptr) return unsupported(here, fmt::format("the function is {}, not a name", function->kind()));
    term.function = *text;
  }
  if (term.value != nullptr && !term.function.empty()) return parse_error(here, "has a value and a function");
  if (term.value == nullptr && term.function.empty()) return parse_error(here, "has neither value nor function");
  const Result<const Tree::Map*> args = map_at(tree, "args", here);
  if (!args) return args.error();
  if (*args != nullptr) {
    for (const TreeEntry& entry : **args) term.args.emplace_back(entry.key, &entry.tree);
  }
  return term;
}

Result<Node> read_node(const std::string& id, const Tree& tree, const std::string& graph) {
  const std::string where = fmt::format("{}: node {}", graph, shown(id));
  if (tree.find("nodes") != nullptr) return unsupported(where, "is a graph of its own");
  if (Result<void> checked = check_keys(tree, {"input_ports", "functions", "parameters", "output_ports"}, where);
      !checked) {
    return std::move(checked).error();
  }
  Node node{.id = id, .inputs = {}, .terms = {}, .outputs = {}};
  std::set<std::string_view> names;
  const auto is_new = [&](const std::string& name) { return names.insert(name).second; };
  const auto twice = [&](const std::string& name) {
    return parse_error(where, fmt::format("{} names two of its ports, functions and parameters", shown(name)));
  };
  const Result<const Tree::Map*> inputs = map_at(tree, "input_ports", where);
  if (!inputs) return inputs.error();
  if (*inputs != nullptr) {
    for (const TreeEntry& entry : **inputs) {
      Result<InputPort> port = read_input(entry.key, entry.tree, where);
      if (!port) return std::move(port).error();
      node.inputs.push_back(std::move(*port));
    }
  }
  for (const char* list : {"functions", "parameters"}) {
    const Result<const Tree::Map*> terms = map_at(tree, list, where);
    if (!terms) return terms.error();
    if (*terms == nullptr) continue;
    for (const TreeEntry& entry : **terms) {
      Result<Term> term = read_term(entry.key, entry.tree, list == std::string_view("functions"), where);
      if (!term) return std::move(term).error();
      node.terms.push_back(std::move(*term));
    }
  }
  for (const InputPort& port : node.inputs) {
    if (!is_new(port.id)) return twice(port.id);
  }
  for (const Term& term : node.terms) {
    if (!is_new(term.id)) return twice(term.id);
  }
  const Result<const Tree::Map*> outputs = map_at(tree, "output_ports", where);
  if (!outputs) return outputs.error();
  if (*outputs == nullptr) return node;
  for (const TreeEntry& entry : **outputs) {
    Result<OutputPort> port = read_output(entry.key, entry.tree, where);
    if (!port) return std::move(port).error();
    node.outputs.push_back(std::move(*port));
  }
  return node;
}

Result<Edge> read_edge(const std::string& id, const Tree& tree, const std::string& graph) {
  const std::string where = fmt::format("{}: edge {}", graph, shown(id));
  if (Result<void> checked =
          check_keys(tree, {"sender", "receiver", "sender_port", "receiver_port", "parameters"}, where);
      !checked) {
    return std::move(checked).error();
  }
  Edge edge;
  edge.id = id;
  for (const auto& [key, target] :
       {std::pair("sender", &edge.sender), std::pair("receiver", &edge.receiver),
        std::pair("sender_port", &edge.sender_port), std::pair("receiver_port", &edge.receiver_port)}) {
    Result<std::string> text = text_at(tree, key, where);
    if (!text) return std::move(text).error();
    if (text->empty()) return parse_error(where, fmt::format("has no {}", key));
    *target = std::move(*text);
  }
  const Result<const Tree::Map*> parameters = map_at(tree, "parameters", where);
  if (!parameters) return parameters.error();
  if (*parameters == nullptr) return edge;
  for (const TreeEntry& entry : **parameters) {
    if (entry.key != "weight")
      return unsupported(where, fmt::format("the parameter {} is not known", shown(entry.key)));
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
    return unsupported(where, node + "runs on a condition; every node is run once");
  }
  if (!is_empty(conditions->find("termination"))) {
    return unsupported(where, "ends on a condition; every node is run once");
  }
  return {};
}

Result<int> read_opset(const Tree& model, const std::string& where) {
  const Tree* found = value_at(model, "onnx_opset_version");
  if (found == nullptr) return 15;
  std::optional<Tree> number;
  if (const auto* text = found->as<std::string>()) number = parse_number(*text);
  const auto* opset = number ? number->as<std::int64_t>() : found->as<std::int64_t>();
  if (opset == nullptr) return parse_error(where, "onnx_opset_version is not a whole number");
  if (*opset >= 1 && *opset <= newest_opset) return static_cast<int>(*opset);
  return unsupported(where, fmt::format("onnx_opset_version is {}; 1 to {} are known", *opset, newest_opset));
}

// {ID: {"graphs": ...}}, or the inner map alone.
Result<std::pair<std::string, const Tree*>> find_model(const Tree& tree) {
  if (tree.find("graphs") != nullptr) return std::pair(std::string(), &tree);
  const auto* map = tree.as<Tree::Map>();
  if (map != nullptr && map->size() == 1 && map->front().tree.find("graphs") != nullptr) {
    return std::pair(map->front().key, &map->front().tree);
  }
  return Error{.code = ErrorCode::parse, .message = "not an MDF model: no map {ID: {graphs: ...}}"};
}

}  // namespace

Result<MdfModel> read_model(const Tree& tree) {
  Result<std::pair<std::string, const Tree*>> found = find_model(tree);
  if (!found) return std::move(found).error();
  const Tree& content = *found->second;
  MdfModel model{.id = found->first, .graph = {}, .nodes = {}, .edges = {}};
  const std::string where = fmt::format("model {}", shown(model.id));
  if (Result<void> checked =
          check_keys(content, {"format", "generating_application", "onnx_opset_version", "graphs"}, where);
      !checked) {
    return std::move(checked).error();
  }
  const Result<int> opset = read_opset(content, where);
  if (!opset) return opset.error();
  model.opset = *opset;
  const Result<const Tree::Map*> graphs = map_at(content, "graphs", where);
  if (!graphs) return graphs.error();
  if (*graphs == nullptr) return parse_error(where, "has no graph");
  const TreeEntry& graph = (*graphs)->front();  // the others are not run, as by the reference engine
  model.graph = graph.key;
  const std::string here = fmt::format("graph {}", shown(graph.key));
  if (Result<void> checked = check_keys(graph.tree, {"nodes", "edges", "parameters", "conditions"}, here); !checked) {
    return std::move(checked).error();
  }
  if (Result<void> checked = check_conditions(graph.tree, here); !checked) return std::move(checked).error();

  const Result<const Tree::Map*> nodes = map_at(graph.tree, "nodes", here);
  if (!nodes) return nodes.error();
  if (*nodes == nullptr) return parse_error(here, "has no nodes");
  for (const TreeEntry& entry : **nodes) {
    Result<Node> node = read_node(entry.key, entry.tree, here);
    if (!node) return std::move(node).error();
    model.nodes.push_back(std::move(*node));
  }
  const Result<const Tree::Map*> edges = map_at(graph.tree, "edges", here);
  if (!edges) return edges.error();
  if (*edges == nullptr) return model;
  for (const TreeEntry& entry : **edges) {
    Result<Edge> edge = read_edge(entry.key, entry.tree, here);
    if (!edge) return std::move(edge).error();
    model.edges.push_back(std::move(*edge));
  }
  return model;
}

}  // namespace tensorcast::models::mdf
