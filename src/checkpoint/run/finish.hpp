// SPDX-License-Identifier: Apache-2.0
// The step that makes a folder of converted shards a checkpoint.
#pragma once

#include <vector>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/plan/work_folder.hpp"
#include "checkpoint/run/attesting.hpp"

namespace tensorcast::checkpoint {

// `done` are the records of all shards, `folder` is locked for this process alone. Goes on from wherever a crash
// stopped. Errors: io, parse; invalid_argument: files of somebody else are in the way.
// `attesting`: null: there is no statement.
[[nodiscard]] Result<void> finish(const CheckpointPlan& plan, const std::vector<DoneShard>& done, WorkFolder& folder,
                                  const Attesting* attesting = nullptr);

// Return what a file of the output becomes that is made of one of the source, and that one's permissions.
// Errors: io, parse.
[[nodiscard]] Result<std::string> config_text(const CheckpointPlan& plan, const PlannedConfig& config, unsigned& mode);
[[nodiscard]] Result<std::string> index_text(const CheckpointPlan& plan, const PlannedModel& model, unsigned& mode);

// Returns the names of a line of SHA256SUMS, as sha256sum writes it.
[[nodiscard]] std::string sums_line(const std::string& sha256, const std::string& name);

}  // namespace tensorcast::checkpoint
