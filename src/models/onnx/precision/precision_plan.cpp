// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/precision_plan.hpp"

#include <algorithm>

#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/op_rules.hpp"

namespace tensorcast::models::onnx {
namespace {

// Smaller ones are constants of a computation. They keep their precision where the computation does.
constexpr std::uint64_t smallest_weight = 16;

// Returns the number of elements that an initializer or Constant stores; 0 for others.
std::uint64_t stored_count(const Value& value) {
  if (value.initializer != nullptr) return value.initializer->count;
  if (!is_constant_node(value.producer)) return 0;
  std::uint64_t count = 0;
  for (const Attribute& attribute : value.producer->attributes) {
    if (!attribute.reference.empty()) return 0;
    count = std::max<std::uint64_t>(count, std::max<std::uint64_t>(attribute.tensor_count, attribute.floats.size()));
  }
  return count;
}

}  // namespace

PrecisionPlan::PrecisionPlan(const Model& model, const Settings& settings)
    : model_(model),
      settings_(settings),
      slots_(build_slots(model, settings)),
      copied_(model.values.size()),
      fits_(model.values.size()),
      quantizations_(model.values.size()) {
  for (const Value& value : model.values) produced_.push_back(value.type.element);
}

PrecisionPlan PrecisionPlan::unchanged(const Model& model) {
  static const ::tensorcast::onnx::ConvertRequest no_change;
  PrecisionPlan plan(model, {.request = &no_change});
  plan.decide();
  return plan;
}

DType PrecisionPlan::element_in(SlotId slot, ValueId id) const {
  const ValueType& type = model_.values[id].type;
  if (slot == any_type) return produced_[id];
  if (slot == exact_type || !settings_.converts(type)) return type.element;
  return slots_.at(slot).hold == Hold::free ? settings_.to : type.element;
}

DType PrecisionPlan::taken(const Node& node, std::size_t input) const {
  return element_in(slots_.node_inputs[node.id][input], node.inputs[input]);
}

DType PrecisionPlan::given_back(const Graph& graph, std::size_t output) const {
  const ValueId id = graph.outputs[output].value;
  if (&graph == model_.graph.get()) return model_outputs_[output];
  if (graph.is_function) return produced_[id];
  return element_in(slots_.graph_outputs[graph.id][output], id);
}

bool PrecisionPlan::may_change(ValueId id) const {
  if (!settings_.converts(model_.values[id].type) || !model_.values[id].type.is_tensor()) return false;
  if (slots_.at(slots_.of_values[id]).hold == Hold::rule) return false;
  return std::ranges::any_of(slots_.uses[id], [&](const SlotId use) {
    return use == any_type || (use != exact_type && slots_.at(use).hold != Hold::rule);
  });
}

void PrecisionPlan::keep_high(ValueId id, std::string_view reason) {
  slots_.hold(slots_.of_values[id], Hold::rule, reason);
  for (const SlotId use : slots_.uses[id]) {
    if (use < exact_type) slots_.hold(use, Hold::rule, reason);
  }
}

void PrecisionPlan::keep_input(const Node& node, std::size_t input, std::string_view reason) {
  const SlotId slot = slots_.node_inputs[node.id][input];
  if (slot < exact_type) slots_.hold(slot, Hold::rule, reason);
}

// A node that only moves elements keeps its type if its input does: Casts around it would only lose digits.
void PrecisionPlan::hold_movers(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    for (const Graph* inner : node.bodies()) hold_movers(*inner);
    if (!node.domain.empty() || !only_moves_elements(node.op_type) || node.outputs.empty()) continue;
    if (node.outputs[0] == no_value || !settings_.converts(model_.values[node.outputs[0]].type)) continue;
    const SlotId own = slots_.of_values[node.outputs[0]];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      const SlotId slot = slots_.node_inputs[node.id][i];
      if (id == no_value || slot >= exact_type || slots_.root(slot) != slots_.root(own)) continue;
      const Value& value = model_.values[id];
      if (value.producer == nullptr || value.producer->op_type == "Constant" || !settings_.converts(value.type))
        continue;
      const Slots::Slot source = slots_.at(slots_.of_values[id]);
      if (source.hold != Hold::free) slots_.hold(own, source.hold, source.reason);
    }
  }
  // If a body's output keeps its type, so does the output of the node around it.
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    const SlotId slot = slots_.graph_outputs[graph.id][k];
    const Value& value = model_.values[graph.outputs[k].value];
    if (slot >= exact_type || value.producer == nullptr || !settings_.converts(value.type)) continue;
    if (value.producer->op_type == "Cast" || value.producer->op_type == "Constant") continue;
    const Slots::Slot source = slots_.at(slots_.of_values[graph.outputs[k].value]);
    if (source.hold != Hold::free) slots_.hold(slot, source.hold, source.reason);
  }
}

