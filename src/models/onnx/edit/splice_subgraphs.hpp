// Edits of a model's bytes that reach into the graphs that nodes have as attributes.
#pragma once

#include <utility>

#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/wire/wire_rope.hpp"

namespace tensorcast::models::onnx {

// Returns the contents of a node in which edit(graph, changed) has replaced those of its subgraphs that it changes.
// Errors: those of edit().
template <class Edit>
[[nodiscard]] Result<WireRope> splice_subgraphs(const Node& node, bool& changed, Edit edit) {
  Splice splice(node.field);
  for (const Attribute& attribute : node.attributes) {
    Splice inside(attribute.field);
    for (const auto& graph : attribute.graphs) {
      bool graph_changed = false;
      Result<WireRope> contents = edit(*graph, graph_changed);
      if (!contents) return contents;
      if (graph_changed) inside.replace(graph->field, std::move(*contents));
    }
    if (inside.changed()) splice.replace(attribute.field, std::move(inside).finish());
  }
  changed = splice.changed();
  return std::move(splice).finish();
}

}  // namespace tensorcast::models::onnx
