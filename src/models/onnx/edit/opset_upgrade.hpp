// SPDX-License-Identifier: Apache-2.0
// Moves a model to a later opset of the standard operators.
#pragma once

#include <cstdint>

#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

// Raises lower opsets of the model and its functions to `opset` and changes no node. If a node would mean something
// else, the model is unchanged and the error, unsupported, names the node. Errors: also invalid_argument: the model has
// a later opset, or tensorcast does not know `opset`.
[[nodiscard]] Result<void> upgrade_opset(Model& model, std::int64_t opset);

// Undoes upgrade_opset(). Returns false if the model and its functions have the opsets of the file.
bool restore_opset(Model& model);

}  // namespace tensorcast::models::onnx
