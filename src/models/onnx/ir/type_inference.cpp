// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/ir/type_inference.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "models/onnx/ir/op_rules.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx {
namespace {

using Kind = ValueType::Kind;

// Returns the only kind in a set; nullopt if it has several.
std::optional<Kind> only_kind(const TypeSet& set) {
  const bool kinds[] = {set.tensors != 0, set.sequences != 0, set.optionals != 0, set.optional_sequences != 0};
  constexpr Kind names[] = {Kind::tensor, Kind::sequence, Kind::optional, Kind::optional_sequence};
  if (set.others || std::ranges::count(kinds, true) != 1) return std::nullopt;
  return names[std::ranges::find(kinds, true) - std::begin(kinds)];
}

class Inference {
 public:
  explicit Inference(Model& model)
      : model_(model), max_inferred_(200'000 + 64 * (std::uint64_t{model.node_count} + model.values.size())) {}

  void run() {
    // Twice: a type that a later node reveals may be that of an earlier node's input.
    for (pass_ = 0; pass_ <= last_pass; ++pass_) {
      made_.clear();
      infer(*model_.graph);
    }
    for (const auto& function : model_.functions) {
      if (!called_.contains(&function->body)) ambiguous_.insert(&function->body);
    }
    for (const Graph* body : ambiguous_) forget(*body);
  }

  [[nodiscard]] std::map<const Graph*, std::vector<FunctionCall>> take_calls() { return std::move(calls_); }

 private:
  ValueType& type(ValueId id) { return model_.values[id].type; }
  [[nodiscard]] ValueType type_or_unknown(ValueId id) const {
    return id == no_value ? ValueType{} : model_.values[id].type;
  }

  // The node or initializer that makes a value decides its type; a value_info that disagrees is ignored.
  void set(ValueId id, ValueType found) {
    if (id == no_value || found.kind == Kind::unknown) return;
    if (found.element == DType::undefined && found.kind == type(id).kind) return;
    type(id) = found;
  }
  void reveal(ValueId id, ValueType found) {
    if (id != no_value && (type(id).kind == Kind::unknown || type(id).element == DType::undefined)) set(id, found);
  }

  void infer(Graph& graph) {
    for (Node& node : graph.nodes) infer(node, graph);
    if (pass_ == last_pass) return;
    // The output of an unknown operator has a type that only its consumers tell, even indirect ones.
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
      const bool is_unknown = std::ranges::any_of(
          node->inputs, [&](ValueId id) { return id != no_value && type(id).kind == Kind::unknown; });
      if (is_unknown && !is_control_flow(*node) && model_.function(*node) == nullptr) infer_operator(*node, graph);
    }
  }

  void infer(Node& node, Graph& graph) {
    if (const Function* function = model_.function(node)) return infer_call(node, *function);
    if (is_control_flow(node)) return infer_control_flow(node, graph);
    for (Graph* inner : node.bodies()) infer(*inner);
    infer_operator(node, graph);
  }

