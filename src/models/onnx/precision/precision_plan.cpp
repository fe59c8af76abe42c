#include "models/onnx/precision/precision_plan.hpp"

#include <algorithm>

#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/precision/slot_builder.hpp"

namespace tensorcast::models::onnx {
namespace {

// Smaller ones are constants of a computation. They keep their precision where the computation does.
constexpr std::uint64_t smallest_weight = 16;

}  // namespace

PrecisionPlan::PrecisionPlan(const Model& model, const Settings& settings)
    : model_(model),
      settings_(settings),
      copied_(model.values.size()),
      fits_(model.values.size()),
      quantizations_(model.values.size()) {
  SlotBuilder(*this).build();
  for (const Value& value : model.values) produced_.push_back(value.type.element);
}

PrecisionPlan PrecisionPlan::unchanged(const Model& model) {
  static const ::tensorcast::onnx::ConvertRequest no_change;
  PrecisionPlan plan(model, {.to = 0, .from = 0, .request = &no_change});
  plan.decide();
  return plan;
}

SlotId PrecisionPlan::root(SlotId slot) const {
  while (slots_[slot].parent != slot) slot = slots_[slot].parent = slots_[slots_[slot].parent].parent;
  return slot;
}

void PrecisionPlan::unite(SlotId a, SlotId b) {
  a = root(a);
  b = root(b);
  if (a == b) return;
  // The older one stays the root, so that results do not depend on the order of calls.
  if (b < a) std::swap(a, b);
  hold(a, slots_[b].hold, slots_[b].reason);
  slots_[b].parent = a;
}

void PrecisionPlan::hold(SlotId slot, Hold how, std::string_view reason) {
  Slot& held = slots_[root(slot)];
  if (how <= held.hold) return;
  ++held_slots_;
  held.hold = how;
  held.reason = reason;
}

// Before IR version 4 every initializer had to be an input, too.
bool PrecisionPlan::keeps_edge(const Declaration& edge) const {
  const ::tensorcast::onnx::ConvertRequest& request = *settings_.request;
  if (const auto given = settings_.io_elements.find(edge.name); given != settings_.io_elements.end()) {
    return given->second == model_.values[edge.value].type.element;
  }
  const auto& names = request.keep_io_names;
  if (std::find(names.begin(), names.end(), edge.name) != names.end()) return true;
  const Value& value = model_.values[edge.value];
  if (value.is_input && value.initializer != nullptr && model_.ir_version < 4) return false;
  return request.keep_io_types || request.weights_only;
}

std::uint32_t PrecisionPlan::element_in(SlotId slot, ValueId id) const {
  const ValueType& type = model_.values[id].type;
  if (slot == any_type) return produced_[id];
  if (slot == exact_type || !settings_.converts(type)) return type.element;
  return at(slot).hold == Hold::free ? settings_.to : type.element;
}

std::uint32_t PrecisionPlan::taken(const Node& node, std::size_t input) const {
  return element_in(node_inputs_[node.id][input], node.inputs[input]);
}

std::uint32_t PrecisionPlan::given_back(const Graph& graph, std::size_t output) const {
  const ValueId id = graph.outputs[output].value;
  if (&graph == model_.graph.get()) return model_outputs_[output];
  if (graph.is_function) return produced_[id];
  return element_in(graph_outputs_[graph.id][output], id);
}

bool PrecisionPlan::may_change(ValueId id) const {
  if (!settings_.converts(model_.values[id].type) || !model_.values[id].type.is_tensor()) return false;
  if (at(value_slots_[id]).hold == Hold::rule) return false;
  return std::any_of(uses_[id].begin(), uses_[id].end(), [&](const Use& use) {
    return use.slot == any_type || (use.slot != exact_type && at(use.slot).hold != Hold::rule);
  });
}

void PrecisionPlan::keep_high(ValueId id, std::string_view reason) {
  hold(value_slots_[id], Hold::rule, reason);
  for (const Use& use : uses_[id]) {
    if (use.slot < exact_type) hold(use.slot, Hold::rule, reason);
  }
}

// What moves elements of a type that stays, stays: two Casts around it would only lose digits.
void PrecisionPlan::hold_movers(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    for (const Attribute& attribute : node.attributes) {
      for (const auto& inner : attribute.graphs) hold_movers(*inner);
    }
    if (!node.domain.empty() || !only_moves_elements(node.op_type) || node.outputs.empty()) continue;
    if (node.outputs[0] == no_value || !settings_.converts(model_.values[node.outputs[0]].type)) continue;
    const SlotId own = value_slots_[node.outputs[0]];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      const SlotId slot = node_inputs_[node.id][i];
      if (id == no_value || slot >= exact_type || root(slot) != root(own)) continue;
      const Value& value = model_.values[id];
      if (value.producer == nullptr || value.producer->op_type == "Constant" || !settings_.converts(value.type))
        continue;
      const Slot source = at(value_slots_[id]);
      if (source.hold != Hold::free) hold(own, source.hold, source.reason);
    }
  }
  // What a body gives back in a type that stays, the node around it gives on.
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    const SlotId slot = graph_outputs_[graph.id][k];
    const Value& value = model_.values[graph.outputs[k].value];
    if (slot >= exact_type || value.producer == nullptr || !settings_.converts(value.type)) continue;
    if (value.producer->op_type == "Cast" || value.producer->op_type == "Constant") continue;
    const Slot source = at(value_slots_[graph.outputs[k].value]);
    if (source.hold != Hold::free) hold(slot, source.hold, source.reason);
  }
}

