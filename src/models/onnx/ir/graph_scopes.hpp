// SPDX-License-Identifier: Apache-2.0
// Names for people: where in a model a node or value is, and what type it has.
#pragma once

#include <string>
#include <vector>

#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

// Returns the path of each graph, by its id: "" for the main one, "NODE.ATTRIBUTE" for that in an attribute of a node,
// separated by slashes, and "DOMAIN::NAME" for a function. A node without a name has "OPERATOR#NUMBER", where the first
// of its graph and operator has 0, so that nodes without graphs, which conversions add, change no path. "#ID" stands
// for paths over 1000 bytes.
[[nodiscard]] std::vector<std::string> graph_scopes(const Model& model);

// Returns the name of a node, or that of its first output if it has none.
[[nodiscard]] inline const std::string& shown_name(const Node& node) {
  return !node.name.empty() || node.output_names.empty() ? node.name : node.output_names.front();
}

// Returns a type such as "float32" or "sequence of float32"; "unknown" if it is not known.
[[nodiscard]] std::string type_text(const ValueType& type);

}  // namespace tensorcast::models::onnx
