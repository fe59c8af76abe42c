// SPDX-License-Identifier: Apache-2.0
#include "graph/node_order.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace tensorcast::graph {

std::vector<std::size_t> order_nodes(const Predecessors& predecessors) {
  const std::size_t count = predecessors.size();
  std::vector<std::size_t> missing(count);
  std::vector<std::vector<std::size_t>> successors(count);
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;  // smallest index first
  for (std::size_t node = 0; node < count; ++node) {
    missing[node] = predecessors[node].size();
    for (const std::size_t needed : predecessors[node]) successors[needed].push_back(node);
    if (missing[node] == 0) ready.push(node);
  }
  std::vector<std::size_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const std::size_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const std::size_t next : successors[node]) {
      if (--missing[next] == 0) ready.push(next);
    }
  }
  return order;
}

std::vector<std::size_t> find_cycle(const Predecessors& predecessors, const std::vector<std::size_t>& order) {
  std::vector<bool> blocked(predecessors.size(), true);
  for (const std::size_t node : order) blocked[node] = false;
  // Every blocked node needs a blocked node, so walking backward must reach a node twice.
  const auto first_blocked = std::ranges::find(blocked, true) - blocked.begin();
  std::vector<std::size_t> path;
  std::vector<bool> seen(predecessors.size(), false);
  auto node = static_cast<std::size_t>(first_blocked);
  while (!seen[node]) {
    seen[node] = true;
    path.push_back(node);
    node = *std::ranges::find_if(predecessors[node], [&](std::size_t needed) { return blocked[needed]; });
  }
  path.erase(path.begin(), std::ranges::find(path, node));
  std::ranges::reverse(path);
  return path;
}

}  // namespace tensorcast::graph
