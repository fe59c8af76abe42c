// From the nodes of an MDF model to a graph of ours.
#pragma once

#include "models/mdf/mdf_model.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::models::mdf {

// Errors: parse: identifiers that nothing has, cycles, types that contradict each other; unsupported: other functions,
// expressions. Messages name graph, node and part.
[[nodiscard]] Result<Graph> build_graph(const MdfModel& model, const LoadModelOptions& options);

}  // namespace tensorcast::models::mdf
