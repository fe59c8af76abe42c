// SPDX-License-Identifier: Apache-2.0
// Builds a graph from the nodes of an MDF model.
#pragma once

#include "models/mdf/mdf_model.hpp"
#include "tensorcast/graph.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::models::mdf {

// Errors: parse: unknown identifiers, cycles, types that contradict each other; unsupported: other functions,
// expressions. Messages name graph, node and part.
[[nodiscard]] Result<Graph> build_graph(const MdfModel& model, const LoadModelOptions& options);

}  // namespace tensorcast::models::mdf
