// SPDX-License-Identifier: Apache-2.0
// Checks what a model must have to be run: only tensors, and values of the types that they declare.
#pragma once

#include "io/memory_budget.hpp"
#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

// Also gives attributes that name no type the type of their value. `model` was read whole;
// what its nodes need to run is taken from `budget`. Errors: parse; unsupported:
// sparse initializers, inputs or outputs that are no tensors, more nodes than the file's size explains.
[[nodiscard]] Result<void> check_runnable(Model& model, io::MemoryBudget& budget);

}  // namespace tensorcast::models::onnx
