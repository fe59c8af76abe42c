// From an ONNX model's tree to the graph that it means: functions inlined, tensors loaded.
#pragma once

#include "io/input_file.hpp"
#include "models/onnx/model_tree.hpp"

namespace tensorcast::models::onnx {

// Errors: unsupported: a node that is not a conversion, an attribute or operator that its version does not have, an
// opset above newest_opset; parse: what ONNX forbids; io: external data. Error::file is set, and nodes are named.
[[nodiscard]] Result<Graph> build_graph(const ModelTree& model, const io::InputFile& file);

}  // namespace tensorcast::models::onnx
