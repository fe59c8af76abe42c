// SPDX-License-Identifier: Apache-2.0
// Facts about operators that ONNX's schemas lack and that changing the types of a model needs.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/ir/schema.hpp"

namespace tensorcast::models::onnx {

// The domain of the operators of tensorcast's library for ONNX Runtime. Models have them as functions, which keep their
// names.
inline constexpr std::string_view tensorcast_domain = "ai.tensorcast";

// The domain of the operators into which ONNX Runtime fuses others.
inline constexpr std::string_view fused_domain = "com.microsoft";

// An attribute that names the element type of an output.
struct TypeAttribute {
  std::string_view op_type;
  std::string_view attribute;
  DType absent;  // the type without the attribute; undefined: that of the first input of the same kind
};
// Returns null if the operator has none.
[[nodiscard]] const TypeAttribute* type_attribute(std::string_view op_type) noexcept;

// Returns the version of the operator that `node` is; null: of another domain, unknown, or not of the imported opset.
[[nodiscard]] const Schema* schema_of(const Node& node, const Graph& graph);

// Bit N: the set has tensors, sequences, ... of TensorProto.DataType N.
[[nodiscard]] std::uint64_t elements_of(const TypeSet& set, ValueType::Kind kind) noexcept;

// Reports whether the types of a node's body decide its own: If, Loop, Scan, SequenceMap.
[[nodiscard]] bool is_control_flow(const Node& node) noexcept;
// Reports whether a node builds or takes apart sequences or optionals: all its values have one element type.
[[nodiscard]] bool is_container_operator(std::string_view op_type) noexcept;
// Reports whether the node's inputs that have one type must keep one, although the schema allows several.
[[nodiscard]] bool has_one_type(std::string_view op_type) noexcept;
// The same for its outputs: the new keys and values have the type of the old ones, and of the query.
[[nodiscard]] bool outputs_have_one_type(std::string_view op_type) noexcept;
// Reports whether the attribute stash_type names the type of the second and later outputs.
[[nodiscard]] bool has_stash_type(std::string_view op_type) noexcept;
// Copies elements and computes nothing, so that it keeps the precision of what it gets.
[[nodiscard]] bool only_moves_elements(std::string_view op_type) noexcept;
// Reports whether ONNX's Constant makes a value; null: no node does.
[[nodiscard]] bool is_constant_node(const Node* node) noexcept;
// Gives the elements that it takes, in whatever type.
[[nodiscard]] bool passes_on(const Node& node) noexcept;
// May compute sizes, indices and lengths that become integers.
[[nodiscard]] bool may_compute_sizes(std::string_view op_type) noexcept;
// Computes numbers that depend on its inputs alone, as sizes, angles and buckets of positions are computed.
[[nodiscard]] bool computes_numbers(std::string_view op_type) noexcept;
// Reports whether the type holds integers of 16 bits or more.
[[nodiscard]] bool is_wide_integer(DType dtype) noexcept;
// Returns the type that a Cast names by its number; undefined for other nodes.
[[nodiscard]] DType cast_target(const Node& node) noexcept;
// The input is a size, scale or index although it is a float: Resize's scales, all of Range.
[[nodiscard]] bool is_size_input(std::string_view op_type, std::size_t index) noexcept;

// Inputs of a control flow node that its bodies receive, and what they give back.
struct BodyWiring {
  // Index of the node's input that body input `k` receives; npos: none of a type that matters (counters).
  [[nodiscard]] std::size_t input_of(std::size_t k) const noexcept {
    return k < first_body_input ? npos : k - first_body_input + first_node_input;
  }
  // Index of the node's output that body output `k` becomes; npos: the condition of a Loop.
  [[nodiscard]] std::size_t output_of(std::size_t k) const noexcept {
    return k < first_body_output ? npos : k - first_body_output;
  }
  static constexpr std::size_t npos = SIZE_MAX;

  std::size_t first_body_input = 0;
  std::size_t first_node_input = 0;
  std::size_t first_body_output = 0;
  std::size_t carried = 0;  // the first so many received inputs are replaced by the first so many outputs
};
[[nodiscard]] BodyWiring body_wiring(const Node& node, std::int64_t opset);

// Visits the values that the bodies or the function of a node of `graph` take and give under names of their own.
void each_alias(const Model& model, const Graph& graph, const Node& node,
                const std::function<void(ValueId from, ValueId to)>& found);

}  // namespace tensorcast::models::onnx
