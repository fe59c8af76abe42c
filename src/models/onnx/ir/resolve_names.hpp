// SPDX-License-Identifier: Apache-2.0
// Names of a model that was read become values.
#pragma once

#include <vector>

#include "io/memory_budget.hpp"
#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

// Of the main graph or a function, with the graphs inside: these may take values of the graphs around them; a function
// sees only its own. Errors: parse; those of the budget.
[[nodiscard]] Result<void> resolve_names(Model& model, Graph& graph, const std::vector<Opset>& opsets,
                                         io::MemoryBudget& budget);

}  // namespace tensorcast::models::onnx
