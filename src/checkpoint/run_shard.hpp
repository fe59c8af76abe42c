// Converts one shard of a plan.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint_plan.hpp"
#include "checkpoint/work_folder.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::checkpoint {

// Counts the bytes of a whole conversion, of which shards are parts.
struct JobProgress {
  std::function<bool(const Progress&)> on_progress;
  std::uint64_t bytes_done = 0;    // by complete shards
  std::uint64_t bytes_before = 0;  // by shards that an earlier run completed
  std::uint64_t bytes_total = 0;
  std::size_t shard = 0;
  std::size_t shards = 0;
};

// The bytes that a shard adds to the progress.
[[nodiscard]] std::uint64_t work_bytes(const CheckpointPlan& plan, const PlannedShard& shard) noexcept;

// Converts a shard, and records it as done. Returns nullopt when cancelled. Memory: a few blocks.
// Errors: those of convert_shards().
[[nodiscard]] Result<std::optional<DoneShard>> run_shard(const CheckpointPlan& plan, std::size_t index,
                                                         const WorkFolder& folder, const Execution& execution,
                                                         JobProgress& progress);

}  // namespace tensorcast::checkpoint
