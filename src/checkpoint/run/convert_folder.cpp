// SPDX-License-Identifier: Apache-2.0
// The steps of a conversion, one by one or all together.
#include <fmt/format.h>

#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/plan/placement.hpp"
#include "checkpoint/plan/work_folder.hpp"
#include "checkpoint/run/attesting.hpp"
#include "checkpoint/run/finish.hpp"
#include "checkpoint/run/moves.hpp"
#include "checkpoint/run/requirements.hpp"
#include "checkpoint/run/run_shards.hpp"
#include "checkpoint/run/to_file.hpp"
#include "checkpoint/store/file_name.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "tensorcast/attestation.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using checkpoint::CheckpointPlan;
using checkpoint::DoneShard;
using checkpoint::PlannedShard;
using checkpoint::WorkFolder;

// A run that was killed at its end may have completed the output without saying so.
Error exists_already(const checkpoint::Folder& output) {
  const auto record = output.find(checkpoint::record_name);
  const bool is_complete = record && record->has_value();
  return Error{.code = ErrorCode::invalid_argument,
               .message = is_complete ? "the output exists already: a conversion into it was completed"
                                      : "the output exists already",
               .hint = is_complete ? "use it, name another output, or `overwrite` replaces what tensorcast wrote there"
                                   : "name another output, or `overwrite` replaces what tensorcast wrote there",
               .file = output.path(),
               .system_error = EEXIST};
}

Result<void> check_place(const std::string& output, bool creates_parents) {
  if (!checkpoint::is_folder(output) && checkpoint::file_bytes(output)) {
    return in_file(output, invalid("a checkpoint is written to a folder, and this is a file"));
  }
  if (!creates_parents && !checkpoint::has_folder_above(output)) {
    return Error{.code = ErrorCode::io,
                 .message = "the folder of the output does not exist",
                 .hint = "`parents` creates it",
                 .file = output,
                 .system_error = ENOENT};
  }
  return {};
}

Result<void> check_free(std::uint64_t needed, const std::string& output) {
  const std::uint64_t free = checkpoint::free_bytes(output);
  if (needed <= free) return {};
  return Error{.code = ErrorCode::io,
               .message = fmt::format("the output needs {} bytes, and the disk has {} left", needed, free),
               .hint = "free some space, or write to another disk",
               .file = output,
               .system_error = ENOSPC};
}

// Checks the space, and the files of an output folder that exists and has no state: before anything is written, and in
// a dry run.
Result<void> check_folder(const ConvertRequest& request, const CheckpointPlan& plan, const std::string& output) {
  TRY(check_place(output, request.parents));
  if (!checkpoint::is_folder(output)) {
    return request.dry_run ? Result<void>() : check_free(plan.disk_bytes(), output);
  }
  const std::unique_ptr<checkpoint::Folder> opened = TRY(checkpoint::Folder::open(output));
  const checkpoint::Folder& folder = *opened;
  TRY(WorkFolder::check_state(folder));
  const bool stateless = TRY(WorkFolder::has_no_state(folder));
  if (!stateless && !request.dry_run) return {};  // begin() does, behind the lock
  const auto moving = TRY(folder.find(checkpoint::moving_name));
  if (moving.has_value()) return {};
  // A crash may have left it beside a complete checkpoint.
  if (!request.dry_run) TRY(WorkFolder::remove_finished(folder));
  if (stateless && !TRY(WorkFolder::is_empty(folder)) && !request.overwrite) return exists_already(folder);
  TRY(checkpoint::check_old_files(plan, folder));
  return request.dry_run ? Result<void>() : check_free(plan.disk_bytes(), output);
}

Result<void> check_space(const CheckpointPlan& plan, const WorkFolder& folder) {
  std::uint64_t needed = plan.disk_bytes();
  for (const PlannedShard& shard : plan.shards) {
    const auto staged = TRY(folder.files().find(WorkFolder::staged(shard)));
    if (staged.has_value() && staged->bytes == shard.bytes) needed -= shard.bytes;
  }
  return check_free(needed, folder.output());
}

