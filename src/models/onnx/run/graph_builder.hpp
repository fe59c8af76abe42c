// Builds a graph from an ONNX model's tree: functions inlined, tensors loaded.
#pragma once

#include "io/input_file.hpp"
#include "models/onnx/run/model_tree.hpp"

namespace tensorcast::models::onnx {

// Errors: unsupported: a node that is not a conversion, an attribute or operator that its opset does not have, an opset
// above newest_opset; parse: violations of the ONNX specification; io: external data. Error::file is set, and messages
// name nodes.
[[nodiscard]] Result<Graph> build_graph(const ModelTree& model, const io::InputFile& file);

}  // namespace tensorcast::models::onnx
