// Makes the slots of a PrecisionPlan from the schemas, and holds those that rules keep.
#pragma once

#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/precision/precision_plan.hpp"

namespace tensorcast::models::onnx {

class SlotBuilder {
 public:
  explicit SlotBuilder(PrecisionPlan& plan) : plan_(plan) {}
  void build();

 private:
  SlotId new_slot(Hold hold = Hold::free, std::string_view reason = {});
  [[nodiscard]] bool converts(ValueId id) const;
  [[nodiscard]] const ValueType& type(ValueId id) const { return plan_.model_.values[id].type; }
  void take(const Node& node, std::size_t input, SlotId slot);
  void take_exactly(const Node& node, std::size_t input);
  void build_graph(const Graph& graph);
  void build_node(const Node& node, const Graph& graph);
  void build_opaque(const Node& node, std::string_view reason);
  void build_declared(const Node& node, const OperatorTypes& types);
  void build_operator(const Node& node, const Schema& schema);
  void link_variables(const Node& node, const Schema& schema, std::vector<SlotId>& variables);
  void build_control_flow(const Node& node, const Graph& graph);
  void build_call(const Node& node, const Function& function);
  void hold_blocked(const Node& node);
  void hold_sizes(const Graph& graph);
  void hold_size(ValueId id);
  void hold_crashing(const Graph& graph);
  void hold_rotations(ValueId id);
  [[nodiscard]] bool is_blocked(const Node& node) const;

  PrecisionPlan& plan_;
  std::vector<bool> walked_;  // by value: hold_size() was there
};

}  // namespace tensorcast::models::onnx