  void infer_operator(Node& node, Graph& graph) {
    const Schema* schema = schema_of(node, graph);
    if (schema == nullptr) return;
    std::vector<ValueType> bound(schema->variables.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Parameter* parameter = Schema::at(schema->inputs, i);
      if (parameter == nullptr || parameter->arity == Arity::heterogeneous || node.inputs[i] == no_value) continue;
      ValueType& variable = bound[parameter->variable];
      const ValueType here = type(node.inputs[i]);
      if (variable.kind == Kind::unknown || variable.element == DType::undefined) {
        if (here.kind != Kind::unknown) variable = here;
      }
    }
    bind_by_operator(node, *schema, bound);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {  // of which no input tells
      const Parameter* parameter = Schema::at(schema->outputs, i);
      if (parameter == nullptr || parameter->arity == Arity::heterogeneous) continue;
      ValueType& variable = bound[parameter->variable];
      if (variable.kind == Kind::unknown) variable = type_or_unknown(node.outputs[i]);
    }
    for (std::size_t i = 0; i < bound.size(); ++i) {
      if (bound[i].kind != Kind::unknown) continue;
      const std::optional<Kind> kind = only_kind(schema->variables[i]);
      if (!kind) continue;
      const std::uint64_t elements = elements_of(schema->variables[i], *kind);
      if (std::has_single_bit(elements)) bound[i] = {*kind, static_cast<DType>(std::countr_zero(elements))};
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Parameter* parameter = Schema::at(schema->inputs, i);
      if (parameter == nullptr || parameter->arity == Arity::heterogeneous) continue;
      reveal(node.inputs[i], bound[parameter->variable]);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const Parameter* parameter = Schema::at(schema->outputs, i);
      if (parameter == nullptr || parameter->arity == Arity::heterogeneous) continue;
      set(node.outputs[i], bound[parameter->variable]);
    }
  }

  // Infers types of outputs that no input has: from attributes, and from what the operator does.
  void bind_by_operator(const Node& node, const Schema& schema, std::vector<ValueType>& bound) const {
    if (schema.outputs.empty()) return;
    ValueType& out = bound[schema.outputs.front().variable];
    const std::string_view op = node.op_type;
    const ValueType first = node.inputs.empty() ? ValueType{} : type_or_unknown(node.inputs.front());
    if (is_container_operator(op) && node.domain.empty()) {
      bind_container(op, first, out);
      return;
    }
    if (op == "Constant") {
      for (const Attribute& attribute : node.attributes) {
        if (attribute.name == "value" || attribute.name == "sparse_value") {
          if (attribute.tensor_element != DType::undefined) out = tensor_of(attribute.tensor_element);
        }
        if (attribute.name.starts_with("value_float")) out = tensor_of(DType::float32);
        if (attribute.name.starts_with("value_int")) out = tensor_of(DType::int64);
        if (attribute.name.starts_with("value_string")) out = tensor_of(DType::string);
      }
      return;
    }
    if (op == "ConstantOfShape") {
      const Attribute* value = node.attribute("value");
      if (value == nullptr) out = tensor_of(DType::float32);
      if (value != nullptr && value->tensor_element != DType::undefined) out = tensor_of(value->tensor_element);
      return;
    }
    if (outputs_have_one_type(op)) {
      for (const Parameter& output : schema.outputs) {
        if (bound[output.variable].kind == Kind::unknown) bound[output.variable] = first;
      }
      return;
    }
    if (has_stash_type(op)) {  // mean and deviation have the type of the computation
      const Attribute* stash = node.attribute("stash_type");
      if (schema.outputs.size() > 1) {
        bound[schema.outputs[1].variable] = tensor_of(stash == nullptr ? DType::float32 : static_cast<DType>(stash->i));
      }
      return;
    }
    if (op == "QuantizeLinear") return bind_quantize(node, out);
    const TypeAttribute* row = type_attribute(op);
    if (row == nullptr) return;
    const Attribute* given = node.attribute(row->attribute);
    const Kind kind = op == "SequenceEmpty" ? Kind::sequence : Kind::tensor;
    if (given == nullptr || (given->reference.empty() && given->i == 0 && op == "DequantizeLinear")) {
      if (op == "DequantizeLinear") {
        if (node.inputs.size() > 1) out = type_or_unknown(node.inputs[1]);
      } else if (row->absent != DType::undefined) {
        out = {kind, row->absent};
      } else if (op != "Cast" && first.is_tensor()) {
        out = first;
      }
    } else if (given->reference.empty()) {
      out = {kind, op == "Cast" ? cast_target(*given) : static_cast<DType>(given->i)};
    } else {
      out = {};
    }
  }

  static DType cast_target(const Attribute& to) {
    if (to.type != AttributeType::string) return static_cast<DType>(to.i);
    return parse_dtype(to.s).value_or(DType::undefined);  // before opset 6
  }

