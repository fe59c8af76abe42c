// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/work_folder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/plan/shard_record.hpp"
#include "checkpoint/store/file_name.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/sha256.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr std::uint64_t max_plan_bytes = std::uint64_t{2} << 30;
constexpr std::uint64_t max_done_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t max_identity_bytes = 4096;
constexpr std::uint64_t max_record_bytes = std::uint64_t{256} << 20;
constexpr const char* plan_name = ".tcast/plan.json";
constexpr const char* identity_name = ".tcast/identity";
constexpr const char* lock_name = "lock";

Error busy(const std::string& output) {
  return Error{.code = ErrorCode::invalid_argument,
               .message = "another run of tensorcast works in this folder",
               .hint = "wait until it ends; its lock ends with it",
               .file = output,
               .system_error = EBUSY};
}

Error no_plan(const std::string& output, bool complete) {
  return in_file(output, invalid(complete ? "the folder has no plan: the conversion is complete"
                                          : "the folder has no plan of a conversion",
                                 "`tcast plan` makes one"));
}

Error disappeared(const std::string& path) {
  return in_file(path, io_failure("the state of the conversion was removed or replaced by somebody else meanwhile",
                                  "start the conversion again"));
}

// Reports whether a run of ours makes a file of this name, relative to its state.
bool is_state_file(const std::string& name) {
  return name == "plan.json" || name == "identity" || name == "moving.json" || name == lock_name ||
         name.starts_with("shards/") || name.starts_with("files/") || name.starts_with("stop-") ||
         is_hidden_output(name);
}

// Removes the files of a state, and the folders that are empty then. Anything else stays.
Result<void> remove_state(const Folder& folder, const std::string& state) {
  const std::vector<std::string> names = TRY(folder.names_below(state));
  for (const std::string& name : names) {
    if (!is_state_file(name.substr(state.size() + 1))) continue;
    TRY(folder.remove(name));
  }
  return folder.remove_empty_folders(state);
}

}  // namespace

Result<std::optional<io::WrittenFiles>> read_record(const Folder& folder) {
  const std::optional<Folder::Entry> found = TRY(folder.find(record_name));
  if (!found.has_value()) return std::optional<io::WrittenFiles>();
  if (found->kind != io::Found::Kind::file) {
    return in_file(folder.path_of(record_name),
                   invalid("this name is kept for the record of what tensorcast wrote, and is a folder or a link",
                           "remove it, or write to another folder"));
  }
  const std::string text = TRY(folder.read_text(record_name, max_record_bytes));
  const std::string path = folder.path_of(record_name);
  io::WrittenFiles written = TRY(io::parse_written_files(text, path));
  for (const io::WrittenFile& file : written.files) TRY(check_file_name(file.name, path));
  return std::optional(std::move(written));
}

std::string WorkFolder::folder_of_output(const std::string& output) {
  std::string folder = output;
  const auto drop_slashes = [&] {
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  };
  const auto drop = [&](std::string_view last) {
    drop_slashes();
    if (last_component(folder) != last) return;
    folder = folder_of(folder);
    if (folder.empty()) folder = ".";
  };
  if (!is_folder(folder)) drop("plan.json");
  drop(state_name);
  drop_slashes();
  return folder;
}

Result<WorkFolder> WorkFolder::create(const std::string& output) {
  const std::string path = folder_of_output(output);
  WorkFolder work(TRY(Folder::create(path)));
  TRY(check_state(*work.folder_));
  TRY(work.folder_->create_folder(state_name));
  TRY(work.lock(io::LockKind::exclusive));
  TRY(work.folder_->sync_folder(""));
  return work;
}

Result<WorkFolder> WorkFolder::open(const std::string& output, std::optional<io::LockKind> kind) {
  const std::string path = folder_of_output(output);
  WorkFolder work(TRY(Folder::open(path)));
  const std::optional<Folder::Entry> identity = TRY(work.folder_->find(identity_name));
  if (!identity.has_value()) {
    return no_plan(path, TRY(work.folder_->find(sums_name)).has_value());
  }
  if (kind) TRY(work.lock(*kind));
  return work;
}

Result<void> WorkFolder::lock(io::LockKind kind) {
  state_ = TRY(folder_->lock(state_name, lock_name, kind, busy(output())));
  return {};
}

Result<void> WorkFolder::check_state(const Folder& folder) {
  for (const std::string state : {state_name, finished_name}) {
    const std::vector<std::string> names = TRY(folder.names_below(state));
    for (const std::string& name : names) {
      if (is_state_file(name.substr(state.size() + 1))) continue;
      return in_file(folder.path_of(name),
                     invalid("this file is not part of the state of a conversion, which is kept in this folder",
                             "remove it, or write to another folder"));
    }
  }
  return {};
}

std::string WorkFolder::staged(const std::string& name) const {
  constexpr std::size_t digits = 16;
  return fmt::format(".tcast/files/{}/{}", identity_.substr(0, digits), name);
}

Result<std::optional<CheckpointPlan>> WorkFolder::find_plan() {
  if (!TRY(folder_->find(identity_name)).has_value()) return std::optional<CheckpointPlan>();
  std::string identity = TRY(folder_->read_text(identity_name, max_identity_bytes));
  if (identity.ends_with('\n')) identity.pop_back();
  const std::string text = TRY(folder_->read_text(plan_name, max_plan_bytes));
  CheckpointPlan plan = TRY(parse_plan(text, folder_->path_of(plan_name)));
  if (io::sha256_of(text) != identity) {
    return in_file(folder_->path_of(plan_name),
                   parse_error("the plan is damaged: it is not the one that was written", "`overwrite` plans anew"));
  }
  identity_ = std::move(identity);
  return std::optional(std::move(plan));
}

