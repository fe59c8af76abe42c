// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/ir/op_rules.hpp"

#include "dtype/lookup.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr DType as_input = DType::undefined;

constexpr TypeAttribute type_attributes[] = {
    {"Bernoulli", "dtype", as_input},
    {"BlackmanWindow", "output_datatype", DType::float32},
    {"Cast", "to", as_input},
    {"DequantizeLinear", "output_dtype", as_input},
    {"EyeLike", "dtype", as_input},
    {"HammingWindow", "output_datatype", DType::float32},
    {"HannWindow", "output_datatype", DType::float32},
    {"MelWeightMatrix", "output_datatype", DType::float32},
    {"RandomNormal", "dtype", DType::float32},
    {"RandomNormalLike", "dtype", as_input},
    {"RandomUniform", "dtype", DType::float32},
    {"RandomUniformLike", "dtype", as_input},
    {"SequenceEmpty", "dtype", DType::float32},
};

constexpr std::string_view container_operators[] = {
    "ConcatFromSequence", "Optional",      "OptionalGetElement", "OptionalHasElement", "SequenceAt",
    "SequenceConstruct",  "SequenceErase", "SequenceInsert",     "SequenceLength",     "SplitToSequence",
};
// Their schemas allow several types, but ONNX's bodies of these functions and ONNX Runtime's kernels take one.
constexpr std::string_view one_type_operators[] = {
    "Attention",          "BatchNormalization", "GridSample",       "GroupQueryAttention",         "LayerNormalization",
    "MultiHeadAttention", "QuantizeLinear",     "RMSNormalization", "SimplifiedLayerNormalization"};
constexpr std::string_view element_movers[] = {
    "CenterCropPad", "Compress",     "Concat",          "DepthToSpace",    "Expand",
    "Flatten",       "Gather",       "GatherElements",  "GatherND",        "Identity",
    "Pad",           "Reshape",      "ReverseSequence", "ScatterElements", "ScatterND",
    "Slice",         "SpaceToDepth", "Split",           "Squeeze",         "Tile",
    "Transpose",     "Trilu",        "Unsqueeze",       "Where",
};
constexpr std::string_view size_operators[] = {
    "Abs",     "Add",    "Cast",  "CastLike", "Ceil",      "Clip",      "Concat",     "CumSum",
    "Div",     "Expand", "Floor", "Gather",   "Identity",  "Max",       "Min",        "Mod",
    "Mul",     "Neg",    "Pow",   "Range",    "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum",
    "Reshape", "Round",  "Slice", "Squeeze",  "Sub",       "Sum",       "Unsqueeze",  "Where",
};

constexpr std::string_view number_operators[] = {"Einsum", "Exp",        "Gemm",       "Log",  "MatMul",
                                                 "Mean",   "Reciprocal", "ReduceMean", "Sign", "Sqrt"};

ValueId id_of(ValueId id) { return id; }
ValueId id_of(const Declaration& declared) { return declared.value; }

}  // namespace

const TypeAttribute* type_attribute(std::string_view op_type) noexcept {
  return find_row(type_attributes, &TypeAttribute::op_type, op_type);
}

const Schema* schema_of(const Node& node, const Graph& graph) {
  const std::int64_t opset = graph.opset(node.domain);
  return opset <= 0 ? nullptr : find_schema(node.domain, node.op_type, opset);
}

std::uint64_t elements_of(const TypeSet& set, ValueType::Kind kind) noexcept {
  using Kind = ValueType::Kind;
  switch (kind) {
    case Kind::tensor:
      return set.tensors;
    case Kind::sequence:
      return set.sequences;
    case Kind::optional:
      return set.optionals;
    case Kind::optional_sequence:
      return set.optional_sequences;
    default:
      return 0;
  }
}

bool is_control_flow(const Node& node) noexcept {
  return node.domain.empty() &&
         (node.op_type == "If" || node.op_type == "Loop" || node.op_type == "Scan" || node.op_type == "SequenceMap");
}

