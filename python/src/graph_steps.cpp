// SPDX-License-Identifier: Apache-2.0
#include "graph_tensor.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "bound_arguments.hpp"

namespace tensorcast::python {
namespace {

nb::object shape_or_none(const std::optional<std::vector<std::int64_t>>& shape) {
  return shape ? nb::cast(*shape) : nb::none();
}

nb::object name_or_none(DType dtype) { return dtype == DType::undefined ? nb::none() : nb::cast(name(dtype)); }

nb::dict dictionary_of(const tensorcast::CastOptions& options) {
  nb::dict given;
  for (const GivenOption& option : given_options(options)) {
    given[option.name] = std::visit([](auto value) { return nb::cast(value); }, option.value);
  }
  return given;
}

template <class... Arguments>
nb::tuple step(const char* method, Arguments&&... arguments) {
  return nb::make_tuple(method, nb::make_tuple(std::forward<Arguments>(arguments)...));
}

// Makes the step of a node. Compiling checks numbers of inputs and outputs, so this may not rely on them.
struct StepOfNode {
  const GraphNode& node;

  [[nodiscard]] std::string input(std::size_t index) const { return node.inputs.at(index); }
  [[nodiscard]] std::string output(std::size_t index) const { return node.outputs.at(index); }

  nb::tuple operator()(const CastOp& cast) const {
    return step("add_cast", node.name, input(0), name(cast.to), output(0), dictionary_of(cast.options));
  }
  nb::tuple operator()(const CastLikeOp& cast) const {
    return step("add_cast_like", node.name, input(0), input(1), output(0), dictionary_of(cast.options));
  }
  nb::tuple operator()(const ConvertPromoteTypesOp& promotion) const {
    return step("add_convert_promote_types", node.name, nb::make_tuple(input(0), input(1)),
                nb::make_tuple(output(0), output(1)), promotion.promote.promote_unsafe,
                promotion.promote.pytorch_scalar_promotion, name(promotion.promote.u64_integer_promotion_target),
                dictionary_of(promotion.options));
  }
  nb::tuple operator()(const BitCastOp& bits) const {
    return step("add_bit_cast", node.name, input(0), name(bits.to), output(0));
  }
  nb::tuple operator()(const QuantizeLinearOp& linear) const {
    return step("add_quantize_linear", node.name, node.inputs, output(0), linear.opset, linear.axis, linear.block_size,
                linear.saturate, name_or_none(linear.output_dtype), name_or_none(linear.precision));
  }
  nb::tuple operator()(const DequantizeLinearOp& linear) const {
    return step("add_dequantize_linear", node.name, node.inputs, output(0), linear.opset, linear.axis,
                linear.block_size, name_or_none(linear.output_dtype));
  }
  nb::tuple operator()(const DynamicQuantizeLinearOp&) const {
    return step("add_dynamic_quantize_linear", node.name, input(0), node.outputs);
  }
  nb::tuple operator()(const IdentityOp&) const { return step("add_identity", node.name, input(0), output(0)); }
  nb::tuple operator()(const ConstantOp& constant) const {
    return step("add_constant", node.name, constant.value, output(0));
  }
  nb::tuple operator()(const IfOp& branches) const {
    return step("add_if", node.name, input(0), node.outputs, *branches.then_branch, *branches.else_branch);
  }
};

}  // namespace

nb::list steps_of(const Graph& graph) {
  nb::list steps;
  for (const ValueInfo& value : graph.inputs) {
    steps.append(step("add_input", value.name, name_or_none(value.dtype), shape_or_none(value.shape),
                      value.default_value ? nb::cast(*value.default_value) : nb::none()));
  }
  for (const GraphNode& node : graph.nodes) steps.append(std::visit(StepOfNode{node}, node.operation));
  for (const ValueInfo& value : graph.outputs) {
    steps.append(step("add_output", value.name, name_or_none(value.dtype), shape_or_none(value.shape)));
  }
  return steps;
}

}  // namespace tensorcast::python
