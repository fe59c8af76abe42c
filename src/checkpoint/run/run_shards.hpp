// SPDX-License-Identifier: Apache-2.0
// Converts the shards of a plan, several at a time where there are cores for them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/plan/work_folder.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast::checkpoint {

// One shard alone keeps two cores busy at most: its bytes are hashed one after the other.
[[nodiscard]] std::size_t shards_at_once(const Execution& execution, std::size_t shards) noexcept;

struct ShardJob {
  const CheckpointPlan& plan;
  const WorkFolder& folder;
  const Execution& execution;                               // shared by the shards that run at once
  const std::function<bool(const Progress&)>& on_progress;  // only called by the thread that calls run_shards()
};

using TakeShard = std::function<void(std::size_t index, DoneShard done, bool was_done_before)>;

// Converts those of `chosen` that are not done, and tells `take` of each that is, in one call after the other. After
// the first error no further shard is begun, and those that run are given up. Memory: that of run_shard() times
// `at_once`. Errors: those of convert_shards().
[[nodiscard]] Result<void> run_shards(const ShardJob& job, std::span<const std::size_t> chosen, std::size_t at_once,
                                      const TakeShard& take);

}  // namespace tensorcast::checkpoint
