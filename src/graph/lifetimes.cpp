// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "graph/execution_plan.hpp"

namespace tensorcast::graph {

void finish_lifetimes(Block& block) {
  std::vector<bool> needed(block.slot_count, false);  // used by a later step or by the outputs
  std::vector<bool> kept(block.slot_count, false);    // leaves the block, perhaps through an Identity
  for (const Slot slot : block.outputs) needed[slot] = kept[slot] = true;
  std::vector<Step> steps;  // last first
  for (auto step = block.steps.rbegin(); step != block.steps.rend(); ++step) {
    bool useful = false;
    for (Slot& slot : step->outputs) {
      if (slot != no_slot && !needed[slot]) slot = no_slot;
      useful = useful || slot != no_slot;
      step->result_is_kept = step->result_is_kept || (slot != no_slot && kept[slot]);
    }
    if (!useful) continue;
    for (const Slot slot : step->inputs) {
      if (!needed[slot]) step->last_uses.push_back(slot);
      needed[slot] = true;
      if (std::holds_alternative<IdentityOp>(step->work)) kept[slot] = kept[slot] || step->result_is_kept;
    }
    steps.push_back(std::move(*step));
  }
  std::ranges::reverse(steps);
  block.steps = std::move(steps);
}

}  // namespace tensorcast::graph
