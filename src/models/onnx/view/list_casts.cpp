// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/view/list_casts.hpp"

#include <fmt/format.h>

#include <optional>

#include "dtype/try.hpp"
#include "models/onnx/guarded_for_file.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/ir/type_inference.hpp"
#include "models/onnx/precision/cast_elision.hpp"

namespace tensorcast::models::onnx {

using ::tensorcast::onnx::CastInfo;
using ::tensorcast::onnx::CastRole;

namespace {

// Finds the role of a Cast from the origin of its input and the uses of its result.
class CastExplainer {
 public:
  CastExplainer(const Model& model, const CastElision& elision)
      : model_(model), elision_(elision), scopes_(graph_scopes(model)), uses_(model.values.size()) {
    collect(*model.graph);
    for (const auto& function : model.functions) collect(function->body);
  }

  CastInfo explain(const Node& node, const Graph& graph) const {
    const ValueId result = node.outputs.empty() ? no_value : node.outputs[0];
    const ValueId taken = node.inputs.empty() ? no_value : node.inputs[0];
    CastInfo info{.name = shown_name(node), .op_type = node.op_type, .scope = scopes_[graph.id]};
    if (taken != no_value) {
      info.input = model_.values[taken].name;
      info.from = castable(taken);
    }
    if (result != no_value) {
      info.output = model_.values[result].name;
      info.to = castable(result);
      info.consumers = uses_[result].size();
    }
    info.removable = elision_.removal(node) != Removal::none;
    if (info.removable) {
      info.role = role_of(elision_.removal(node));
      info.reason = reason_of(elision_.removal(node));
    } else if (taken != no_value && result != no_value) {
      decide(graph, taken, result, info);
    }
    return info;
  }

 private:
  struct Use {
    const Node* node = nullptr;  // null: it is an output of the graph
    const Graph* graph = nullptr;
    std::size_t input = 0;
  };

  static CastRole role_of(Removal removal) {
    switch (removal) {
      case Removal::identity_cast:
        return CastRole::same_type;
      case Removal::duplicate:
        return CastRole::duplicate;
      case Removal::dead:
        return CastRole::unused;
      default:
        return CastRole::round_trip;
    }
  }

  void collect(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != no_value) uses_[node.inputs[i]].push_back({&node, &graph, i});
      }
      for (const Graph* inner : node.bodies()) collect(*inner);
    }
    for (const Declaration& output : graph.outputs) uses_[output.value].push_back({nullptr, &graph, 0});
  }

  DType castable(ValueId id) const {
    const ValueType& type = model_.values[id].type;
    return type.is_tensor() ? known(type.element) : DType::undefined;
  }

  void decide(const Graph& graph, ValueId taken, ValueId result, CastInfo& info) const {
    const Value& source = model_.values[taken];
    const bool both_floats = family(info.from) == Family::floating && family(info.to) == Family::floating;
    if (info.from == DType::undefined || info.to == DType::undefined) {
      info.reason = "a type is unknown, or set by the function's caller";
      return;
    }
    if (!both_floats) {
      info.role = CastRole::computation;
      info.reason = fmt::format("it computes: {} to {}", name(info.from), name(info.to));
      return;
    }
    const Node* producer = source.producer;
    if (producer != nullptr && is_cast(*producer) && castable(producer->inputs.at(0)) == info.to) {
      info.role = CastRole::rounding;
      info.reason = fmt::format("with \"{}\" before it, it rounds to {}", shown_name(*producer), name(info.from));
      return;
    }
    const bool is_constant = producer != nullptr && producer->op_type == "Constant";
    if ((source.initializer != nullptr && !source.is_input) || is_constant) {
      info.role = CastRole::storage;
      info.reason = fmt::format("\"{}\" is stored in {}", source.name, name(info.from));
      return;
    }
    if (source.is_input && source.graph == model_.graph.get()) {
      info.role = CastRole::model_input;
      info.reason = fmt::format("\"{}\" is an input of the model, which is {}", source.name, name(info.from));
      return;
    }
    for (const Use& use : uses_[result]) {
      if (use.node != nullptr || use.graph != model_.graph.get()) continue;
      info.role = CastRole::model_output;
      info.reason = fmt::format("it makes an output of the model, which is {}", name(info.to));
      return;
    }
    info.role = CastRole::consumer;
    for (const Use& use : uses_[result]) {
      if (use.node == nullptr) continue;
      info.reason = need_of(use, info);
      return;
    }
    info.reason = graph.is_function ? "it makes an output of the function" : "it makes an output of the subgraph";
  }

  std::string need_of(const Use& use, const CastInfo& info) const {
    const Node& node = *use.node;
    const std::string who = fmt::format("{} \"{}\"", node.op_type, shown_name(node));
    const Schema* schema = schema_of(node, *use.graph);
    const Parameter* parameter = schema == nullptr ? nullptr : Schema::at(schema->inputs, use.input);
    if (parameter == nullptr) return fmt::format("{} takes {}", who, name(info.to));
    const std::uint64_t allowed = schema->variables[parameter->variable].tensors;
    if (!has_type(allowed, info.from)) {
      return fmt::format("{} does not take {} in this opset", who, name(info.from));
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Parameter* other = Schema::at(schema->inputs, i);
      if (i == use.input || other == nullptr || other->variable != parameter->variable) continue;
      if (node.inputs[i] != no_value && castable(node.inputs[i]) == info.to) {
        return fmt::format("{} takes \"{}\", which is {}, too", who, model_.values[node.inputs[i]].name, name(info.to));
      }
    }
    return fmt::format("{} computes in {}", who, name(info.to));
  }

  const Model& model_;
  const CastElision& elision_;
  std::vector<std::string> scopes_;
  std::vector<std::vector<Use>> uses_;  // by value
};

}  // namespace

std::vector<CastInfo> list_casts(const Model& model, const io::InputFile* file) {
  const PrecisionPlan plan = PrecisionPlan::unchanged(model);
  std::optional<CodePairs> codes;
  if (file != nullptr) codes.emplace(*file, plan);
  const CastElision elision(plan, {.codes = codes ? &*codes : nullptr});
  const CastExplainer explainer(model, elision);
  std::vector<CastInfo> casts;
  each_graph(plan.model(), [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      const bool is_pair = elision.removal(node) == Removal::code_pair;
      if (is_cast(node) || is_pair) casts.push_back(explainer.explain(node, graph));
    }
  });
  return casts;
}

}  // namespace tensorcast::models::onnx

namespace tensorcast::onnx {
inline namespace TENSORCAST_ABI {

std::string_view name(CastRole role) noexcept {
  constexpr std::string_view names[] = {"consumer",    "same_type",    "unused",      "duplicate",
                                        "round_trip",  "rounding",     "computation", "storage",
                                        "model_input", "model_output", "unknown"};
  const auto index = static_cast<std::size_t>(role);
  return index < std::size(names) ? names[index] : std::string_view();
}

Result<std::vector<CastInfo>> list_casts(const std::string& path) {
  return models::onnx::guarded_for_file(path, [&]() -> Result<std::vector<CastInfo>> {
    const models::onnx::OpenModel source = TRY(models::onnx::open_model(path));
    models::onnx::infer_types(*source.model);
    return models::onnx::list_casts(*source.model, &source.file);
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast::onnx
