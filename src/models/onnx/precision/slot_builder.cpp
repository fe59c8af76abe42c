// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <utility>

#include "dtype/lookup.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/precision/runtime_overlay.hpp"
#include "models/onnx/precision/slots.hpp"

namespace tensorcast::models::onnx {
namespace {

using Kind = ValueType::Kind;
using ::tensorcast::onnx::by_weights_only;
using ::tensorcast::onnx::ConvertRequest;

constexpr std::string_view by_schema = "the operator does not take the type in this opset";
constexpr std::string_view by_runtime = "the runtime has no kernel for the type";
constexpr std::string_view by_request = "the request keeps it";
constexpr std::string_view unknown_operator = "the operator is unknown";
constexpr std::string_view by_attribute = "an attribute of the function decides the type";
constexpr std::string_view of_size = "it computes sizes or indices";
constexpr std::string_view crashes = "ONNX Runtime 1.24 to 1.32 crashes when it loads it in the type";
constexpr std::string_view of_products = "it takes sums of products of integers, which reach beyond the type's range";
constexpr std::string_view of_fused_products =
    "ONNX Runtime makes one operator of it and MatMulInteger, in float32 only";
constexpr std::string_view edge_kept = "an input or output of the model keeps its type";

// Nodes that are followed back, one after the other: a malformed model may have a circle of them.
constexpr int max_chain = 16;

class SlotBuilder {
 public:
  SlotBuilder(const Model& model, const PrecisionSettings& settings) : model_(model), settings_(settings) {}

  Slots build() && {
    const Model& model = model_;
    for (std::size_t id = 0; id < model.values.size(); ++id) slots_.of_values.push_back(slots_.add());
    slots_.node_inputs.resize(model.node_count);
    slots_.graph_outputs.resize(model.graph_count);
    slots_.uses.resize(model.values.size());
    folded_.resize(model.values.size());
    each_graph(model, [&](const Graph& graph) {
      for (const Node& node : graph.nodes) slots_.node_inputs[node.id].assign(node.inputs.size(), any_type);
      slots_.graph_outputs[graph.id].assign(graph.outputs.size(), any_type);
    });
    each_graph(model, [&](const Graph& graph) {
      for (const Node& node : graph.nodes) build_node(node, graph);
    });
    hold_exact_numbers(model, settings_, slots_);
    const bool is_for_cpu = settings_.request->runtime == ::tensorcast::onnx::Runtime::onnxruntime_cpu;
    if (is_16_bit() || (is_for_cpu && settings_.to == DType::float64)) {
      each_graph(model, [&](const Graph& graph) { hold_accumulators(graph); });
    }
    if (is_for_cpu) {
      each_graph(model, [&](const Graph& graph) { hold_crashing(graph); });
    }

    for (const Declaration& input : model.graph->inputs) {
      if (keeps_edge(model_, settings_, input)) slots_.hold(slots_.of_values[input.value], Hold::rule, edge_kept);
    }
    for (const Declaration& output : model.graph->outputs) {
      const Value& value = model.values[output.value];
      const bool fixed = value.producer == nullptr || !value.type.is_tensor();
      if (keeps_edge(model_, settings_, output) && fixed)
        slots_.hold(slots_.of_values[output.value], Hold::rule, edge_kept);
    }
    return std::move(slots_);
  }

 private:
  [[nodiscard]] const ValueType& type(ValueId id) const { return model_.values[id].type; }
  [[nodiscard]] bool converts(ValueId id) const { return id != no_value && settings_.converts(type(id)); }

  // A tensor may be cast on its way to a consumer; other values have one type.
  void take(const Node& node, std::size_t input, SlotId slot) {
    const ValueId id = node.inputs[input];
    slots_.node_inputs[node.id][input] = slot;
    if (!converts(id)) return;
    if (!type(id).is_tensor()) {
      if (slot == exact_type) {
        slots_.hold(slots_.of_values[id], Hold::rule, unknown_operator);
      } else if (slot != any_type) {
        slots_.unite(slots_.of_values[id], slot);
      }
    }
    slots_.uses[id].push_back(slot);
  }