// A Cast has the new type only if all its consumers agree; inputs of functions and bodies have it if any consumer does.
void PrecisionPlan::hold_adapting(const Graph& graph) {
  const auto strictest = [&](const std::vector<SlotId>& uses, bool all) {
    Slots::Slot found;
    std::size_t held = 0;
    for (const SlotId use : uses) {
      const Slots::Slot here = use == exact_type
                                   ? Slots::Slot{.hold = Hold::rule, .reason = "its consumer keeps the type"}
                               : use == any_type ? Slots::Slot{}
                                                 : slots_.at(use);
      held += here.hold != Hold::free ? 1 : 0;
      if (here.hold > found.hold) found = here;
    }
    return held == 0 || (all && held < uses.size()) ? Slots::Slot{} : found;
  };
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (const Graph* inner : node->bodies()) hold_adapting(*inner);
    if (node->op_type != "Cast" || !node->domain.empty() || node->outputs.empty()) continue;
    const ValueId id = node->outputs[0];
    if (id == no_value || !settings_.converts(model_.values[id].type)) continue;
    const Slots::Slot found = strictest(slots_.uses[id], false);
    slots_.hold(slots_.of_values[id], found.hold, found.reason);
  }
  if (graph.parent == nullptr && !graph.is_function) return;
  for (const Declaration& input : graph.inputs) {
    const Slots::Slot found = strictest(slots_.uses[input.value], true);
    slots_.hold(slots_.of_values[input.value], found.hold, found.reason);
  }
}

// Inputs and initializers get the type that their consumers need.
void PrecisionPlan::decide_sources() {
  for (std::size_t id = 0; id < model_.values.size(); ++id) {
    const Value& value = model_.values[id];
    const bool is_constant = is_constant_node(value.producer);
    if (!settings_.converts(value.type) || (value.producer != nullptr && !is_constant)) continue;
    const bool is_edge = value.is_input && value.graph == model_.graph.get() && value.initializer == nullptr;
    if (value.is_input && !is_edge && value.initializer == nullptr)
      continue;  // of a subgraph or function: its slot decides
    const SlotId own = slots_.of_values[id];
    if (slots_.at(own).hold == Hold::rule) continue;
    bool low = false;
    bool high = false;
    const bool is_weight = settings_.quantizes ? quantizations_[id] != nullptr : stored_count(value) >= smallest_weight;
    const bool stays_small = !is_edge && !is_weight;
    for (const SlotId use : slots_.uses[id]) {
      const Hold held = use == any_type ? Hold::free : use == exact_type ? Hold::rule : slots_.at(use).hold;
      const bool stays_high = held == Hold::rule || (held == Hold::runtime && stays_small);
      (stays_high ? high : low) = true;
    }
    const bool wanted_low = std::ranges::any_of(
        slots_.uses[id], [&](const SlotId use) { return use < exact_type && slots_.at(use).hold == Hold::free; });
    if (is_edge || !high) {
      if (low) continue;
    } else if (wanted_low && !value.is_input && value.initializer != nullptr && !value.initializer->sparse) {
      copied_[id] = settings_.request->shared_initializers == ::tensorcast::onnx::SharedInitializers::duplicate;
    }
    slots_.hold(own, Hold::rule, "its consumers keep the type");
  }
}

// Inputs of the model, and outputs that no node makes, get the types that the request gives them.
void PrecisionPlan::decide_edges() {
  for (const auto* edges : {&model_.graph->inputs, &model_.graph->outputs}) {
    for (const Declaration& edge : *edges) {
      const auto given = settings_.io_elements.find(edge.name);
      if (given == settings_.io_elements.end() || model_.values[edge.value].producer != nullptr) continue;
      produced_[edge.value] = given->second;
    }
  }
}

void PrecisionPlan::decide_outputs() {
  model_outputs_.clear();
  for (const Declaration& output : model_.graph->outputs) {
    const Value& value = model_.values[output.value];
    DType element = produced_[output.value];
    const auto given = settings_.io_elements.find(output.name);
    if (given != settings_.io_elements.end() && value.producer != nullptr) {
      element = given->second;
    } else if (settings_.converts(value.type) && value.type.is_tensor() && value.producer != nullptr) {
      if (keeps_edge(model_, settings_, output)) {
        element = value.type.element;
      } else if (slots_.at(slots_.of_values[output.value]).hold == Hold::runtime) {
        element = settings_.to;
      }
    }
    model_outputs_.push_back(element);
  }
}

