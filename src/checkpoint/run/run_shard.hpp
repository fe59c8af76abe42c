// SPDX-License-Identifier: Apache-2.0
// Converts one shard of a plan.
#pragma once

#include <functional>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/plan/work_folder.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::checkpoint {

// The bytes that a shard adds to the progress.
[[nodiscard]] std::uint64_t work_bytes(const CheckpointPlan& plan, const PlannedShard& shard) noexcept;

// Converts a shard, and records it as done. Tells `on_progress`, which outlives this, how far it is; returns nullopt
// when that cancels. Memory: a few blocks. Errors: those of convert_shards().
[[nodiscard]] Result<std::optional<DoneShard>> run_shard(const CheckpointPlan& plan, std::size_t index,
                                                         const WorkFolder& folder, const Execution& execution,
                                                         const std::function<bool(const Progress&)>& on_progress);

// Makes the bytes of a shard again, and compares them with those of a file. Returns their SHA-256.
// Errors: those of convert_shards(); internal: the tensor and block that differs; cancelled.
[[nodiscard]] Result<std::string> compare_shard(const CheckpointPlan& plan, std::size_t index,
                                                const StoredFile& written, const Execution& execution,
                                                const std::function<bool(const Progress&)>& on_progress);

}  // namespace tensorcast::checkpoint
