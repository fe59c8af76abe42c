// SPDX-License-Identifier: Apache-2.0
// tensorcast::onnx::clean(): removes Casts and Identities that change no value.
#include <fmt/format.h>

#include "dtype/try.hpp"
#include "models/onnx/edit/model_files.hpp"
#include "models/onnx/guarded_for_file.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/ir/type_inference.hpp"
#include "models/onnx/model_folder.hpp"
#include "models/onnx/precision/cast_elision.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {
namespace {

using ::tensorcast::onnx::CleanOutcome;
using ::tensorcast::onnx::CleanRequest;

Result<CleanOutcome> clean(const CleanRequest& request) {
  const OpenModel source = TRY(open_model(request.input));
  infer_types(*source.model);
  const Model& model = *source.model;
  const PrecisionPlan plan = PrecisionPlan::unchanged(model);
  const CodePairs codes(source.file, plan);
  const CastElision elision(plan, {.identities = true, .lossy = request.allow_lossy_cast_elision, .codes = &codes});

  CleanOutcome outcome{.nodes = model.node_count};
  const std::vector<std::string> scopes = graph_scopes(model);
  each_graph(plan.model(), [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      outcome.casts += is_cast(node) ? 1 : 0;
      if (elision.removal(node) == Removal::none) continue;
      outcome.casts_removed += is_cast(node) ? 1 : 0;
      outcome.removed.push_back({.name = shown_name(node),
                                 .op_type = node.op_type,
                                 .scope = scopes[graph.id],
                                 .reason = reason_of(elision.removal(node))});
    }
  });
  if (request.dry_run) return outcome;
  const TensorPlacement placement{.leave_external = in_same_folder(request.input, request.output)};
  const Rebuild build = [&](const std::map<std::string, std::string>& names) {
    return build_model(source.file, plan, elision, placement, request.output, names);
  };
  BuiltModel built = TRY(build({}));
  TRY(write_model(source.file, model, std::move(built), request.output, {.overwrite = request.overwrite}, build));
  return outcome;
}

}  // namespace
}  // namespace tensorcast::models::onnx

namespace tensorcast::onnx {
inline namespace TENSORCAST_ABI {

Result<CleanOutcome> clean(const CleanRequest& request) {
  return models::onnx::guarded_for_file(request.input, [&] { return models::onnx::clean(request); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast::onnx
