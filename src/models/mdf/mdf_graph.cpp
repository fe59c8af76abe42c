// SPDX-License-Identifier: Apache-2.0
#include "models/mdf/mdf_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "graph/node_order.hpp"
#include "graph/value_type.hpp"
#include "models/mdf/mdf_function.hpp"
#include "models/mdf/mdf_literal.hpp"
#include "models/mdf/mdf_number.hpp"
#include "models/mdf/mdf_value.hpp"
#include "models/mdf/mdf_wiring.hpp"

namespace tensorcast::models::mdf {
namespace {

// Limit of the zeros made for unset inputs: ports may name any shape. Over the limit, a run must give the input.
constexpr std::size_t max_zeros_bytes = std::size_t{64} << 20;

// A graph's input, which may feed ports of several nodes.
struct Input {
  DType dtype = DType::undefined;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<Tensor> default_value;
  bool is_declared = false;  // whether a port declares the type
};

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && std::ranges::equal(a.shape(), b.shape()) &&
         std::ranges::equal(a.bytes(), b.bytes()) && a.dtype() != DType::string;
}

class Builder {
 public:
  Builder(const MdfModel& model, const LoadModelOptions& options)
      : model_(model),
        options_(options),
        semantics_(options.mdf_semantics),
        values_(graph_, semantics_),
        functions_(values_, model.opset, semantics_) {}

  Result<Graph> build() {
    wiring_ = TRY(connect(model_, semantics_));
    graph_.name = model_.graph;
    TRY(add_inputs());
    TRY(name_outputs());
    for (const std::size_t index : wiring_.order) {
      TRY(add_node(index));
    }
    TRY(add_outputs());
    return std::move(graph_);
  }

 private:
  using Scope = std::map<std::string, Value, std::less<>>;

  std::string where(const Node& node) const {
    return fmt::format("graph {}: node {}", shown(model_.graph), shown(node.id));
  }

  // --- inputs: a value given for an id serves every port of that id that no edge feeds ---

  Result<Input> describe_input(const InputPort& port, const std::string& where) {
    Input input{.dtype = declared_type(port.type, semantics_), .shape = port.shape, .default_value = std::nullopt};
    input.is_declared = input.dtype != DType::undefined;
    std::optional<Tensor> given;
    if (port.default_value != nullptr) {
      std::optional<Tree> number;
      if (const auto* text = port.default_value->as<std::string>()) number = parse_number(*text);
      given = TRY(at(where + ": default_value", literal_tensor(number ? *number : *port.default_value)));
      // The reference engine passes a number to an operator as an array of one element.
      const bool number_alone = given->shape().empty() && given->dtype() != DType::string;
      if (semantics_ == MdfSemantics::mdf_reference && number_alone) given = given->reshaped({1}).value();
    } else if (semantics_ == MdfSemantics::mdf_reference) {
      const std::vector<std::int64_t> shape = port.shape.value_or(std::vector<std::int64_t>());
      if (!contains(shape, -1)) {
        const bool real = port.type.find("float") != std::string::npos;
        given = zeros_of(real ? DType::float64 : DType::int64, shape, zeros_budget_);
      }
    }
    if (!given) return input;
    if (input.dtype == DType::undefined && port.default_value != nullptr && semantics_ == MdfSemantics::mdf_reference) {
      input.dtype = given->dtype();
    }
    if (input.dtype != DType::undefined) given = TRY(at(where + ": default_value", converted_to(input.dtype, *given)));
    if (input.shape && !graph::shapes_agree(*input.shape, given->shape())) {
      if (port.default_value != nullptr && semantics_ == MdfSemantics::onnx) {
        return parse_error(where + ": default_value has another shape than the port");
      }
      input.shape.reset();
    }
    input.default_value = std::move(given);
    return input;
  }

  // Reports whether one value can feed both; if so, `a` is narrowed to the facts of both.
  static bool merge(Input& a, const Input& b) {
    if (a.dtype != b.dtype && a.dtype != DType::undefined && b.dtype != DType::undefined) return false;
    if (a.shape && b.shape && !graph::shapes_agree(*a.shape, *b.shape)) return false;
    if (a.default_value && b.default_value && !same(*a.default_value, *b.default_value)) return false;
    if (!b.default_value) a.default_value.reset();
    a.is_declared = a.is_declared || b.is_declared;
    if (a.dtype == DType::undefined) a.dtype = b.dtype;
    if (a.dtype != DType::undefined && a.default_value && a.default_value->dtype() != a.dtype) return false;
    if (!a.shape) a.shape = b.shape;
    if (a.shape && b.shape) {
      for (std::size_t i = 0; i < a.shape->size(); ++i) (*a.shape)[i] = std::max((*a.shape)[i], (*b.shape)[i]);
    }
    return true;
  }

  // Requires a type: a given value may have another type than the default that it replaces.
  void ask_type(const std::string& name, Input& input) const {
    if (input.is_declared || !options_.input_type) return;
    const DType dtype = options_.input_type(name);
    if (dtype == DType::undefined) return;
    if (input.default_value && input.default_value->dtype() != dtype) input.default_value.reset();
    input.dtype = dtype;
  }

