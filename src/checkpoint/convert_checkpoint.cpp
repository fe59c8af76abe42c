// The steps of a conversion, one by one or all together.
#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/file_name.hpp"
#include "checkpoint/finish.hpp"
#include "checkpoint/plan.hpp"
#include "checkpoint/remote_folder.hpp"
#include "checkpoint/requirements.hpp"
#include "checkpoint/run_shard.hpp"
#include "checkpoint/work_folder.hpp"
#include "dtype/guarded.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast::inline TENSORCAST_ABI {
namespace {

using checkpoint::CheckpointPlan;
using checkpoint::DoneShard;
using checkpoint::JobProgress;
using checkpoint::PlannedShard;
using checkpoint::WorkFolder;

Error exists_already(const WorkFolder& folder) {
  return Error{.code = ErrorCode::invalid_argument,
               .message = "the output exists already",
               .hint = "`overwrite` replaces it",
               .file = folder.output(),
               .system_error = EEXIST};
}

Result<void> check_place(const ConvertRequest& request, const WorkFolder& folder) {
  if (!checkpoint::is_folder(folder.output()) && checkpoint::file_bytes(folder.output()) != UINT64_MAX) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = "a checkpoint is written to a folder, and this is a file",
                 .file = folder.output()};
  }
  const std::string above = checkpoint::folder_of(folder.output());
  if (!request.parents && !checkpoint::is_remote(folder.output()) && !above.empty() && !checkpoint::is_folder(above)) {
    return Error{.code = ErrorCode::io,
                 .message = "the folder of the output does not exist",
                 .hint = "`parents` creates it",
                 .file = folder.output(),
                 .system_error = ENOENT};
  }
  return {};
}

Result<void> check_space(const CheckpointPlan& plan, const WorkFolder& folder) {
  std::uint64_t needed = plan.disk_bytes();
  for (const PlannedShard& shard : plan.shards) {
    if (checkpoint::file_bytes(folder.staged(shard.name)) == shard.bytes) needed -= shard.bytes;
  }
  const std::uint64_t free = checkpoint::free_bytes(folder.output());
  if (needed <= free) return {};
  return Error{.code = ErrorCode::io,
               .message = fmt::format("the output needs {} bytes, and the disk has {} left", needed, free),
               .hint = "free some space, or write to another disk",
               .file = folder.output(),
               .system_error = ENOSPC};
}

// A plan whose files are on the disk, and whether an earlier run wrote them.
struct Begun {
  CheckpointPlan plan;
  bool resumed = false;
};

// Writes the plan, unless the same one is there already.
Result<Begun> begin(const ConvertRequest& request, CheckpointPlan plan, const WorkFolder& folder) {
  if (Result<void> place = check_place(request, folder); !place) return std::move(place).error();
  // A crash may have left it beside a complete checkpoint.
  if (Result<void> removed = folder.remove_finished(); !removed) return std::move(removed).error();
  const Result<std::optional<std::string>> old = folder.plan_text();
  if (!old) return old.error();
  if (old->has_value() && **old == plan_text(plan)) {
    if (Result<void> space = check_space(plan, folder); !space) return std::move(space).error();
    return Begun{.plan = std::move(plan), .resumed = true};
  }
  if (old->has_value() && !request.overwrite) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = "the folder has an unfinished conversion of another source or with other options",
                 .hint = "repeat that command to complete it; `overwrite` plans anew, and keeps shards that fit",
                 .file = folder.output()};
  }
  if (!old->has_value() && !request.overwrite && !folder.is_empty()) return exists_already(folder);
  if (checkpoint::is_file(folder.moving_path())) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = "the folder has another conversion, which is complete but for its last step",
                 .hint = "`tcast finish` completes it",
                 .file = folder.output()};
  }
  if (Result<void> space = check_space(plan, folder); !space) return std::move(space).error();
  if (Result<void> written = folder.begin(plan); !written) return std::move(written).error();
  return Begun{.plan = std::move(plan), .resumed = false};
}

void add_done(ConvertOutcome& outcome, std::size_t shard, std::size_t first_tensor, DoneShard done) {
  outcome.shards[shard].sha256 = std::move(done.sha256);
  for (std::size_t i = 0; i < done.tensors.size(); ++i) {
    TensorOutcome& tensor = outcome.tensors[first_tensor + i];
    tensor.report = done.tensors[i].report;
    tensor.damage = std::move(done.tensors[i].damage);
    tensor.remedy = std::move(done.tensors[i].remedy);
  }
  outcome.bytes_read += outcome.shards[shard].bytes_in;
  outcome.bytes_written += outcome.shards[shard].bytes_out;
}

