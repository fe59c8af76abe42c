// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/cast_elision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/lookup.hpp"
#include "models/onnx/precision/lossless_cast.hpp"

namespace tensorcast::models::onnx {
namespace {

bool is_identity(const Node& node) { return node.domain.empty() && node.op_type == "Identity"; }

bool saturates(const Node& node) {
  const Attribute* saturate = node.attribute("saturate");
  return saturate == nullptr || saturate->i != 0 || !saturate->reference.empty();
}

// What the result depends on besides the input.
std::string meaning(const Node& node, DType element, const Graph& graph) {
  std::string text = fmt::format("{}:{}", graph.id, static_cast<std::uint32_t>(element));
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name == "to") continue;
    text += fmt::format(":{}={},{},{}", attribute.name, attribute.i, attribute.s, attribute.reference);
  }
  return text;
}

}  // namespace

std::string_view reason_of(Removal removal) {
  constexpr std::string_view reasons[] = {
      "",
      "its input has the type already",
      "it gives back the value that a Cast without loss took",
      "it gives back the type that another Cast took; the value changes",
      "it gives back every code that a DequantizeLinear took: all of them were tried",
      "an earlier Cast of the graph gives the same",
      "it copies its input",
      "nothing takes its result",
  };
  return reasons[static_cast<std::size_t>(removal)];
}

CastElision::CastElision(const PrecisionPlan& plan, const Options& options)
    : plan_(plan),
      options_(options),
      removals_(plan.model().node_count),
      sources_(plan.model().values.size()),
      names_(plan.model().values.size()),
      uses_(plan.model().values.size()),
      use_counts_(plan.model().values.size()),
      was_used_(plan.model().values.size()) {
  for (ValueId id = 0; id < sources_.size(); ++id) sources_[id] = id;
  if (plan.model().has_training) return;  // its graphs may name any value of the model
  each_graph(plan_.model(), [&](const Graph& graph) { collect(graph); });
  for (ValueId id = 0; id < uses_.size(); ++id) {
    use_counts_[id] = uses_[id].size();
    was_used_[id] = use_counts_[id] > 0;
  }
  clean(*plan_.model().graph);
  for (const auto& function : plan_.model().functions) clean(function->body);
}

bool CastElision::is_candidate(const Node& node) const {
  if (node.outputs.size() != 1 || node.outputs[0] == no_value || node.inputs.empty()) return false;
  const bool is_linear = options_.codes != nullptr && (is_quantize(node) || is_dequantize(node));
  return (is_cast(node) || is_identity(node) || is_linear) && node.inputs[0] != no_value;
}

void CastElision::clean(const Graph& graph) {
  // More than once only if nodes are out of order.
  constexpr int most_rounds = 8;
  for (int round = 0; round < most_rounds && examine(graph); ++round) continue;
  for (int round = 0; round < most_rounds && remove_dead(graph); ++round) continue;
}

ValueId CastElision::source(ValueId id) const {
  if (id == no_value) return id;
  while (sources_[id] != id) id = sources_[id] = sources_[sources_[id]];
  return id;
}

void CastElision::collect(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) {
      if (id != no_value) uses_[id].push_back({.graph = &graph});
    }
  }
  for (const Declaration& output : graph.outputs) uses_[output.value].push_back({.graph = &graph, .is_output = true});
}

bool CastElision::is_changed(const Node& node) const {
  const auto& values = plan_.model().values;
  return plan_.taken(node, 0) != values[node.inputs[0]].type.element ||
         plan_.produced(node.outputs[0]) != values[node.outputs[0]].type.element;
}

bool CastElision::is_output_of_a_graph(ValueId id) const { return std::ranges::any_of(uses_[id], &Use::is_output); }

bool CastElision::is_annotated(ValueId id) const {
  const Value& value = plan_.model().values[id];
  return contains(value.graph->annotated, value.name);
}

CastElision::Found CastElision::find_round_trip(const Node& node, const Graph& graph) const {
  const ValueId middle = source(node.inputs[0]);
  const Node* first = plan_.model().values[middle].producer;
  if (first == nullptr || !is_cast(*first) || !is_candidate(*first)) return {};
  const ValueId begin = source(first->inputs[0]);
  const DType outer = plan_.produced(node.outputs[0]);
  const DType inner = plan_.produced(middle);
  const bool direct = plan_.taken(node, 0) == plan_.produced(middle) && plan_.taken(*first, 0) == plan_.produced(begin);
  if (!direct || plan_.produced(begin) != outer) return {};
  if (options_.only_changed && !is_changed(node) && !is_changed(*first)) return {};
  // A saturating Cast gives the largest finite number for the infinity of float8_e5m2.
  const bool keeps_infinity = outer != DType::float8_e5m2 || (graph.opset("") >= 19 && !saturates(node));
  if (keeps_infinity && keeps_every_value(outer, inner)) return {Removal::round_trip, begin};
  const bool both_floats = family(outer) == Family::floating && family(inner) == Family::floating;
  if (options_.lossy && both_floats) return {Removal::lossy_round_trip, begin};
  return {};
}

