// SPDX-License-Identifier: Apache-2.0
// Which files of an output folder a conversion may replace or remove: only those that a former run wrote, as the record
// says that it left there. docs/outputs.md has the rules.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/store/folder.hpp"
#include "io/written_files.hpp"

namespace tensorcast::checkpoint {

// The names of all files that finish writes, besides the record: shards, then other files, then indexes.
[[nodiscard]] std::vector<std::string> output_names(const CheckpointPlan& plan);

// Checks that no other file of `folder` is in the way, and that no weights are there which a loader might take for part
// of the output. Returns what a former run wrote: all of it may go. Errors: invalid_argument, naming the files; io.
[[nodiscard]] Result<std::vector<io::WrittenFile>> check_old_files(const CheckpointPlan& plan, const Folder& folder);

}  // namespace tensorcast::checkpoint