// A folder that is locked for this process and has the plan, and whether an earlier run wrote it.
struct Begun {
  WorkFolder folder;
  bool resumed = false;
};

// Whoever asks for a report goes on with the plan of somebody who did not.
bool is_same_plan(const CheckpointPlan& old, CheckpointPlan plan) {
  plan.settings.report_casts_only = old.settings.report_casts_only;
  return plan_text(old) == plan_text(plan);
}

// Writes the plan into a locked folder, unless the same one is there already. Returns whether it is.
Result<bool> write_plan(const CheckpointPlan& plan, WorkFolder& folder) {
  const std::string output = folder.output();
  Result<std::optional<CheckpointPlan>> old = folder.find_plan();
  if (!old && !plan.overwrite) return std::move(old).error();
  const bool has_plan = old && old->has_value();
  const bool same = has_plan && is_same_plan(**old, plan);
  const bool moving = TRY(folder.is_moving());
  if (same && moving) return true;
  if (has_plan && moving) {
    // Another conversion is complete but for its last step, which is done first.
    TRY(checkpoint::carry_out(folder));
    if (!plan.overwrite) return exists_already(folder.files());
    folder = TRY(WorkFolder::create(output));
  } else if (has_plan && !same && !plan.overwrite) {
    return in_file(output,
                   invalid("the folder has an unfinished conversion of another source or with other options",
                           "repeat that command to complete it; `overwrite` plans anew, and keeps shards that fit"));
  }
  if (!has_plan && !plan.overwrite && !TRY(WorkFolder::is_empty(folder.files()))) return exists_already(folder.files());
  TRY(checkpoint::check_old_files(plan, folder.files()));
  TRY(check_space(plan, folder));
  if (!same) TRY(folder.begin(plan));
  return same;
}

Result<Begun> begin(const ConvertRequest& request, const CheckpointPlan& plan) {
  const std::string output = WorkFolder::folder_of_output(request.output);
  TRY(check_folder(request, plan, output));
  WorkFolder folder = TRY(WorkFolder::create(output));
  const Result<bool> resumed = write_plan(plan, folder);
  if (!resumed) {
    folder.remove_unused();
    return resumed.error();
  }
  return Begun{.folder = std::move(folder), .resumed = *resumed};
}

struct Done {
  DoneShard shard;
  bool before = false;  // by an earlier run or another process
};
using DoneShards = std::map<std::size_t, Done>;  // by the shards' places in the plan

void add_done(ConvertOutcome& outcome, std::size_t shard, std::size_t first_tensor, Done done) {
  outcome.shards[shard].sha256 = std::move(done.shard.sha256);
  outcome.shards[shard].done_before = done.before;
  for (auto& [i, note] : done.shard.notes) note.move_to(outcome.tensors[first_tensor + i]);
  outcome.bytes_read += outcome.shards[shard].bytes_in;
  outcome.bytes_written += outcome.shards[shard].bytes_out;
}

// The plan's outcome for some of its shards, in its order, with what was found of those that are done. Made last, as it
// takes as much memory as the work before it.
ConvertOutcome outcome_with(const CheckpointPlan& plan, const std::vector<std::size_t>& chosen, DoneShards all) {
  const std::set<std::size_t> in_order(chosen.begin(), chosen.end());
  ConvertOutcome outcome = outcome_of(plan, std::vector<std::size_t>(in_order.begin(), in_order.end()));
  std::size_t place = 0, first_tensor = 0;
  for (const std::size_t index : in_order) {
    if (const auto done = all.find(index); done != all.end()) {
      add_done(outcome, place, first_tensor, std::move(done->second));
    }
    first_tensor += outcome.shards[place++].tensors;
  }
  return outcome;
}

// What the records of shards say.
Result<DoneShards> done_before(const CheckpointPlan& plan, const WorkFolder& folder) {
  DoneShards all;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    std::optional<DoneShard> done = TRY(folder.done(plan.shards[i]));
    if (done) all.emplace(i, Done{.shard = *std::move(done), .before = true});
  }
  return all;
}

