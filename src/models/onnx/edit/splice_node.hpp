// SPDX-License-Identifier: Apache-2.0
// Edits a node's bytes: its names, and the subgraphs in its attributes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dtype/try.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/wire_rope.hpp"

namespace tensorcast::models::onnx {

// Lets change(graph, around) replace each subgraph in the attribute around it. Errors: those of change().
template <class Change>
[[nodiscard]] Result<void> splice_subgraphs(const Node& node, Splice& splice, Change change) {
  for (const Attribute& attribute : node.attributes) {
    Splice inside(attribute.field);
    for (const auto& graph : attribute.graphs) {
      TRY(change(*graph, inside));
    }
    if (inside.changed()) splice.replace(attribute.field, std::move(inside).finish());
  }
  return {};
}

// Gives a node other inputs, outputs and, unless it is empty, another operator. Errors: parse, io.
[[nodiscard]] inline Result<void> rename(const io::InputFile& file, const Node& node,
                                         const std::vector<std::string>& inputs,
                                         const std::vector<std::string>& outputs, const std::string& op_type,
                                         Splice& splice) {
  if (inputs == node.input_names && outputs == node.output_names && op_type.empty()) return {};
  std::size_t input = 0;
  std::size_t output = 0;
  WireReader wire(file, node.field.offset, end_of(node.field));
  return each_field(wire, [&](const WireField& field) -> Result<void> {
    const auto become = [&](const std::string& text) {
      splice.replace_by_fields(field, WireRope(encode_field(field.number, text)));
    };
    if (field.number == node_field::input) become(inputs[input++]);
    if (field.number == node_field::output) become(outputs[output++]);
    if (field.number == node_field::op_type && !op_type.empty()) become(op_type);
    return {};
  });
}

}  // namespace tensorcast::models::onnx