// decide_outputs() looks at what makes an output: a Cast, or what the runtime holds.
bool PrecisionPlan::unsettles(ValueId output, ValueId source) const {
  if (slots_.at(slots_.of_values[source]).hold != Hold::runtime || produced_[source] == settings_.to) return false;
  const auto& outputs = model_.graph->outputs;
  return std::ranges::any_of(outputs, [&](const Declaration& declared) {
    return declared.value == output && !keeps_edge(model_, settings_, declared) &&
           !settings_.io_elements.contains(declared.name);
  });
}

void PrecisionPlan::decide() {
  for (const Declaration& output : model_.graph->outputs) {
    slots_.uses[output.value].push_back(keeps_edge(model_, settings_, output) ? exact_type : any_type);
  }
  // One rule may give another a reason; holds only grow. A model that needs more rounds gets Casts that it could do
  // without.
  constexpr int most_rounds = 64;
  for (int round = 0; round < most_rounds; ++round) {
    const std::size_t before = slots_.holds();
    hold_movers(*model_.graph);
    for (const auto& function : model_.functions) hold_movers(function->body);
    hold_adapting(*model_.graph);
    for (const auto& function : model_.functions) hold_adapting(function->body);
    if (slots_.holds() == before) break;
  }
  decide_sources();
  for (std::size_t id = 0; id < model_.values.size(); ++id) {
    const Value& value = model_.values[id];
    if (!settings_.converts(value.type)) continue;
    produced_[id] = slots_.at(slots_.of_values[id]).hold == Hold::free ? settings_.to : value.type.element;
  }
  decide_edges();
  decide_outputs();
}

bool PrecisionPlan::is_converted(const Node& node) const {
  const auto changed = [&](ValueId id, DType element) {
    return id != no_value && element != model_.values[id].type.element;
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != no_value && changed(node.inputs[i], taken(node, i))) return true;
  }
  return std::ranges::any_of(node.outputs, [&](ValueId id) { return id != no_value && changed(id, produced_[id]); });
}

std::string_view PrecisionPlan::reason_of(SlotId slot, ValueId id) const {
  if (slot == exact_type) return "its consumer keeps the type";
  if (slot == any_type) return produced_[id] == model_.values[id].type.element ? "it is made in this type" : "";
  return slots_.at(slot).reason;
}

::tensorcast::onnx::NodeDecision PrecisionPlan::explain(const Node& node) const {
  ::tensorcast::onnx::NodeDecision decision{.name = shown_name(node), .op_type = node.op_type, .scope = {}};
  const auto dtype = [&](ValueId id, DType element) {
    return model_.values[id].type.kind == ValueType::Kind::unknown ? DType::undefined : known(element);
  };
  const auto add = [&](ValueId id, bool is_input, DType element, SlotId slot) {
    const Value& value = model_.values[id];
    const bool stays = element == value.type.element && settings_.converts(value.type);
    decision.values.push_back({.value = value.name,
                               .is_input = is_input,
                               .from = dtype(id, value.type.element),
                               .to = dtype(id, element),
                               .has_cast = is_input && element != produced_[id] && !copied_[id],
                               .reason = stays ? reason_of(slot, id) : std::string_view()});
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != no_value) add(node.inputs[i], true, taken(node, i), slots_.node_inputs[node.id][i]);
  }
  for (const ValueId id : node.outputs) {
    if (id != no_value) add(id, false, produced_[id], slots_.of_values[id]);
  }
  return decision;
}

std::vector<::tensorcast::onnx::KeptNode> PrecisionPlan::kept_nodes() const {
  std::vector<::tensorcast::onnx::KeptNode> kept;
  each_graph(model_, [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      std::string_view reason;
      bool has_float = false;
      const auto look = [&](ValueId id, SlotId slot) {
        if (id == no_value || !settings_.converts(model_.values[id].type)) return;
        has_float = true;
        if (slot < exact_type && !slots_.at(slot).reason.empty()) reason = slots_.at(slot).reason;
      };
      for (std::size_t i = 0; i < node.inputs.size(); ++i) look(node.inputs[i], slots_.node_inputs[node.id][i]);
      for (const ValueId id : node.outputs) look(id, id == no_value ? any_type : slots_.of_values[id]);
      if (!has_float || is_converted(node)) continue;
      kept.push_back({.name = shown_name(node),
                      .op_type = node.op_type,
                      .reason = reason.empty() ? "its operator takes and gives the old type" : reason});
    }
  });
  return kept;
}

}  // namespace tensorcast::models::onnx
