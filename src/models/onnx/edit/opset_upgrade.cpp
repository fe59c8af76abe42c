// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/opset_upgrade.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "dtype/errors.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/ir/schema.hpp"
#include "models/onnx/precision/precision_plan.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr std::size_t most_shown = 10;

// Finds the nodes that `opset` would change.
std::vector<std::string> find_blocking(const Model& model, std::int64_t opset) {
  std::vector<std::string> blocking;
  each_graph(model, [&](const Graph& each) {
    const std::int64_t from = each.opset("");
    for (const Node& node : each.nodes) {
      if (!node.domain.empty() || from >= opset || model.function(node) != nullptr) continue;
      if (keeps_meaning("", node.op_type, from, opset)) continue;
      blocking.push_back(fmt::format("{} \"{}\"", shown(node.op_type), shown(shown_name(node))));
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
  std::vector<std::string> blocking = find_blocking(model, opset);
  if (!blocking.empty()) {
    const std::size_t count = blocking.size();
    if (count > most_shown) blocking.resize(most_shown);
    return unsupported(
        fmt::format("{} of the model's nodes would mean something else in opset {}: {}{}", count, opset,
                    fmt::join(blocking, ", "), count > most_shown ? ", ..." : ""),
        "`python -m tensorcast.onnx convert` with the same options has ONNX's version converter rewrite such nodes");
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
