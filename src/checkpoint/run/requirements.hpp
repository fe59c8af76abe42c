// SPDX-License-Identifier: Apache-2.0
// What a conversion will need: time, memory, disk.
#pragma once

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::checkpoint {

// Reads and converts the first bytes of the largest tensor to measure the speed; takes up to about a second.
[[nodiscard]] Requirements measure_requirements(const CheckpointPlan& plan, const std::string& output,
                                                const Execution& execution);

}  // namespace tensorcast::checkpoint