// Converts those of `chosen` that are not done.
Result<DoneShards> run_shards(const checkpoint::ShardJob& job, const std::vector<std::size_t>& chosen) {
  DoneShards all;
  const std::size_t at_once = checkpoint::shards_at_once(job.execution, chosen.size());
  TRY(checkpoint::run_shards(job, chosen, at_once, [&](std::size_t index, DoneShard done, bool was_done_before) {
    all.insert_or_assign(index, Done{.shard = std::move(done), .before = was_done_before});
  }));
  return all;
}

// Finishes a plan all of whose shards are done. `folder` is locked for this process alone.
Result<void> finish_plan(const CheckpointPlan& plan, const DoneShards& all, WorkFolder& folder,
                         checkpoint::Attesting* attesting = nullptr) {
  std::vector<std::string> missing;
  std::vector<std::string> sums;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    const auto done = all.find(i);
    if (done == all.end()) {
      missing.push_back(plan.shards[i].name);
    } else {
      sums.push_back(done->second.shard.sha256);
    }
  }
  if (!missing.empty()) {
    return in_file(folder.output(), invalid(fmt::format("{} of {} shards are not converted yet: {}", missing.size(),
                                                        plan.shards.size(), checkpoint::first_names(missing)),
                                            "`tcast run-shard` converts them"));
  }
  if (attesting != nullptr) {
    for (const PlannedShard& shard : plan.shards) attesting->add_recipes(shard.metadata);
    TRY(attesting->hash_inputs(&folder));
  }
  return checkpoint::finish(plan, sums, folder, attesting);
}

// Plans, with what an unfinished conversion into the same folder has chosen within the same budget.
Result<CheckpointPlan> plan_for(const ConvertRequest& request) {
  if (request.budget == 0.0) return checkpoint::make_checkpoint_plan(request);
  Result<WorkFolder> folder = WorkFolder::open(request.output, std::nullopt);
  Result<CheckpointPlan> before = folder ? folder->load_plan() : Result<CheckpointPlan>(folder.error());
  if (!before) return checkpoint::make_checkpoint_plan(request);
  return checkpoint::make_checkpoint_plan(request, std::move(before->choices));
}

// Whether a run with the same options would end so, too: nothing is to be resumed.
bool is_of_data(const Error& error) {
  return error.code == ErrorCode::out_of_range || error.code == ErrorCode::unsupported ||
         error.code == ErrorCode::parse || error.code == ErrorCode::invalid_argument;
}

Result<ConvertOutcome> convert_to_folder(const ConvertRequest& request, checkpoint::Attesting* attesting = nullptr) {
  const CheckpointPlan plan = TRY(plan_for(request));
  if (request.dry_run) {
    ConvertOutcome outcome = outcome_of(plan, all_shards(plan));
    outcome.warnings = plan.warnings;
    const std::string output = WorkFolder::folder_of_output(request.output);
    TRY(check_folder(request, plan, output));
    outcome.requirements = checkpoint::measure_requirements(plan, request.output, request.execution);
    return outcome;
  }
  Begun begun = TRY(begin(request, plan));
  const std::vector<std::size_t> all = all_shards(plan);
  Result<DoneShards> run = run_shards({plan, begun.folder, request.execution, request.on_progress}, all);
  if (!run) {
    if (is_of_data(run.error())) begun.folder.forget_plan();
    return std::move(run).error();
  }
  DoneShards done = *std::move(run);
  TRY(finish_plan(plan, done, begun.folder, attesting));
  ConvertOutcome outcome = outcome_with(plan, all, std::move(done));
  outcome.warnings = plan.warnings;
  outcome.resumed = begun.resumed;
  outcome.verified = request.verify;
  return outcome;
}