// The plan's outcome with what the records of its shards say.
ConvertOutcome outcome_so_far(const CheckpointPlan& plan, const WorkFolder& folder) {
  ConvertOutcome outcome = outcome_of(plan);
  std::size_t first = 0;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    std::optional<DoneShard> done = folder.done(plan.shards[i]);
    outcome.shards[i].done_before = done.has_value();
    if (done) add_done(outcome, i, first, *std::move(done));
    first += plan.shards[i].tensors.size();
  }
  return outcome;
}

// Converts those of `chosen` that are not done. `outcome` has the tensors of the whole plan.
Result<void> run_shards(const CheckpointPlan& plan, const std::vector<std::size_t>& chosen, const WorkFolder& folder,
                        const Execution& execution, const std::function<bool(const Progress&)>& on_progress,
                        ConvertOutcome& outcome) {
  std::vector<std::size_t> first_tensors;
  std::size_t tensors = 0;
  for (const PlannedShard& shard : plan.shards) {
    first_tensors.push_back(tensors);
    tensors += shard.tensors.size();
  }
  JobProgress progress{.on_progress = on_progress, .shards = plan.shards.size()};
  for (const std::size_t index : chosen) progress.bytes_total += work_bytes(plan, plan.shards[index]);
  for (const std::size_t index : chosen) {
    const PlannedShard& shard = plan.shards[index];
    progress.shard = index + 1;
    std::optional<DoneShard> done = folder.done(shard);
    outcome.shards[index].done_before = done.has_value();
    if (!done) {
      Result<std::optional<DoneShard>> ran = run_shard(plan, index, folder, execution, progress);
      if (!ran) {
        // Another process may have finished the whole conversion, and removed the folder of unfinished files.
        if (checkpoint::is_folder(folder.hidden())) return std::move(ran).error();
        if (checkpoint::file_bytes(folder.place(shard.name)) != shard.bytes) return std::move(ran).error();
        continue;
      }
      if (!ran->has_value()) {
        return Error{.code = ErrorCode::cancelled,
                     .message = "cancelled; the converted shards are kept",
                     .hint = "the same command goes on where it stopped",
                     .file = folder.output()};
      }
      done = *std::move(ran);
    }
    progress.bytes_done += work_bytes(plan, shard);
    add_done(outcome, index, first_tensors[index], *std::move(done));
  }
  return {};
}

std::string missing_shards(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > most ? text + ", ..." : text;
}

// Finishes a plan, and fills in what its shards' records say.
Result<void> finish_plan(const CheckpointPlan& plan, const WorkFolder& folder, ConvertOutcome& outcome) {
  std::vector<DoneShard> all;
  std::vector<std::string> missing;
  for (const PlannedShard& shard : plan.shards) {
    std::optional<DoneShard> done = folder.done(shard);
    if (!done && !checkpoint::is_folder(folder.hidden())) {
      // Another process has finished; finish() compares the hashes.
      done = DoneShard{.sha256 = outcome.shards[all.size()].sha256, .bytes = 0, .fingerprint = {}, .tensors = {}};
    }
    if (done) {
      all.push_back(*std::move(done));
    } else {
      missing.push_back(shard.name);
    }
  }
  if (!missing.empty()) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("{} of {} shards are not converted yet: {}", missing.size(), plan.shards.size(),
                                        missing_shards(missing)),
                 .hint = "`tcast run-shard` converts them",
                 .file = folder.output()};
  }
  return checkpoint::finish(plan, all, folder);
}