bool is_container_operator(std::string_view op_type) noexcept { return contains(container_operators, op_type); }
bool has_one_type(std::string_view op_type) noexcept { return contains(one_type_operators, op_type); }
bool outputs_have_one_type(std::string_view op_type) noexcept {
  return op_type == "Attention" || op_type == "GroupQueryAttention" || op_type == "MultiHeadAttention";
}
bool has_stash_type(std::string_view op_type) noexcept {
  return op_type == "LayerNormalization" || op_type == "SimplifiedLayerNormalization";
}
bool only_moves_elements(std::string_view op_type) noexcept { return contains(element_movers, op_type); }
bool is_constant_node(const Node* node) noexcept {
  return node != nullptr && node->op_type == "Constant" && node->domain.empty();
}
bool passes_on(const Node& node) noexcept {
  const std::string_view op = node.op_type;
  return node.domain.empty() && (op == "Cast" || op == "CastLike" || only_moves_elements(op));
}
bool may_compute_sizes(std::string_view op_type) noexcept { return contains(size_operators, op_type); }
bool computes_numbers(std::string_view op_type) noexcept {
  return may_compute_sizes(op_type) || contains(number_operators, op_type);
}
bool is_wide_integer(DType dtype) noexcept {
  constexpr DType wide[] = {DType::uint16, DType::int16, DType::int32, DType::int64, DType::uint32, DType::uint64};
  return contains(wide, dtype);
}
DType cast_target(const Node& node) noexcept {
  const Attribute* to = node.op_type == "Cast" ? node.attribute("to") : nullptr;
  return to == nullptr ? DType::undefined : static_cast<DType>(to->i);
}

bool is_size_input(std::string_view op_type, std::size_t index) noexcept {
  if (op_type == "Resize") return index > 0;
  if (op_type == "Upsample") return index > 0;
  return op_type == "Range" || (op_type == "OneHot" && index == 1);
}

BodyWiring body_wiring(const Node& node, std::int64_t opset) {
  if (node.op_type == "Loop") {  // (count, condition, carried...) -> body(iteration, condition, carried...)
    const std::size_t carried = node.input_names.size() > 2 ? node.input_names.size() - 2 : 0;
    return {.first_body_input = 2, .first_node_input = 2, .first_body_output = 1, .carried = carried};
  }
  if (node.op_type == "Scan") {  // opset 8 has the lengths first
    const std::size_t first = opset < 9 ? 1 : 0;
    const Attribute* scanned = node.attribute("num_scan_inputs");
    const std::size_t all = node.input_names.size() > first ? node.input_names.size() - first : 0;
    const auto count = static_cast<std::uint64_t>(scanned == nullptr ? 0 : scanned->i);
    return {.first_node_input = first, .carried = count <= all ? all - static_cast<std::size_t>(count) : 0};
  }
  return {};
}

void each_alias(const Model& model, const Graph& graph, const Node& node,
                const std::function<void(ValueId from, ValueId to)>& found) {
  const auto add = [&](const auto& from, std::size_t i, const auto& to, std::size_t k) {
    const bool is_there = i < from.size() && k < to.size() && id_of(from[i]) != no_value && id_of(to[k]) != no_value;
    if (is_there) found(id_of(from[i]), id_of(to[k]));
  };
  if (const Function* function = model.function(node)) {
    for (std::size_t k = 0; k < node.inputs.size(); ++k) add(node.inputs, k, function->body.inputs, k);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) add(function->body.outputs, k, node.outputs, k);
  } else if (is_control_flow(node)) {
    const BodyWiring wiring = body_wiring(node, graph.opset(node.domain));
    for (const Graph* body : node.bodies()) {
      for (std::size_t k = 0; k < body->inputs.size(); ++k) add(node.inputs, wiring.input_of(k), body->inputs, k);
      for (std::size_t k = 0; k < body->outputs.size(); ++k) {
        const std::size_t output = wiring.output_of(k);
        add(body->outputs, k, node.outputs, output);
        if (output < wiring.carried) add(body->outputs, k, body->inputs, wiring.first_body_input + output);
      }
    }
  }
}

}  // namespace tensorcast::models::onnx
