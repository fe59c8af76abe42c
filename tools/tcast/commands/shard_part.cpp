// SPDX-License-Identifier: Apache-2.0
#include "commands/shard_part.hpp"

#include <fmt/format.h>

#include "dtype/errors.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"

namespace tcast {
namespace {

using tensorcast::Error;
using tensorcast::Result;

struct Launcher {
  const char* index;
  const char* first;  // the smallest index; null: 0
  const char* step;   // between indices; null: 1
  const char* count;  // of processes; null: not in the environment
};
constexpr Launcher launchers[] = {
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT"},
    {"RANK", nullptr, nullptr, "WORLD_SIZE"},
    {"JOB_COMPLETION_INDEX", nullptr, nullptr, nullptr},
};

Error wrong(std::string message, std::string hint = {}) {
  return tensorcast::invalid(std::move(message), std::move(hint));
}

// Returns a variable's number, or `otherwise` if it is not set.
Result<std::size_t> variable(const Environment& environment, const char* name, std::size_t otherwise) {
  const std::optional<std::string> text = name == nullptr ? std::nullopt : environment(name);
  if (!text) return otherwise;
  const std::optional<std::size_t> number = tensorcast::parse_whole<std::size_t>(*text);
  if (!number) return wrong(fmt::format("{}=\"{}\" is not a number", name, *text));
  return *number;
}

// Takes the part from the environment; `count` 0 means that the environment has it, too.
Result<std::optional<ShardPart>> find_part(const Environment& environment, std::size_t count) {
  for (const Launcher& launcher : launchers) {
    if (!environment(launcher.index)) continue;
    const Result<std::size_t> index = variable(environment, launcher.index, 0);
    const Result<std::size_t> first = variable(environment, launcher.first, 0);
    const Result<std::size_t> step = variable(environment, launcher.step, 1);
    const Result<std::size_t> processes =
        count != 0 ? Result<std::size_t>(count) : variable(environment, launcher.count, 0);
    for (const auto* number : {&index, &first, &step, &processes}) {
      if (!*number) return number->error();
    }
    if (*processes == 0) {
      return wrong(fmt::format("{} is set, but not the number of processes", launcher.index),
                   "--shard-of auto/N names it");
    }
    const std::size_t part = *index < *first ? *processes : (*index - *first) / (*step == 0 ? 1 : *step);
    if (part >= *processes) {
      return wrong(fmt::format("{}={} is not one of {} processes", launcher.index, *index, *processes));
    }
    return std::optional(ShardPart{.first = part, .step = *processes, .source = launcher.index});
  }
  return std::optional<ShardPart>();
}

}  // namespace

Result<std::optional<ShardPart>> part_of_environment(const Environment& environment) {
  return find_part(environment, 0);
}

Result<ShardPart> parse_shard_part(const std::string& text, const Environment& environment) {
  const std::size_t slash = text.find('/');
  const std::string index = text.substr(0, slash);
  const std::optional<std::size_t> count = slash == std::string::npos
                                               ? std::optional<std::size_t>(0)
                                               : tensorcast::parse_whole<std::size_t>(text.substr(slash + 1));
  if (!count || (slash != std::string::npos && *count == 0)) {
    return wrong(fmt::format("\"{}\" is not a part of the shards", text), "write 0/8 to 7/8, auto or auto/8");
  }
  if (index == "auto" || index.empty()) {
    std::optional<ShardPart> part = TRY(find_part(environment, *count));
    if (part) return *std::move(part);
    return wrong("neither SLURM_ARRAY_TASK_ID, RANK nor JOB_COMPLETION_INDEX is set");
  }
  const std::optional<std::size_t> first = tensorcast::parse_whole<std::size_t>(index);
  if (!first || *count == 0 || *first >= *count) {
    return wrong(fmt::format("\"{}\" is not a part of the shards", text), "write 0/8 to 7/8, auto or auto/8");
  }
  return ShardPart{.first = *first, .step = *count};
}

}  // namespace tcast
