// Moves a model to a later opset of the standard operators.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

// Raises the opset of the model and of its functions to `opset`; those that have it, or a later one, stay. No node
// changes. Errors: unsupported, with the nodes that would mean something else in the new opset; nothing has changed
// then. invalid_argument: the model has a later opset, or `opset` is none that tensorcast knows.
[[nodiscard]] Result<void> upgrade_opset(Model& model, std::int64_t opset);

}  // namespace tensorcast::models::onnx