  Result<void> add_inputs() {
    std::vector<std::string> ids;  // in the file's order
    std::map<std::string, std::vector<std::pair<PortAddress, Input>>> ports;
    for (std::size_t index = 0; index < model_.nodes.size(); ++index) {
      const Node& node = model_.nodes[index];
      for (const InputPort& port : node.inputs) {
        const PortAddress address{index, port.id};
        if (wiring_.incoming.contains(address)) continue;
        Input input = TRY(describe_input(port, fmt::format("{}: input port {}", where(node), shown(port.id))));
        auto& same_id = ports[port.id];
        if (same_id.empty()) ids.push_back(port.id);
        same_id.emplace_back(address, std::move(input));
      }
    }
    for (const std::string& id : ids) {
      auto& users = ports[id];
      Input merged = users.front().second;
      const bool one =
          std::all_of(users.begin() + 1, users.end(), [&](auto& user) { return merge(merged, user.second); });
      if (one) ask_type(id, merged);
      for (auto& [address, input] : users) {
        const std::string name = one ? id : model_.nodes[address.node].id + "." + id;
        if (!one) ask_type(name, input);
        const Input& used = one ? merged : input;
        if (!one || address == users.front().first) {
          if (!values_.claim(name)) {
            return parse_error(
                fmt::format("{}: two inputs would be named {}", where(model_.nodes[address.node]), shown(name)));
          }
          graph_.inputs.push_back({name, used.dtype, used.shape, used.default_value});
        }
        fed_[address] = Value{.name = name, .dtype = used.dtype, .shape = used.shape};
      }
    }
    return {};
  }

  // --- nodes ---

  Result<Value> port_value(std::size_t index, const InputPort& port) {
    const PortAddress address{index, port.id};
    const auto incoming = wiring_.incoming.find(address);
    if (incoming == wiring_.incoming.end()) return fed_.at(address);
    const Edge& edge = *incoming->second;
    const std::string here = fmt::format("graph {}: edge {}", shown(model_.graph), shown(edge.id));
    Value value = sent_.at({wiring_.nodes.find(edge.sender)->second, edge.sender_port});
    if (edge.weight != nullptr) {
      value = TRY(at(here, values_.weigh(value, *edge.weight, fmt::format("{}.weight", edge.id))));
    }
    TRY(at(fmt::format("{}: input port {}", where(model_.nodes[index]), shown(port.id)),
           check_declared(value, port.type, port.shape)));
    return value;
  }

  Result<void> check_declared(const Value& value, const std::string& type,
                              const std::optional<std::vector<std::int64_t>>& shape) const {
    if (semantics_ != MdfSemantics::onnx) return {};  // the reference engine ignores them
    const DType declared = declared_type(type, semantics_);
    if (declared != DType::undefined && value.dtype != DType::undefined && declared != value.dtype) {
      return parse_error(fmt::format("its type is {}, but the value is {}", name(declared), name(value.dtype)));
    }
    if (shape && value.shape && !graph::shapes_agree(*shape, *value.shape))
      return parse_error("its shape is not that of the value");
    return {};
  }

  Result<void> add_node(std::size_t index) {
    const Node& node = model_.nodes[index];
    Scope scope;
    for (const InputPort& port : node.inputs) {
      Value value = TRY(port_value(index, port));
      scope.emplace(port.id, std::move(value));
    }
    std::vector<std::size_t> order = TRY(term_order(node));
    for (const std::size_t place : order) {
      const Term& term = node.terms[place];
      const std::string here =
          fmt::format("{}: {} {}", where(node), term.is_function ? "function" : "parameter", shown(term.id));
      Value value = TRY(at(here, evaluate(node, term, scope)));
      scope.emplace(term.id, std::move(value));
    }
    for (const OutputPort& port : node.outputs) {
      const std::string here = fmt::format("{}: output port {}", where(node), shown(port.id));
      Value value = TRY(at(here, resolve(*port.value, scope)));
      if (value.is_text()) return at(here, unknown_identifier(*port.value->as<std::string>()));
      TRY(at(here, check_declared(value, port.type, port.shape)));
      sent_.emplace(PortAddress{index, port.id}, std::move(value));
    }
    return {};
  }

  // Orders terms so that each comes after those that it names.
  Result<std::vector<std::size_t>> term_order(const Node& node) const {
    std::map<std::string_view, std::size_t> ids;
    for (std::size_t at = 0; at < node.terms.size(); ++at) ids.emplace(node.terms[at].id, at);
    graph::Predecessors needs(node.terms.size());
    for (std::size_t at = 0; at < node.terms.size(); ++at) {
      const Term& term = node.terms[at];
      const auto need = [&](std::string_view name) {
        const auto found = ids.find(name);
        if (found != ids.end()) needs[at].push_back(found->second);
      };
      for (const auto& [name, expression] : term.args) {
        if (const auto* text = expression->as<std::string>()) need(*text);
      }
      if (const std::optional<Function> function = find_function(term)) {
        for (const std::string_view name : names_of(*function)) {
          const bool given = std::ranges::any_of(term.args, [&](auto& arg) { return arg.first == name; });
          if (!given && name != term.id) need(name);
        }
      } else if (const auto* text = term.value == nullptr ? nullptr : term.value->as<std::string>()) {
        need(*text);
      }
    }
    std::vector<std::size_t> order = graph::order_nodes(needs);
    if (order.size() == node.terms.size()) return order;
    const std::set<std::size_t> placed(order.begin(), order.end());
    std::size_t first = 0;
    while (placed.contains(first)) ++first;
    const std::string here = fmt::format("{}: {}", where(node), shown(node.terms[first].id));
    return contains(needs[first], first) ? unsupported(here + " has state: it is given by itself")
                                         : parse_error(here + " depends on itself: a cycle");
  }

