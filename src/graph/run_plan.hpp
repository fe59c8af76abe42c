// SPDX-License-Identifier: Apache-2.0
// Runs a plan on tensors.
#pragma once

#include <span>
#include <vector>

#include "graph/buffer_pool.hpp"
#include "graph/execution_plan.hpp"

namespace tensorcast::graph {

struct RunContext {
  Execution execution = {};
  BufferPool& pool;
};

// Returns the values of the block's outputs. `arguments` are in the block's order.
// Errors: as Program::run(); the message names the node.
[[nodiscard]] Result<std::vector<Tensor>> run_plan(const Block& block, std::span<const Tensor> arguments,
                                                   RunContext& context);

}  // namespace tensorcast::graph
