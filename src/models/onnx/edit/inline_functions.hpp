// SPDX-License-Identifier: Apache-2.0
// Replaces calls of a model's functions by the functions' nodes.
#pragma once

#include "io/input_file.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/wire/wire_rope.hpp"

namespace tensorcast::models::onnx {

struct InlinedModel {
  WireRope rope;
  std::size_t calls = 0;  // calls that were inlined; 0: the model is the same
};

// Puts the nodes of a function in the place of each call, also in subgraphs, and drops functions that nothing calls any
// more. Values and nodes inside get the name of the call before their own. These stay: functions of another opset than
// the model's, calls that give a graph as an attribute, and ai.tensorcast::Cast. `file` outlives the result.
// Errors: parse, io; unsupported: functions that call themselves, or would become far larger than the file.
[[nodiscard]] Result<InlinedModel> inline_functions(const io::InputFile& file, const Model& model);

}  // namespace tensorcast::models::onnx