std::vector<std::size_t> all_shards(const CheckpointPlan& plan) {
  std::vector<std::size_t> all(plan.shards.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

Result<ConvertOutcome> convert_folder(const ConvertRequest& request) {
  Result<CheckpointPlan> plan = checkpoint::make_checkpoint_plan(request);
  if (!plan) return std::move(plan).error();
  ConvertOutcome outcome = outcome_of(*plan);
  if (request.dry_run) {
    outcome.requirements = checkpoint::measure_requirements(*plan, request.output, request.execution);
    return outcome;
  }
  const WorkFolder folder(request.output);
  Result<Begun> begun = begin(request, std::move(plan).value(), folder);
  if (!begun) return std::move(begun).error();
  outcome.resumed = begun->resumed;
  Result<void> ran =
      run_shards(begun->plan, all_shards(begun->plan), folder, request.execution, request.on_progress, outcome);
  if (!ran) return std::move(ran).error();
  if (Result<void> finished = finish_plan(begun->plan, folder, outcome); !finished) {
    return std::move(finished).error();
  }
  outcome.verified = request.verify;
  return outcome;
}

// Keeps the chosen shards and their tensors.
void keep_shards(ConvertOutcome& outcome, const std::vector<std::size_t>& chosen) {
  std::vector<ShardOutcome> shards;
  std::vector<TensorOutcome> tensors;
  std::size_t first = 0;
  for (std::size_t index = 0; index < outcome.shards.size(); ++index) {
    const std::size_t count = outcome.shards[index].tensors;
    if (std::ranges::find(chosen, index) != chosen.end()) {
      shards.push_back(std::move(outcome.shards[index]));
      for (std::size_t i = first; i < first + count; ++i) tensors.push_back(std::move(outcome.tensors[i]));
    }
    first += count;
  }
  outcome.shards = std::move(shards);
  outcome.tensors = std::move(tensors);
}

Result<std::vector<std::size_t>> choose_shards(const ShardRequest& request, const CheckpointPlan& plan) {
  const auto fail = [&](std::string message) {
    return Error{.code = ErrorCode::invalid_argument, .message = std::move(message), .file = request.output};
  };
  if (request.step == 0 || request.first >= request.step) {
    return fail(fmt::format("there is no part {} of {}; parts are counted from 0", request.first, request.step));
  }
  std::vector<std::size_t> chosen = request.shards.empty() ? all_shards(plan) : request.shards;
  for (const std::size_t index : chosen) {
    if (index >= plan.shards.size()) {
      return fail(fmt::format("there is no shard {}: the plan has {}, counted from 0", index, plan.shards.size()));
    }
  }
  std::vector<std::size_t> part;
  for (std::size_t i = request.first; i < chosen.size(); i += request.step) part.push_back(chosen[i]);
  return part;
}

}  // namespace

bool is_checkpoint(const std::string& path) {
  return checkpoint::is_folder(path) || !checkpoint::stem_of_index(checkpoint::last_component(path)).empty();
}

Result<ConvertOutcome> convert_checkpoint(const ConvertRequest& request) {
  if (!is_checkpoint(request.input))
    return TENSORCAST_ABI::convert(request);  // the function; `convert` alone is the layer's namespace

  return guarded([&] { return convert_folder(request); });
}

Result<ConvertOutcome> plan_checkpoint(const ConvertRequest& request) {
  return guarded([&]() -> Result<ConvertOutcome> {
    Result<CheckpointPlan> plan = checkpoint::make_checkpoint_plan(request);
    if (!plan) return std::move(plan).error();
    ConvertOutcome outcome = outcome_of(*plan);
    const WorkFolder folder(request.output);
    const Result<Begun> begun = begin(request, std::move(plan).value(), folder);
    if (!begun) return begun.error();
    outcome.resumed = begun->resumed;
    return outcome;
  });
}

Result<ConvertOutcome> convert_shards(const ShardRequest& request) {
  return guarded([&]() -> Result<ConvertOutcome> {
    const WorkFolder folder(request.output);
    const Result<CheckpointPlan> plan = folder.load_plan();
    if (!plan) return plan.error();
    const Result<std::vector<std::size_t>> chosen = choose_shards(request, *plan);
    if (!chosen) return chosen.error();
    ConvertOutcome outcome = outcome_of(*plan);
    Result<void> ran = run_shards(*plan, *chosen, folder, request.execution, request.on_progress, outcome);
    if (!ran) return std::move(ran).error();
    outcome.verified = plan->settings.verify;
    keep_shards(outcome, *chosen);
    return outcome;
  });
}

Result<ConvertOutcome> planned_checkpoint(const std::string& output) {
  return guarded([&]() -> Result<ConvertOutcome> {
    const WorkFolder folder(output);
    const Result<CheckpointPlan> plan = folder.load_plan();
    if (!plan) return plan.error();
    return outcome_so_far(*plan, folder);
  });
}

Result<ConvertOutcome> finish_checkpoint(const std::string& output) {
  return guarded([&]() -> Result<ConvertOutcome> {
    const WorkFolder folder(output);
    if (Result<void> removed = folder.remove_finished(); !removed) return std::move(removed).error();
    const Result<CheckpointPlan> plan = folder.load_plan();
    if (!plan) return plan.error();
    ConvertOutcome outcome = outcome_so_far(*plan, folder);
    if (Result<void> finished = finish_plan(*plan, folder, outcome); !finished) return std::move(finished).error();
    outcome.verified = plan->settings.verify;
    return outcome;
  });
}

}  // namespace tensorcast::inline TENSORCAST_ABI
