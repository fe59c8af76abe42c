// SPDX-License-Identifier: Apache-2.0
// Which part of the shards a process of many converts.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "tensorcast/error.hpp"

namespace tcast {

struct ShardPart {
  std::size_t first = 0;  // part `first` of `step`, counted from 0
  std::size_t step = 1;
  std::string source = {};  // the environment variable that it is from; "": the command line
};

// Returns the value of an environment variable, or nullopt.
using Environment = std::function<std::optional<std::string>(const char*)>;

// Parses "2/8", or "auto" and "auto/8", which take the part from the environment: SLURM_ARRAY_TASK_ID (with
// SLURM_ARRAY_TASK_MIN, _STEP and _COUNT), RANK and WORLD_SIZE, or JOB_COMPLETION_INDEX. Errors: invalid_argument.
[[nodiscard]] tensorcast::Result<ShardPart> parse_shard_part(const std::string& text, const Environment& environment);

// Returns the part that the environment names, nullopt if it names none.
[[nodiscard]] tensorcast::Result<std::optional<ShardPart>> part_of_environment(const Environment& environment);

}  // namespace tcast