CastElision::Found CastElision::find_code_pair(const Node& node, const Graph& graph) const {
  if (!is_quantize(node)) return {};
  const Node* first = plan_.model().values[source(node.inputs[0])].producer;
  if (first == nullptr || !is_dequantize(*first) || !is_candidate(*first)) return {};
  return options_.codes->give_back(*first, node, graph) ? Found{Removal::code_pair, source(first->inputs[0])} : Found{};
}

CastElision::Found CastElision::find(const Node& node, const Graph& graph) {
  const auto& values = plan_.model().values;
  if (is_quantize(node) || is_dequantize(node)) return find_code_pair(node, graph);
  const ValueId taken = source(node.inputs[0]);
  if (is_identity(node)) return options_.identities ? Found{Removal::identity, taken} : Found{};
  const ValueId result = node.outputs[0];
  const DType element = plan_.produced(result);
  const Attribute* to = node.attribute("to");
  if (element == DType::undefined || !values[result].type.is_tensor() || (to != nullptr && !to->reference.empty()))
    return {};
  const bool direct = plan_.taken(node, 0) == plan_.produced(taken);
  const bool changed = !options_.only_changed || is_changed(node);
  if (changed && direct && values[taken].type.is_tensor() && plan_.produced(taken) == element) {
    return {Removal::identity_cast, taken};
  }
  if (const Found found = find_round_trip(node, graph); found.removal != Removal::none) return found;
  if (!direct) return {};
  const auto [first, is_first] = first_casts_.try_emplace({taken, meaning(node, element, graph)}, &node);
  if (is_first || first->second == &node) return {};
  if (!changed && !is_changed(*first->second)) return {};
  return {Removal::duplicate, source(first->second->outputs[0])};
}

// A graph's output keeps its name, so its source must be able to take the name.
bool CastElision::can_replace(ValueId result, ValueId other, const Graph& graph) const {
  const Value& value = plan_.model().values[other];
  bool is_output = false;
  for (const Use& use : uses_[result]) {
    if (use.is_output && use.graph != &graph) return false;  // a body returns a value from outside
    is_output = is_output || use.is_output;
  }
  const auto sees = [&](ValueId id, ValueId wanted) {
    const std::string& wanted_name = name(wanted);
    return std::ranges::all_of(uses_[id], [&](const Use& use) {
      const ValueId seen = use.graph->lookup(wanted_name);
      return seen != no_value && (seen == wanted || source(seen) == source(wanted));
    });
  };
  if (!is_output) return sees(result, other);
  if (options_.only_changed && plan_.unsettles(result, other)) return false;
  return value.producer != nullptr && value.graph == &graph && !is_output_of_a_graph(other) && !is_annotated(other) &&
         sees(other, result);
}

void CastElision::replace(const Node& node, const Found& found) {
  const ValueId result = node.outputs[0];
  if (is_output_of_a_graph(result)) names_[found.source] = &name(result);
  sources_[result] = found.source;
  uses_[found.source].insert(uses_[found.source].end(), uses_[result].begin(), uses_[result].end());
  use_counts_[found.source] += use_counts_[result];
  drop(node, found.removal);
}

void CastElision::drop(const Node& node, Removal removal) {
  removals_[node.id] = removal;
  ++removed_;
  removed_casts_ += is_cast(node) ? 1 : 0;
  for (const ValueId id : node.inputs) {
    if (id != no_value) --use_counts_[source(id)];
  }
}

bool CastElision::examine(const Graph& graph) {
  bool any = false;
  for (const Node& node : graph.nodes) {
    for (const Graph* inner : node.bodies()) any = examine(*inner) || any;
    if (!is_candidate(node) || removals_[node.id] != Removal::none) continue;
    if (use_counts_[node.outputs[0]] == 0 || is_annotated(node.outputs[0])) continue;
    const Found found = find(node, graph);
    if (found.removal == Removal::none || !can_replace(node.outputs[0], found.source, graph)) continue;
    replace(node, found);
    any = true;
  }
  return any;
}

bool CastElision::remove_dead(const Graph& graph) {
  bool any = false;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (const Graph* inner : node->bodies()) any = remove_dead(*inner) || any;
    if (!is_candidate(*node) || removals_[node->id] != Removal::none) continue;
    const ValueId result = node->outputs[0];
    if (use_counts_[result] != 0 || is_annotated(result)) continue;
    if (is_identity(*node) ? !options_.identities : options_.only_changed && !was_used_[result]) continue;
    drop(*node, Removal::dead);
    any = true;
  }
  return any;
}

}  // namespace tensorcast::models::onnx