Result<CheckpointPlan> WorkFolder::load_plan() {
  std::optional<CheckpointPlan> plan = TRY(find_plan());
  if (!plan.has_value()) return no_plan(output(), false);
  return *std::move(plan);
}

Result<void> WorkFolder::begin(const CheckpointPlan& plan) {
  TRY(folder_->remove(identity_name));
  for (const char* name : {".tcast/shards", ".tcast/files"}) TRY(folder_->create_folder(name));
  TRY(remove_strangers(plan));
  const std::string text = plan_text(plan);
  TRY(folder_->write_text(plan_name, text));
  identity_ = io::sha256_of(text);
  TRY(folder_->write_text(identity_name, identity_ + "\n"));
  return folder_->sync_folder("");
}

Result<void> WorkFolder::remove_strangers(const CheckpointPlan& plan) const {
  std::set<std::string> known = {".tcast/lock", plan_name};
  for (const PlannedShard& shard : plan.shards) {
    known.insert(staged(shard));
    known.insert(record(shard));
  }
  const std::vector<std::string> names = TRY(folder_->names_below(state_name));
  for (const std::string& name : names) {
    if (known.contains(name)) continue;
    TRY(folder_->remove(name));
  }
  return {};
}

Result<void> WorkFolder::check_identity() const {
  if (state_ && !TRY(state_->is_still())) return disappeared(folder_->path_of(state_name));
  if (!TRY(folder_->find(identity_name)).has_value()) return disappeared(folder_->path_of(state_name));
  const std::string identity = TRY(folder_->read_text(identity_name, max_identity_bytes));
  if (identity_.empty() || identity != identity_ + "\n") return disappeared(folder_->path_of(state_name));
  return {};
}

Result<bool> WorkFolder::is_moving() const { return TRY(folder_->find(moving_name)).has_value(); }

Result<bool> WorkFolder::is_empty(const Folder& folder) {
  const std::vector<std::string> names = TRY(folder.names_in(""));
  return std::ranges::all_of(names, [](const std::string& name) {
    return name == std::string(state_name) + "/" || (is_hidden_output(name) && name != record_name);
  });
}

Result<bool> WorkFolder::has_no_state(const Folder& folder) {
  for (const char* name : {state_name, identity_name}) {  // in a store, only files have names
    if (TRY(folder.find(name)).has_value()) return false;
  }
  return true;
}

void WorkFolder::remove_unused() const {
  if (!state_) return;
  const Result<bool> still = state_->is_still();
  if (!still || !*still) return;
  const Result<std::vector<std::string>> names = folder_->names_below(state_name);
  const std::string lock = std::string(state_name) + "/" + lock_name;
  if (!names || *names != std::vector{lock} || !folder_->remove(lock)) return;
  const Result<void> ignored = folder_->remove_empty_folders(state_name);
  static_cast<void>(ignored);
}

void WorkFolder::forget_plan() {
  const Result<void> is_ours = check_identity();
  if (!is_ours || !folder_->remove(identity_name) || !folder_->remove(plan_name)) return;
  identity_.clear();
  remove_unused();
}

Result<void> WorkFolder::finish_state() {
  TRY(remove_finished(*folder_));
  // At once, so that a crash leaves no part of the state, which would look like a conversion to go on with.
  const bool moved = TRY(folder_->move_folder(state_name, finished_name));
  if (!moved) {
    TRY(folder_->remove(identity_name));
    return remove_state(*folder_, state_name);
  }
  TRY(folder_->sync_folder(""));
  return remove_finished(*folder_);
}

Result<void> WorkFolder::remove_finished(const Folder& folder) {
  return TRY(folder.find(finished_name)).has_value() ? remove_state(folder, finished_name) : Result<void>();
}

Result<std::optional<DoneShard>> WorkFolder::done(const PlannedShard& shard) const {
  if (!TRY(folder_->find(this->record(shard))).has_value()) return std::optional<DoneShard>();
  std::optional<DoneShard> done = parse_shard_record(TRY(folder_->read_text(this->record(shard), max_done_bytes)));
  const bool fits = done && done->fingerprint == shard.fingerprint && done->bytes == shard.bytes &&
                    done->tensors == shard.tensors &&
                    (done->notes.empty() || done->notes.rbegin()->first < shard.tensors);
  if (!fits) return std::optional<DoneShard>();  // it is converted again
  const std::optional<Folder::Entry> staged = TRY(folder_->find(this->staged(shard)));
  if (staged.has_value()) {
    const bool whole = staged->kind == io::Found::Kind::file && staged->bytes == shard.bytes;
    return whole ? std::move(done) : std::optional<DoneShard>();
  }
  // While files get their places, a shard may have its place already; the mover compares its hash.
  return TRY(is_moving()) ? std::move(done) : std::optional<DoneShard>();
}

Result<void> WorkFolder::set_done(const PlannedShard& shard, const DoneShard& done) const {
  return folder_->write_text(record(shard), shard_record_text(shard.name, done));
}

}  // namespace tensorcast::checkpoint
