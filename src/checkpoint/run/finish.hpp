// SPDX-License-Identifier: Apache-2.0
// The step that makes a folder of converted shards a checkpoint.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/plan/work_folder.hpp"
#include "checkpoint/run/attesting.hpp"

namespace tensorcast::checkpoint {

// `shard_sums` are the SHA-256 of all shards, `folder` is locked for this process alone. Goes on from wherever a crash
// stopped. Errors: io, parse; invalid_argument: files of somebody else are in the way.
// `attesting`: null: there is no statement.
[[nodiscard]] Result<void> finish(const CheckpointPlan& plan, std::span<const std::string> shard_sums,
                                  WorkFolder& folder, const Attesting* attesting = nullptr);

// A file of the output that is made as text.
struct MadeText {
  std::string name;
  // Sets `mode` to the permissions of the file that it is made of. Errors: io, parse.
  std::function<Result<std::string>(unsigned& mode)> make;
};

// Returns those of a plan, which outlives them: configurations, then new files, then indexes.
[[nodiscard]] std::vector<MadeText> made_texts(const CheckpointPlan& plan);

// Returns the names of a line of SHA256SUMS, as sha256sum writes it.
[[nodiscard]] std::string sums_line(const std::string& sha256, const std::string& name);

}  // namespace tensorcast::checkpoint