  static Error unknown_identifier(const std::string& text) {
    const bool word = text.find_first_of(" +-*/%()[]{}<>=!,\"'") == std::string::npos;
    return word ? parse_error(fmt::format("{} is not a port, function or parameter of the node", shown(text)))
                : unsupported(fmt::format("the expression {} is not evaluated", shown(text)),
                              "values are names, numbers and lists of numbers");
  }

  // Resolves a name, a number or a list. Any other text stays a text, which only round_mode can be.
  static Result<Value> resolve(const Tree& tree, const Scope& scope) {
    if (const auto* text = tree.as<std::string>()) {
      if (const auto found = scope.find(*text); found != scope.end()) return found->second;
      if (const auto number = parse_number(*text)) return Values::literal(*number);
      return Value{.text = *text};
    }
    return Values::literal(tree);
  }

  Result<Value> evaluate(const Node& node, const Term& term, const Scope& scope) {
    const std::optional<Function> function = find_function(term);
    if (!function && term.function.empty()) {
      Result<Value> value = resolve(*term.value, scope);
      if (value && value->is_text() && term.id != "round_mode") return unknown_identifier(value->text);
      return value;
    }
    if (!function) {
      return unsupported(fmt::format("the function {} is not run", shown(term.function)),
                         "onnx::Cast, onnx::CastLike, onnx::Identity and onnx::Constant are");
    }
    Scope arguments;
    for (const auto& [name, expression] : term.args) {
      // An argument may name an earlier one.
      const auto* text = expression->as<std::string>();
      const auto before = text == nullptr ? arguments.end() : arguments.find(*text);
      const std::string here = fmt::format("argument {}", shown(name));
      Value value = TRY(before != arguments.end() ? before->second : at(here, resolve(*expression, scope)));
      if (value.is_text() && name != "round_mode") return at(here, unknown_identifier(value.text));
      arguments.insert_or_assign(name, std::move(value));
    }
    TRY(functions_.check_arguments(*function, term));
    // Inputs and attributes without an argument may be other parts of the node with that name.
    for (const std::string_view name : names_of(*function)) {
      if (name == term.id || arguments.contains(name)) continue;
      if (const auto found = scope.find(name); found != scope.end()) arguments.emplace(name, found->second);
    }
    return functions_.apply(*function, arguments, node.id + "." + term.id);
  }

  // --- outputs: ports of nodes that no edge leaves ---

  Result<void> name_outputs() {
    std::map<std::string, std::size_t> uses;
    for (std::size_t index = 0; index < model_.nodes.size(); ++index) {
      if (wiring_.sends[index]) continue;
      for (const OutputPort& port : model_.nodes[index].outputs) {
        outputs_.emplace_back(PortAddress{index, port.id}, port.id);
        ++uses[port.id];
      }
    }
    for (auto& [address, name] : outputs_) {
      if (uses[address.port] == 1 && values_.claim(name)) continue;
      const Node& node = model_.nodes[address.node];
      name = node.id + "." + address.port;
      if (!values_.claim(name)) {
        return parse_error(fmt::format("{}: another input or output is named {} too", where(node), shown(name)));
      }
    }
    return {};
  }

  Result<void> add_outputs() {
    if (outputs_.empty()) {
      return parse_error(fmt::format("graph {}: no node has an output that is not sent on", shown(model_.graph)));
    }
    for (const auto& [address, name] : outputs_) {
      const Value& value = sent_.at(address);
      values_.give_as(value, name, model_.nodes[address.node].id);
      graph_.outputs.push_back({.name = name, .dtype = value.dtype, .shape = value.shape});
    }
    return {};
  }

  const MdfModel& model_;
  const LoadModelOptions& options_;
  MdfSemantics semantics_;
  std::size_t zeros_budget_ = max_zeros_bytes;
  Wiring wiring_;
  Graph graph_;
  Values values_;
  Functions functions_;
  std::map<PortAddress, Value> fed_;   // input ports that are the graph's inputs
  std::map<PortAddress, Value> sent_;  // output ports
  std::vector<std::pair<PortAddress, std::string>> outputs_;
};

}  // namespace

Result<Graph> build_graph(const MdfModel& model, const LoadModelOptions& options) {
  return Builder(model, options).build();
}

}  // namespace tensorcast::models::mdf