  void bind_quantize(const Node& node, ValueType& out) const {
    const Attribute* given = node.attribute("output_dtype");
    if (node.inputs.size() > 2 && node.inputs[2] != no_value) return;  // that of the zero point
    out = tensor_of(given != nullptr && given->i != 0 ? static_cast<DType>(given->i) : DType::uint8);
  }

  static void bind_container(std::string_view op, ValueType first, ValueType& out) {
    if (op == "OptionalHasElement") {
      out = tensor_of(DType::boolean);
    } else if (op == "SequenceLength") {
      out = tensor_of(DType::int64);
    } else if (first.kind == Kind::unknown || first.kind == Kind::other) {
      return;
    } else if (op == "SequenceConstruct" || op == "SplitToSequence") {
      out = {Kind::sequence, first.element};
    } else if (op == "SequenceAt" || op == "ConcatFromSequence") {
      out = tensor_of(first.element);
    } else if (op == "Optional") {
      out = {first.kind == Kind::sequence ? Kind::optional_sequence : Kind::optional, first.element};
    } else if (op == "OptionalGetElement") {
      const bool of_sequence = first.kind == Kind::optional_sequence || first.kind == Kind::sequence;
      out = {of_sequence ? Kind::sequence : Kind::tensor, first.element};
    } else {
      out = first;  // SequenceInsert, SequenceErase
    }
  }

  void infer_control_flow(Node& node, Graph& graph) {
    const BodyWiring wiring = body_wiring(node, graph.opset(node.domain));
    for (Graph* body : node.bodies()) {
      for (std::size_t k = 0; k < body->inputs.size(); ++k) {
        const std::size_t source = wiring.input_of(k);
        if (source == BodyWiring::npos || source >= node.inputs.size()) continue;
        ValueType given = type_or_unknown(node.inputs[source]);
        if (node.op_type == "SequenceMap" && given.kind == Kind::sequence) given.kind = Kind::tensor;
        set(body->inputs[k].value, given);
        if (node.op_type != "SequenceMap") reveal(node.inputs[source], type(body->inputs[k].value));
      }
      infer(*body);
      for (std::size_t k = 0; k < body->outputs.size(); ++k) {
        const std::size_t target = wiring.output_of(k);
        if (target == BodyWiring::npos || target >= node.outputs.size()) continue;
        ValueType made = type(body->outputs[k].value);
        if (node.op_type == "SequenceMap" && made.is_tensor()) made.kind = Kind::sequence;
        set(node.outputs[target], made);
      }
    }
  }

  // Infers a body once for each signature and pass: calls of calls multiply.
  void infer_call(Node& node, const Function& function) {
    auto& body = const_cast<Graph&>(function.body);  // of this model
    Signature signature;
    for (std::size_t k = 0; k < body.inputs.size() && k < node.inputs.size(); ++k) {
      signature.push_back(type_or_unknown(node.inputs[k]));
    }
    while (!signature.empty() && signature.back() == ValueType{}) signature.pop_back();
    if (pass_ == last_pass) record({.node = &node, .signature = signature}, body);
    const auto [known, first_call] = called_.emplace(&body, signature);
    if (!first_call && known->second != signature) {
      const Signature& before = known->second;
      const auto is_unknown = [](const ValueType& each) { return each.kind == Kind::unknown; };
      const bool was_complete = before.size() == body.inputs.size() && std::ranges::none_of(before, is_unknown);
      bool conflicts = was_complete;
      for (std::size_t k = 0; k < std::min(before.size(), signature.size()); ++k) {
        conflicts = conflicts || (!is_unknown(before[k]) && !is_unknown(signature[k]) && before[k] != signature[k]);
      }
      if (conflicts) ambiguous_.insert(&body);
      known->second = signature;
    }
    if (calls_in_progress_.contains(&body)) return;
    auto made = made_.find({&body, signature});
    if (made == made_.end()) {
      inferred_ += size_of(body);
      if (inferred_ > max_inferred_) return;
      calls_in_progress_.insert(&body);
      if (ambiguous_.contains(&body)) forget(body);
      for (std::size_t k = 0; k < body.inputs.size(); ++k) {
        type(body.inputs[k].value) = k < signature.size() ? signature[k] : ValueType{};
      }
      infer(body);
      calls_in_progress_.erase(&body);
      std::vector<ValueType> results;
      results.reserve(body.outputs.size());
      for (const Declaration& output : body.outputs) results.push_back(type(output.value));
      made = made_.emplace(std::pair(&body, std::move(signature)), std::move(results)).first;
    }
    for (std::size_t k = 0; k < made->second.size() && k < node.outputs.size(); ++k) {
      const ValueType result = made->second[k];
      set(node.outputs[k], result.kind == Kind::unknown ? given_by_attribute(node, body.outputs[k].value) : result);
    }
  }

