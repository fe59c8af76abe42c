// SPDX-License-Identifier: Apache-2.0
// Builds a graph from an ONNX model: functions inlined, tensors loaded.
#pragma once

#include "io/input_file.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::models::onnx {

// Errors: unsupported: a node that is not a conversion, an attribute or operator that its opset does not have, an opset
// above newest_opset; parse: violations of the ONNX specification; io: external data. Error::file is set, and messages
// name nodes.
[[nodiscard]] Result<::tensorcast::Graph> build_graph(const io::InputFile& file);

}  // namespace tensorcast::models::onnx
