// SPDX-License-Identifier: Apache-2.0
// Orders nodes so that every node comes after those that it needs.
#pragma once

#include <cstddef>
#include <vector>

namespace tensorcast::graph {

using Predecessors = std::vector<std::vector<std::size_t>>;  // for each node, the nodes that it needs

// Returns all nodes in order; if there is a cycle, only those that can run. Keeps the given order where it is free to.
[[nodiscard]] std::vector<std::size_t> order_nodes(const Predecessors& predecessors);

// Returns the nodes of one cycle, each needed by the next, and the last by the first.
// Precondition: `order` came from order_nodes() and lacks nodes.
[[nodiscard]] std::vector<std::size_t> find_cycle(const Predecessors& predecessors,
                                                  const std::vector<std::size_t>& order);

}  // namespace tensorcast::graph