// A Cast gives the new type only if all that take it agree; inputs of functions and bodies, if any does.
void PrecisionPlan::hold_adapting(const Graph& graph) {
  const auto strictest = [&](const std::vector<Use>& uses, bool all) {
    Slot found;
    std::size_t held = 0;
    for (const Use& use : uses) {
      const Slot here = use.slot == exact_type ? Slot{.hold = Hold::rule, .reason = "its consumer keeps the type"}
                        : use.slot == any_type ? Slot{}
                                               : at(use.slot);
      held += here.hold != Hold::free ? 1 : 0;
      if (here.hold > found.hold) found = here;
    }
    return held == 0 || (all && held < uses.size()) ? Slot{} : found;
  };
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (const Attribute& attribute : node->attributes) {
      for (const auto& inner : attribute.graphs) hold_adapting(*inner);
    }
    if (node->op_type != "Cast" || !node->domain.empty() || node->outputs.empty()) continue;
    const ValueId id = node->outputs[0];
    if (id == no_value || !settings_.converts(model_.values[id].type)) continue;
    const Slot found = strictest(uses_[id], false);
    hold(value_slots_[id], found.hold, found.reason);
  }
  if (graph.parent == nullptr && !graph.is_function) return;
  for (const Declaration& input : graph.inputs) {
    const Slot found = strictest(uses_[input.value], true);
    hold(value_slots_[input.value], found.hold, found.reason);
  }
}

// Inputs and initializers take the type that their consumers want.
void PrecisionPlan::decide_sources() {
  const bool to_integer = family(static_cast<DType>(settings_.to)) == Family::integer;
  for (std::size_t id = 0; id < model_.values.size(); ++id) {
    const Value& value = model_.values[id];
    const bool is_constant = value.producer != nullptr && value.producer->op_type == "Constant";
    if (!settings_.converts(value.type) || (value.producer != nullptr && !is_constant)) continue;
    const bool is_edge = value.is_input && value.graph == model_.graph.get();
    if (value.is_input && !is_edge) continue;  // of a subgraph or function: its slot decides
    const SlotId own = value_slots_[id];
    if (at(own).hold == Hold::rule) continue;
    bool low = false;
    bool high = false;
    const bool small = value.initializer != nullptr &&
                       (value.initializer->count < smallest_weight || (to_integer && quantizations_[id] == nullptr));
    for (const Use& use : uses_[id]) {
      const Hold held = use.slot == any_type ? Hold::free : use.slot == exact_type ? Hold::rule : at(use.slot).hold;
      const bool stays_high = held == Hold::rule || (held == Hold::runtime && !is_edge && (small || is_constant));
      (stays_high ? high : low) = true;
    }
    const bool wanted_low = std::any_of(uses_[id].begin(), uses_[id].end(), [&](const Use& use) {
      return use.slot < exact_type && at(use.slot).hold == Hold::free;
    });
    if (is_edge || !high) {
      if (low) continue;
    } else if (wanted_low && !value.is_input && value.initializer != nullptr && !value.initializer->sparse) {
      copied_[id] = settings_.request->shared_initializers == ::tensorcast::onnx::SharedInitializers::duplicate;
    }
    hold(own, Hold::rule, "its consumers keep the type");
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
    std::uint32_t element = produced_[output.value];
    const auto given = settings_.io_elements.find(output.name);
    if (given != settings_.io_elements.end() && value.producer != nullptr) {
      element = given->second;
    } else if (settings_.converts(value.type) && value.type.is_tensor() && value.producer != nullptr) {
      if (keeps_edge(output)) {
        element = value.type.element;
      } else if (at(value_slots_[output.value]).hold == Hold::runtime) {
        element = settings_.to;
      }
    }
    model_outputs_.push_back(element);
  }
}

