// From the layers of an IR to a graph of ours.
#pragma once

#include "models/openvino_ir/ir_document.hpp"
#include "models/openvino_ir/ir_weights.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::models::openvino_ir {

// Errors: parse: edges that lead nowhere, ports that are not fed or fed twice, a cycle, ports that contradict what the
// layer gives; unsupported: another layer type, an element type that we do not have. Messages name the layer.
[[nodiscard]] Result<Graph> build_graph(const Document& document, Weights& weights);

}  // namespace tensorcast::models::openvino_ir
