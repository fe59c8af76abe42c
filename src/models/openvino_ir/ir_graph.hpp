// SPDX-License-Identifier: Apache-2.0
// Builds a graph from the layers of an IR.
#pragma once

#include "models/openvino_ir/ir_document.hpp"
#include "models/openvino_ir/ir_weights.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::models::openvino_ir {

// Errors: parse: edges from or to a missing port, ports without an edge or with two, a cycle, ports that contradict the
// layer's result; unsupported: another layer type, an unsupported element type. Messages name the layer.
[[nodiscard]] Result<Graph> build_graph(const Document& document, Weights& weights);

}  // namespace tensorcast::models::openvino_ir