  // The type of a function's output that a Cast makes, to a type that the call names, as in ai.tensorcast::Cast.
  [[nodiscard]] ValueType given_by_attribute(const Node& call, ValueId output) const {
    const Node* producer = model_.values[output].producer;
    if (producer == nullptr || producer->op_type != "Cast" || !producer->domain.empty()) return {};
    const Attribute* to = producer->attribute("to");
    const Attribute* given = to == nullptr ? nullptr : call.attribute(to->reference);
    if (to == nullptr || to->reference.empty() || given == nullptr || !given->reference.empty()) return {};
    return tensor_of(cast_target(*given));
  }

  void record(FunctionCall call, const Graph& body) {
    std::vector<FunctionCall>& calls = calls_[&body];
    const auto [known, is_new] = call_indices_.emplace(call.node, calls.size());
    if (is_new) {
      calls.push_back(std::move(call));
    } else if (calls[known->second].signature != call.signature) {
      calls[known->second].varies = true;
    }
  }

  // Nodes, inputs and outputs, subgraphs included.
  std::uint64_t size_of(const Graph& graph) {
    const auto [known, is_new] = sizes_.emplace(&graph, 1);
    if (!is_new) return known->second;
    std::uint64_t size = 1 + graph.nodes.size() + graph.inputs.size() + graph.outputs.size();
    for (const Node& node : graph.nodes) {
      for (const Graph* inner : node.bodies()) size += size_of(*inner);
    }
    return sizes_[&graph] = size;
  }

  void forget(const Graph& body) {
    for (const auto& [name, id] : body.names) type(id) = {};
    for (const Node& node : body.nodes) {
      for (const Graph* inner : node.bodies()) forget(*inner);
    }
  }

  static constexpr int last_pass = 1;
  using Signature = std::vector<ValueType>;  // of a call: types of inputs, without unknown ones at the end

  Model& model_;
  std::map<const Graph*, Signature> called_;                                   // the last call
  std::map<std::pair<const Graph*, Signature>, std::vector<ValueType>> made_;  // types of outputs, in this pass
  std::map<const Graph*, std::uint64_t> sizes_;
  std::map<const Graph*, std::vector<FunctionCall>> calls_;
  std::unordered_map<const Node*, std::size_t> call_indices_;  // into calls_ of the function that the node calls
  std::set<const Graph*> ambiguous_;
  std::set<const Graph*> calls_in_progress_;
  // A function that is called with ever new types is not inferred again and again.
  std::uint64_t max_inferred_ = 0;
  std::uint64_t inferred_ = 0;
  int pass_ = 0;
};

}  // namespace

void infer_types(Model& model) { Inference(model).run(); }

std::map<const Graph*, std::vector<FunctionCall>> infer_calls(Model& model) {
  Inference inference(model);
  inference.run();
  return inference.take_calls();
}

}  // namespace tensorcast::models::onnx