  [[nodiscard]] bool is_blocked(const Node& node) const {
    const ConvertRequest& request = *settings_.request;
    if (!settings_.blocked.empty() && settings_.blocked[node.id]) return true;
    return contains(request.keep_op_types, node.op_type) ||
           (!node.name.empty() && contains(request.keep_nodes, node.name));
  }

  void build_node(const Node& node, const Graph& graph) {
    if (const Function* function = model_.function(node)) return build_call(node, *function);
    if (is_control_flow(node)) return build_control_flow(node, graph);
    for (const OperatorTypes& types : settings_.operators) {
      if (types.names(node)) return is_blocked(node) ? build_opaque(node, by_request) : build_declared(node, types);
    }
    const Schema* schema = schema_of(node, graph);
    if (schema == nullptr || node.op_type == "BitCast") return build_opaque(node, unknown_operator);
    if (graph.opset("") <= 0) return build_opaque(node, "the model imports no version of Cast");
    build_operator(node, *schema);
    if (!node.bodies().empty()) return build_opaque(node, unknown_operator);
    if (is_blocked(node)) return hold_blocked(node);
  }

  // The request says which inputs and outputs become which type.
  void build_declared(const Node& node, const OperatorTypes& types) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!converts(node.inputs[i])) continue;
      take(node, i, types.input(i) == settings_.to ? slots_.add() : exact_type);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == no_value || types.output(i) == settings_.to) continue;
      slots_.hold(slots_.of_values[id], Hold::rule, by_request);
    }
  }

  // Leaves a node alone: its inputs, its outputs and its subgraphs keep their types.
  void build_opaque(const Node& node, std::string_view reason) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) take(node, i, exact_type);
    for (const ValueId id : node.outputs) {
      if (id != no_value) slots_.hold(slots_.of_values[id], Hold::rule, reason);
    }
    for (const Graph* body : node.bodies()) {
      for (const Declaration& input : body->inputs) slots_.hold(slots_.of_values[input.value], Hold::rule, reason);
      std::ranges::fill(slots_.graph_outputs[body->id], exact_type);
      for (const Declaration& output : body->outputs) {
        if (converts(output.value)) slots_.uses[output.value].push_back(exact_type);
      }
    }
  }

  void hold_blocked(const Node& node) {
    for (const SlotId slot : slots_.node_inputs[node.id]) {
      if (slot < exact_type) slots_.hold(slot, Hold::rule, by_request);
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (slots_.node_inputs[node.id][i] == any_type && converts(node.inputs[i])) take(node, i, exact_type);
    }
    for (const ValueId id : node.outputs) {
      if (id != no_value) slots_.hold(slots_.of_values[id], Hold::rule, by_request);
    }
  }

  void build_operator(const Node& node, const Schema& schema) {
    const PrecisionSettings& settings = settings_;
    const bool has_kernel = runtime_has_kernel(settings.request->runtime, node, schema.since, settings.to);
    // Defined by a function whose constant is float32, so that ONNX's checker takes no other type.
    const bool only_float32 = node.op_type == "MeanVarianceNormalization" && settings.to != DType::float32;
    // Codes of 16 bits need more digits and range than 16-bit floats have.
    const bool makes_wide_codes =
        node.op_type == "QuantizeLinear" && (settings.to == DType::float16 || settings.to == DType::bfloat16) &&
        !node.outputs.empty() && node.outputs[0] != no_value && is_wide_integer(type(node.outputs[0]).element);
    std::vector<SlotId> variables;
    std::vector<int> places(schema.variables.size());  // inputs and outputs of each variable
    for (std::size_t i = 0; i < schema.variables.size(); ++i) variables.push_back(slots_.add());
    const auto restrict = [&](std::uint8_t variable, ValueId id) {
      ++places[variable];
      if (!converts(id)) return;
      if (settings.request->weights_only && node.op_type != "Constant") {
        slots_.hold(variables[variable], Hold::runtime, by_weights_only);
      } else if (only_float32 || makes_wide_codes ||
                 !has_type(elements_of(schema.variables[variable], type(id).kind), settings.to)) {
        slots_.hold(variables[variable], Hold::rule, by_schema);
      } else if (!has_kernel) {
        slots_.hold(variables[variable], Hold::runtime, by_runtime);
      }
    };
    std::vector<bool> has_output(schema.variables.size());
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const Parameter* parameter = Schema::at(schema.outputs, i);
      const ValueId id = node.outputs[i];
      if (parameter == nullptr || parameter->arity == Arity::heterogeneous) {
        if (id != no_value) slots_.hold(slots_.of_values[id], Hold::rule, unknown_operator);
        continue;
      }
      has_output[parameter->variable] = true;
      if (id == no_value) continue;
      slots_.unite(variables[parameter->variable], slots_.of_values[id]);
      restrict(parameter->variable, id);
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Parameter* parameter = Schema::at(schema.inputs, i);
      if (parameter != nullptr && node.inputs[i] != no_value) restrict(parameter->variable, node.inputs[i]);
    }
    link_variables(node, schema, variables);

    const bool makes_sizes = is_wide_integer(cast_target(node)) || cast_target(node) == DType::string;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Parameter* parameter = Schema::at(schema.inputs, i);
      const ValueId id = node.inputs[i];
      if (!converts(id)) continue;
      const bool is_size = is_size_input(node.op_type, i);
      // Range's output has the type of its inputs.
      if (parameter != nullptr && is_size) slots_.hold(variables[parameter->variable], Hold::rule, of_size);
      if (parameter == nullptr || parameter->arity == Arity::heterogeneous || makes_sizes || is_size) {
        take(node, i, exact_type);
        continue;
      }
      const std::uint8_t variable = parameter->variable;
      // An input that shares its type with nothing takes whatever comes, if both types are allowed.
      const bool alone = places[variable] == 1 && !has_output[variable] && type(id).is_tensor() &&
                         slots_.at(variables[variable]).hold == Hold::free &&
                         slots_.root(variables[variable]) == variables[variable];
      const bool linked = alone && std::ranges::count_if(variables, [&](SlotId other) {
                                     return slots_.root(other) == variables[variable];
                                   }) > 1;
      take(node, i, alone && !linked ? any_type : variables[variable]);
    }
  }

  // Variables that are one although the schema does not say so.
  void link_variables(const Node& node, const Schema& schema, std::vector<SlotId>& variables) {
    const std::string_view op = node.op_type;
    if (is_container_operator(op) || has_one_type(op)) {
      SlotId first = any_type;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Parameter* parameter = Schema::at(schema.inputs, i);
        if (parameter == nullptr || !converts(node.inputs[i])) continue;
        if (first == any_type) first = variables[parameter->variable];
        slots_.unite(first, variables[parameter->variable]);
      }
      if (first != any_type && !node.outputs.empty() && converts(node.outputs[0])) {
        slots_.unite(first, variables[schema.outputs.front().variable]);
      }
      for (std::size_t i = 1; first != any_type && outputs_have_one_type(op) && i < node.outputs.size(); ++i) {
        const Parameter* parameter = Schema::at(schema.outputs, i);
        if (parameter == nullptr || !converts(node.outputs[i])) continue;
        slots_.unite(first, variables[parameter->variable]);
      }
    }
    const SlotId out = schema.outputs.empty() ? any_type : variables[schema.outputs.front().variable];
    if (has_stash_type(op)) {
      if (schema.outputs.size() > 1) slots_.hold(variables[schema.outputs[1].variable], Hold::rule, by_schema);
    }
    const auto has_reference = [&](std::string_view name) {
      const Attribute* attribute = node.attribute(name);
      return attribute != nullptr && !attribute->reference.empty();
    };
    if (op == "Constant" || op == "ConstantOfShape") {
      const bool referred =
          std::ranges::any_of(node.attributes, [](const Attribute& attribute) { return !attribute.reference.empty(); });
      if (referred) slots_.hold(out, Hold::rule, by_attribute);
    }
    const TypeAttribute* row = type_attribute(op);
    if (row == nullptr) return;
    if (has_reference(row->attribute)) slots_.hold(out, Hold::rule, by_attribute);
    const Attribute* given = node.attribute(row->attribute);
    const bool like_input = row->absent == DType::undefined && op != "Cast" && (given == nullptr || given->i == 0);
    if (!like_input || schema.inputs.empty()) return;
    const std::size_t source = op == "DequantizeLinear" ? 1 : 0;
    if (source < schema.inputs.size()) slots_.unite(out, variables[schema.inputs[source].variable]);
  }

  void build_control_flow(const Node& node, const Graph& graph) {
    if (is_blocked(node)) return build_opaque(node, by_request);
    const BodyWiring wiring = body_wiring(node, graph.opset(node.domain));
    const bool is_map = node.op_type == "SequenceMap";
    const std::int64_t opset = graph.opset("");
    const Schema* schema = schema_of(node, graph);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (converts(id)) take(node, i, slots_.add());
    }
    const auto check = [&](SlotId slot, ValueId id) {
      if (!converts(id)) return;
      const Parameter* parameter = schema == nullptr ? nullptr : Schema::at(schema->outputs, 0);
      const bool known = parameter != nullptr && opset > 0 &&
                         has_type(elements_of(schema->variables[parameter->variable], type(id).kind), settings_.to);
      if (settings_.request->weights_only) {
        slots_.hold(slot, Hold::runtime, by_weights_only);
      } else if (!known) {
        slots_.hold(slot, Hold::rule, by_schema);
      }
    };
    for (const ValueId id : node.outputs) {
      if (id != no_value) check(slots_.of_values[id], id);
    }
    for (const Graph* body : node.bodies()) {
      for (std::size_t k = 0; k < body->inputs.size(); ++k) {
        const ValueId inner = body->inputs[k].value;
        const SlotId slot = slots_.of_values[inner];
        check(slot, inner);
        const std::size_t source = wiring.input_of(k);
        if (source == BodyWiring::npos || source >= node.inputs.size()) continue;
        const SlotId outer = slots_.node_inputs[node.id][source];
        if (outer < exact_type) slots_.unite(slot, outer);
      }
      for (std::size_t k = 0; k < body->outputs.size(); ++k) {
        const ValueId inner = body->outputs[k].value;
        if (!converts(inner)) continue;
        const std::size_t target = wiring.output_of(k);
        const SlotId slot = slots_.add();
        slots_.graph_outputs[body->id][k] = slot;
        slots_.uses[inner].push_back(slot);
        check(slot, inner);
        if (!type(inner).is_tensor()) slots_.unite(slot, slots_.of_values[inner]);
        if (target == BodyWiring::npos) continue;
        if (target < node.outputs.size() && node.outputs[target] != no_value) {
          slots_.unite(slot, slots_.of_values[node.outputs[target]]);
        }
        const std::size_t carried = wiring.first_body_input + target;
        if (!is_map && target < wiring.carried && carried < body->inputs.size()) {
          slots_.unite(slot, slots_.of_values[body->inputs[carried].value]);
        }
      }
    }
  }

  void build_call(const Node& node, const Function& function) {
    const Graph& body = function.body;
    const bool fits = node.inputs.size() <= body.inputs.size() && node.outputs.size() <= body.outputs.size();
    if (!fits || is_blocked(node)) {
      build_opaque(node, by_request);
      for (const auto* edges : {&body.inputs, &body.outputs}) {
        for (const Declaration& edge : *edges) slots_.hold(slots_.of_values[edge.value], Hold::rule, by_request);
      }
      return;
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const bool same = node.inputs[k] == no_value || type(node.inputs[k]) == type(body.inputs[k].value);
      take(node, k, same ? slots_.of_values[body.inputs[k].value] : exact_type);
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId inner = body.outputs[k].value;
      if (node.outputs[k] == no_value) continue;
      const SlotId outer = slots_.of_values[node.outputs[k]];
      if (type(inner) == type(node.outputs[k])) {
        slots_.unite(outer, slots_.of_values[inner]);
      } else {
        slots_.hold(outer, Hold::rule, unknown_operator);
      }
    }
  }

  [[nodiscard]] bool is_16_bit() const { return settings_.to == DType::float16 || settings_.to == DType::bfloat16; }

  // MatMulInteger and ConvInteger give sums that exceed float16 and the digits of bfloat16. A Cast makes them floats,
  // and the Mul behind it brings them to their size. ONNX Runtime makes one operator of these three, if the first is
  // MatMulInteger, and refuses the model if they are float64.
  void hold_accumulators(const Graph& graph) {
    std::vector<bool> is_sum(model_.values.size());
    const std::string_view reason = is_16_bit() ? of_products : of_fused_products;
    for (const Node& node : graph.nodes) {
      if (!node.domain.empty() || node.outputs.empty() || node.outputs[0] == no_value) continue;
      const auto takes_sum = [&](ValueId id) { return id != no_value && is_sum[id]; };
      if (node.op_type == "MatMulInteger" || (node.op_type == "ConvInteger" && is_16_bit())) {
        is_sum[node.outputs[0]] = true;
      } else if (node.op_type == "Cast" && !node.inputs.empty() && takes_sum(node.inputs[0])) {
        is_sum[node.outputs[0]] = true;
        slots_.hold(slots_.of_values[node.outputs[0]], Hold::rule, reason);
      } else if (node.op_type == "Mul" && std::ranges::any_of(node.inputs, takes_sum)) {
        slots_.hold(slots_.of_values[node.outputs[0]], Hold::rule, reason);
      }
    }
  }

  // ONNX Runtime 1.24 to 1.32 do not survive loading MatMul of a constant and a tensor whose first axis a Transpose has
  // moved next to the last one, or behind it, if a Cast stands between them, as it does in 16 bits: its
  // NchwcTransformer finds the new Transpose that MatmulTransposeFusion makes without its schema. With a 16-bit MatMul
  // and the Transpose in float32 it loads; in wider types both have one type.
  void hold_crashing(const Graph& graph) {
    const auto is_constant = [&](ValueId id) {
      return id == no_value || model_.values[id].initializer != nullptr || folded_[id];
    };
    for (const Node& node : graph.nodes) {
      if (!node.domain.empty()) continue;
      const bool folds =
          node.inputs.empty() ? node.op_type == "Constant" : std::ranges::all_of(node.inputs, is_constant);
      for (const ValueId output : node.outputs) {
        if (output != no_value) folded_[output] = folds;
      }
    }
    for (const Node& node : graph.nodes) {
      if (!node.domain.empty() || node.op_type != "MatMul" || node.inputs.size() != 2) continue;
      if (node.inputs[0] == no_value || node.inputs[1] == no_value) continue;
      for (const std::size_t side : {0, 1}) {
        if (is_constant(node.inputs[1 - side])) hold_rotations(node.inputs[side], slots_.node_inputs[node.id][side]);
      }
    }
  }

  // Holds the Transposes that make the value, if together they turn its axes in this way, or unites them with
  // `product`, which takes it.
  void hold_rotations(ValueId id, SlotId product) {
    std::vector<std::int64_t> axes;  // of the value, by the axes of the first Transpose's input
    std::vector<ValueId> made;
    for (int step = 0; step < max_chain; ++step) {
      const Node* node = model_.values[id].producer;
      if (node == nullptr || !node->domain.empty() || node->inputs.empty() || node->inputs[0] == no_value) break;
      if (node->op_type == "Transpose") {
        const Attribute* perm = node->attribute("perm");
        if (perm == nullptr || (!made.empty() && !axes.empty() && perm->ints.size() != axes.size())) break;
        if (axes.empty()) {
          axes = perm->ints;
        } else {
          for (std::int64_t& axis : axes) {
            if (axis < 0 || axis >= static_cast<std::int64_t>(perm->ints.size())) return;
            axis = perm->ints[static_cast<std::size_t>(axis)];
          }
        }
      } else if (node->op_type != "Identity" && node->op_type != "Cast") {
        break;
      }
      // A Cast that a former conversion put there is no reason to convert the Transpose now.
      if (node->op_type != "Cast") made.push_back(id);
      id = node->inputs[0];
    }
    const std::size_t rank = axes.size();
    if (rank < 3) return;
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      if (axes[i] != static_cast<std::int64_t>(i) + 1) return;
    }
    if (axes[rank - 2] != 0 && axes[rank - 1] != 0) return;
    for (const ValueId value : made) {
      if (is_16_bit()) {
        slots_.hold(slots_.of_values[value], Hold::runtime, crashes);
      } else if (product < exact_type) {
        slots_.unite(slots_.of_values[value], product);
      }
    }
  }

  const Model& model_;
  const PrecisionSettings& settings_;
  Slots slots_;
  std::vector<bool> folded_;  // by value: ONNX Runtime computes it when it loads the model
};

}  // namespace

Slots build_slots(const Model& model, const PrecisionSettings& settings) {
  return SlotBuilder(model, settings).build();
}

}  // namespace tensorcast::models::onnx