Result<std::vector<std::size_t>> choose_shards(const ShardRequest& request, const CheckpointPlan& plan) {
  const auto fail = [&](std::string message) { return in_file(request.output, invalid(std::move(message))); };
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
  const std::string name = checkpoint::last_component(path);
  return checkpoint::is_folder(path) || !checkpoint::stem_of_index(name).empty() ||
         !checkpoint::stem_of_torch_index(name).empty();
}

Result<ConvertOutcome> convert(const ConvertRequest& request) {
  const bool folder = request.source == nullptr && is_checkpoint(request.input);
  return folder ? convert_folder(request) : convert_file(request);
}

Result<ConvertOutcome> convert_folder(const ConvertRequest& request) {
  return guarded(request.input, [&] {
    return checkpoint::is_file_output(request) ? checkpoint::convert_to_file(request) : convert_to_folder(request);
  });
}

Result<ConvertOutcome> convert_attested(const ConvertRequest& request, const std::string& statement) {
  return guarded(request.input, [&]() -> Result<ConvertOutcome> {
    checkpoint::Attesting attesting(request, statement);
    TRY(attesting.check());
    if (is_checkpoint(request.input) && !checkpoint::is_file_output(request)) {
      return convert_to_folder(request, &attesting);
    }
    TRY(attesting.hash_inputs());  // before it may be replaced
    ConvertOutcome outcome = TRY(convert(request));
    const checkpoint::DigestedFile output = TRY(checkpoint::digest_of(request.output));
    attesting.add_recipes(TRY(inspect({.input = request.output, .input_format = outcome.output_format})).metadata);
    TRY(attesting.write(attesting.text({output}, outcome.output_format)));
    return outcome;
  });
}

Result<ConvertOutcome> plan_checkpoint(const ConvertRequest& request) {
  return guarded(request.input, [&]() -> Result<ConvertOutcome> {
    if (checkpoint::is_file_output(request)) {
      return in_file(request.output, unsupported("a plan is for a folder, and this is the name of a file",
                                                 "a name that ends in / is a folder's"));
    }
    const CheckpointPlan plan = TRY(plan_for(request));
    const bool resumed = TRY(begin(request, plan)).resumed;
    ConvertOutcome outcome = outcome_of(plan, all_shards(plan));
    outcome.warnings = plan.warnings;
    outcome.resumed = resumed;
    return outcome;
  });
}

Result<ConvertOutcome> convert_shards(const ShardRequest& request) {
  return guarded(request.output, [&]() -> Result<ConvertOutcome> {
    WorkFolder folder = TRY(WorkFolder::open(request.output, io::LockKind::shared));
    const CheckpointPlan plan = TRY(folder.load_plan());
    const std::vector<std::size_t> chosen = TRY(choose_shards(request, plan));
    DoneShards done = TRY(run_shards({plan, folder, request.execution, request.on_progress}, chosen));
    ConvertOutcome outcome = outcome_with(plan, chosen, std::move(done));
    outcome.verified = plan.settings.verify;
    return outcome;
  });
}

Result<ConvertOutcome> planned_checkpoint(const std::string& output) {
  return guarded(output, [&]() -> Result<ConvertOutcome> {
    WorkFolder folder = TRY(WorkFolder::open(output, std::nullopt));
    const CheckpointPlan plan = TRY(folder.load_plan());
    return outcome_with(plan, all_shards(plan), TRY(done_before(plan, folder)));
  });
}

Result<ConvertOutcome> finish_checkpoint(const std::string& output) {
  return guarded(output, [&]() -> Result<ConvertOutcome> {
    const std::unique_ptr<checkpoint::Folder> files =
        TRY(checkpoint::Folder::open(WorkFolder::folder_of_output(output)));
    TRY(WorkFolder::remove_finished(*files));
    WorkFolder folder = TRY(WorkFolder::open(output, io::LockKind::exclusive));
    const CheckpointPlan plan = TRY(folder.load_plan());
    DoneShards done = TRY(done_before(plan, folder));
    TRY(finish_plan(plan, done, folder));
    ConvertOutcome outcome = outcome_with(plan, all_shards(plan), std::move(done));
    outcome.verified = plan.settings.verify;
    return outcome;
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
