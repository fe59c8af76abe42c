// An order in which every node stands behind those that it needs.
#pragma once

#include <cstddef>
#include <vector>

namespace tensorcast::graph {

using Predecessors = std::vector<std::vector<std::size_t>>;  // of each node, the nodes that it needs

// All nodes, unless there is a cycle: then those that can run. Nodes that could change places keep theirs.
[[nodiscard]] std::vector<std::size_t> order_nodes(const Predecessors& predecessors);

// Nodes of one cycle, each needed by the next, and the last by the first.
// Precondition: `order` came from order_nodes() and lacks nodes.
[[nodiscard]] std::vector<std::size_t> find_cycle(const Predecessors& predecessors,
                                                  const std::vector<std::size_t>& order);

}  // namespace tensorcast::graph
