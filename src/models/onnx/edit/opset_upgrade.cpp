// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/opset_upgrade.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/ir/schema.hpp"
#include "models/onnx/ir/type_inference.hpp"
#include "models/onnx/precision/precision_plan.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr std::size_t most_shown = 10;

// Reports whether a Cast to the type has other rules from opset 24 on: integers of 4 bits wrap, where they saturated;
// infinity becomes the largest fnuz number, not NaN; NaN becomes -0 in float4, not 6.
bool changes_cast_to(DType dtype) {
  constexpr DType changed[] = {DType::int4, DType::uint4, DType::float4_e2m1fn, DType::float8_e4m3fnuz,
                               DType::float8_e5m2fnuz};
  return contains(changed, dtype);
}

// Reports whether a call of any function gives the attribute a type whose rules change.
bool is_given_changed_type(const Model& model, const std::string& attribute) {
  bool found = false;
  const auto look = [&](const Attribute* given) {
    found = found || (given != nullptr && (!given->reference.empty() || changes_cast_to(static_cast<DType>(given->i))));
  };
  each_graph(model, [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (model.function(node) != nullptr) look(node.attribute(attribute));
    }
  });
  for (const auto& function : model.functions) {
    for (const Attribute& absent : function->defaults) look(absent.name == attribute ? &absent : nullptr);
  }
  return found;
}

bool changes_cast(const Model& model, const Node& node) {
  if (node.inputs.empty() || node.outputs.empty() || node.inputs[0] == no_value || node.outputs[0] == no_value) {
    return false;
  }
  const DType source = known(model.values[node.inputs[0]].type.element);
  if (source != DType::undefined && family(source) != Family::floating && source != DType::string) return false;
  const Attribute* const to = node.op_type == "Cast" ? node.attribute("to") : nullptr;
  if (to != nullptr && !to->reference.empty()) return is_given_changed_type(model, to->reference);
  const DType made = to != nullptr ? cast_target(node) : model.values[node.outputs[0]].type.element;
  const Attribute* const saturate = node.attribute("saturate");
  const bool saturates = saturate == nullptr || saturate->i != 0 || !saturate->reference.empty();
  return changes_cast_to(made) && (saturates || bit_width(made) == 4);
}

// Reports whether a node means something else by its attributes or types, although the schemas agree.
bool changes_by_value(const Model& model, const Node& node, std::int64_t from, std::int64_t to) {
  if (node.op_type == "Cast" || node.op_type == "CastLike") {
    return from < 24 && to >= 24 && changes_cast(model, node);
  }
  if (node.op_type != "Resize" || from >= 13 || to < 13) return false;
  const Attribute* const mode = node.attribute("coordinate_transformation_mode");
  return mode != nullptr && (mode->s == "tf_half_pixel_for_nn" || !mode->reference.empty());
}

// The nodes that an opset would change, and whether a later version of their operator is the reason for any.
struct Blocking {
  std::vector<std::string> nodes;
  bool has_other_version = false;
};

Blocking find_blocking(const Model& model, std::int64_t opset) {
  Blocking blocking;
  each_graph(model, [&](const Graph& each) {
    const std::int64_t from = each.opset("");
    for (const Node& node : each.nodes) {
      if (!node.domain.empty() || from >= opset || model.function(node) != nullptr) continue;
      const bool is_same_version = keeps_meaning("", node.op_type, from, opset);
      if (is_same_version && !changes_by_value(model, node, from, opset)) continue;
      blocking.has_other_version = blocking.has_other_version || !is_same_version;
      blocking.nodes.push_back(fmt::format("{} \"{}\"", shown(node.op_type), shown(shown_name(node))));
    }
  });
  return blocking;
}

void raise(std::vector<Opset>& opsets, std::int64_t version) {
  for (Opset& opset : opsets) {
    if (opset.domain.empty() && opset.version < version) opset.version = version;
  }
}

bool restore(std::vector<Opset>& opsets) {
  bool any = false;
  for (Opset& opset : opsets) any = std::exchange(opset.version, opset.file_version) != opset.file_version || any;
  return any;
}

}  // namespace

Result<void> upgrade_opset(Model& model, std::int64_t opset) {
  const std::int64_t here = model.graph->opset("");
  if (opset < here || opset > schema_table_opset) {
    return invalid(fmt::format("the model has opset {} and cannot get {}", here, opset),
                   fmt::format("opsets can only rise, up to {}", schema_table_opset));
  }
  infer_types(model);
  auto [blocking, has_other_version] = find_blocking(model, opset);
  if (!blocking.empty()) {
    const std::size_t count = blocking.size();
    if (count > most_shown) blocking.resize(most_shown);
    return unsupported(
        fmt::format("{} of the model's nodes would mean something else in opset {}: {}{}", count, opset,
                    fmt::join(blocking, ", "), count > most_shown ? ", ..." : ""),
        has_other_version
            ? "`python -m tensorcast.onnx convert` with the same options has ONNX's version converter rewrite such "
              "nodes"
            : "Cast to int4, uint4, float4 and fnuz types has other rules from opset 24 on, and Resize no "
              "tf_half_pixel_for_nn from 13 on");
  }
  raise(model.opsets, opset);
  for (const auto& function : model.functions) raise(function->opsets, opset);
  return {};
}

bool restore_opset(Model& model) {
  bool any = restore(model.opsets);
  for (const auto& function : model.functions) any = restore(function->opsets) || any;
  return any;
}

}  // namespace tensorcast::models::onnx