// decide_outputs() looks at what makes an output: a Cast, or what the runtime holds.
bool PrecisionPlan::unsettles(ValueId output, ValueId source) const {
  if (at(value_slots_[source]).hold != Hold::runtime || produced_[source] == settings_.to) return false;
  const auto& outputs = model_.graph->outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](const Declaration& declared) {
    return declared.value == output && !keeps_edge(declared) && !settings_.io_elements.contains(declared.name);
  });
}

void PrecisionPlan::decide() {
  for (const Declaration& output : model_.graph->outputs) {
    uses_[output.value].push_back({.slot = keeps_edge(output) ? exact_type : any_type});
  }
  // One rule may give another a reason; holds only grow. A model that needs more rounds gets Casts that it could do
  // without.
  constexpr int most_rounds = 64;
  for (int round = 0; round < most_rounds; ++round) {
    const std::size_t before = held_slots_;
    hold_movers(*model_.graph);
    for (const auto& function : model_.functions) hold_movers(function->body);
    hold_adapting(*model_.graph);
    for (const auto& function : model_.functions) hold_adapting(function->body);
    if (held_slots_ == before) break;
  }
  decide_sources();
  for (std::size_t id = 0; id < model_.values.size(); ++id) {
    const Value& value = model_.values[id];
    if (!settings_.converts(value.type)) continue;
    produced_[id] = at(value_slots_[id]).hold == Hold::free ? settings_.to : value.type.element;
  }
  decide_edges();
  decide_outputs();
}

bool PrecisionPlan::is_converted(const Node& node) const {
  const auto changed = [&](ValueId id, std::uint32_t element) {
    return id != no_value && element != model_.values[id].type.element;
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != no_value && changed(node.inputs[i], taken(node, i))) return true;
  }
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return id != no_value && changed(id, produced_[id]); });
}

std::string_view PrecisionPlan::reason_of(SlotId slot, ValueId id) const {
  if (slot == exact_type) return "its consumer keeps the type";
  if (slot == any_type) return produced_[id] == model_.values[id].type.element ? "it is made in this type" : "";
  return at(slot).reason;
}

::tensorcast::onnx::NodeDecision PrecisionPlan::explain(const Node& node) const {
  ::tensorcast::onnx::NodeDecision decision{.name = shown_name(node), .op_type = node.op_type, .scope = {}};
  const auto dtype = [&](ValueId id, std::uint32_t element) {
    const auto number = static_cast<DType>(element);
    return model_.values[id].type.kind != ValueType::Kind::unknown && is_castable(number) ? number : DType::undefined;
  };
  const auto add = [&](ValueId id, bool is_input, std::uint32_t element, SlotId slot) {
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
    if (node.inputs[i] != no_value) add(node.inputs[i], true, taken(node, i), node_inputs_[node.id][i]);
  }
  for (const ValueId id : node.outputs) {
    if (id != no_value) add(id, false, produced_[id], value_slots_[id]);
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
        if (slot < exact_type && !at(slot).reason.empty()) reason = at(slot).reason;
      };
      for (std::size_t i = 0; i < node.inputs.size(); ++i) look(node.inputs[i], node_inputs_[node.id][i]);
      for (const ValueId id : node.outputs) look(id, id == no_value ? any_type : value_slots_[id]);
      if (!has_float || is_converted(node)) continue;
      kept.push_back({.name = shown_name(node),
                      .op_type = node.op_type,
                      .reason = reason.empty() ? "its operator takes and gives the old type" : reason});
    }
  });
  return kept;
}

}  // namespace tensorcast::models::onnx
