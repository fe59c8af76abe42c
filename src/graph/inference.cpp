// SPDX-License-Identifier: Apache-2.0
#include "graph/inference.hpp"

#include <array>

#include <fmt/format.h>

#include "codec/policy.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "graph/linear_types.hpp"
#include "tensorcast/promote.hpp"

namespace tensorcast::graph {
namespace {

constexpr int cast_like_since = 15;

struct OperationForm {
  std::string_view name;
  std::size_t inputs;
  std::size_t outputs;
  std::size_t optional_inputs = 0;  // further ones, at the end
};

// In the order of Operation's alternatives. If has the outputs of its branches.
constexpr std::array operations = {OperationForm{"Cast", 1, 1},
                                   OperationForm{"CastLike", 2, 1},
                                   OperationForm{"ConvertPromoteTypes", 2, 2},
                                   OperationForm{"Identity", 1, 1},
                                   OperationForm{"Constant", 0, 1},
                                   OperationForm{"If", 1, 0},
                                   OperationForm{"BitCast", 1, 1},
                                   OperationForm{"QuantizeLinear", 2, 1, 1},
                                   OperationForm{"DequantizeLinear", 2, 1, 1},
                                   OperationForm{"DynamicQuantizeLinear", 1, 3}};
static_assert(operations.size() == std::variant_size_v<Operation>);

Result<ValueType> infer_cast(const CastOp& cast, const ValueType& input) {
  if (cast.to == DType::undefined) {
    return invalid("the type to cast to is undefined", "set `to` to one of the types of Cast");
  }
  TRY(check_cast(cast.options, input.dtype, cast.to));
  return ValueType{cast.to, input.shape};
}

Result<ValueType> infer_cast_like(const CastLikeOp& cast, const ValueType& input, const ValueType& like) {
  TRY(check_cast_like(cast.options));
  TRY(check_cast(cast.options, input.dtype, like.dtype));
  return ValueType{like.dtype, input.shape};
}

Result<std::vector<ValueType>> infer_promotion(const ConvertPromoteTypesOp& promotion, const ValueType& a,
                                               const ValueType& b) {
  const PromoteOptions& options = promotion.promote;
  const bool ranks_decide = options.pytorch_scalar_promotion || options.rules == PromoteRules::torch;
  const bool rank_matters = ranks_decide && !(a.shape && b.shape);
  DType common = DType::undefined;
  if (a.dtype != DType::undefined && b.dtype != DType::undefined) {
    const auto scalar = [](const ValueType& type) { return type.shape && type.shape->empty(); };
    const Result<DType> promoted = promote_types({a.dtype, scalar(a)}, {b.dtype, scalar(b)}, options);
    if (!rank_matters) common = TRY(promoted);
  }
  for (const ValueType& input : {a, b}) {
    TRY(check_cast(promotion.options, input.dtype, common));
  }
  return std::vector<ValueType>{{common, a.shape}, {common, b.shape}};
}

}  // namespace

std::string_view operation_name(const Operation& operation) { return operations[operation.index()].name; }

std::string node_label(const GraphNode& node, std::size_t index) {
  const std::string_view operation = operation_name(node.operation);
  if (!node.name.empty()) return fmt::format("node \"{}\" ({})", node.name, operation);
  if (node.outputs.empty()) return fmt::format("node {} ({})", index, operation);
  return fmt::format("node {} ({} of \"{}\")", index, operation, node.outputs.front());
}

Result<void> check_arity(const GraphNode& node) {
  const OperationForm& shape = operations[node.operation.index()];
  const auto wrong = [](std::string_view what, std::size_t given, std::size_t wanted) {
    return invalid(fmt::format("{} {}{}, but the operation has {}", given, what, given == 1 ? "" : "s", wanted));
  };
  const std::size_t given = node.inputs.size();
  if (given < shape.inputs) return wrong("input", given, shape.inputs);
  if (given > shape.inputs + shape.optional_inputs) return wrong("input", given, shape.inputs + shape.optional_inputs);
  if (std::holds_alternative<IfOp>(node.operation)) return {};
  if (node.outputs.size() != shape.outputs) return wrong("output", node.outputs.size(), shape.outputs);
  return {};
}

Result<void> check_cast(const CastOptions& options, DType from, DType to) {
  if (options.rounding != Rounding::automatic) {
    return invalid("rounding is not an attribute of ONNX's Cast, so no node has it", "cast arrays and files with it");
  }
  for (const DType dtype : {from, to}) {
    if (!is_castable(dtype) || is_onnx(dtype)) continue;
    return unsupported(fmt::format("{} is not a type of ONNX, so no node has it", name(dtype)),
                       "cast arrays and files to it");
  }
  // float32 is in every version: if one end is unknown, this checks the other end and the options.
  const DType known_from = from == DType::undefined ? DType::float32 : from;
  const DType known_to = to == DType::undefined ? DType::float32 : to;
  TRY(codec::resolve_policy(options, known_from, known_to));
  return {};
}

Result<void> check_cast_like(const CastOptions& options) {
  if (options.opset <= 0 || options.opset >= cast_like_since) return {};
  return unsupported(
      fmt::format("CastLike exists since opset {}; opset {} was asked for", cast_like_since, options.opset));
}

Result<std::vector<ValueType>> infer_outputs(const Operation& operation, std::span<const ValueType> inputs) {
  const auto single = [](Result<ValueType> type) -> Result<std::vector<ValueType>> {
    ValueType only = TRY(std::move(type));
    return std::vector<ValueType>{std::move(only)};
  };
  if (const auto* cast = std::get_if<CastOp>(&operation)) return single(infer_cast(*cast, inputs[0]));
  if (const auto* cast = std::get_if<CastLikeOp>(&operation)) {
    return single(infer_cast_like(*cast, inputs[0], inputs[1]));
  }
  if (const auto* promotion = std::get_if<ConvertPromoteTypesOp>(&operation)) {
    return infer_promotion(*promotion, inputs[0], inputs[1]);
  }
  if (std::holds_alternative<IdentityOp>(operation)) return std::vector<ValueType>{inputs[0]};
  if (const auto* bits = std::get_if<BitCastOp>(&operation)) return single(infer_bit_cast(bits->to, inputs[0]));
  if (const auto* linear = std::get_if<QuantizeLinearOp>(&operation)) return single(infer_quantize(*linear, inputs));
  if (const auto* linear = std::get_if<DequantizeLinearOp>(&operation)) {
    return single(infer_dequantize(*linear, inputs));
  }
  if (std::holds_alternative<DynamicQuantizeLinearOp>(operation)) return infer_dynamic_quantize(inputs[0]);
  if (const auto* constant = std::get_if<ConstantOp>(&operation)) {
    if (!constant->value.defined()) return invalid("the constant has no value");
    return std::vector<ValueType>{type_of(constant->value)};
  }
  return Error{.code = ErrorCode::internal, .message = "If is inferred from its branches"};
}

}  // namespace tensorcast::graph
