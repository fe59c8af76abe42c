// SPDX-License-Identifier: Apache-2.0
// The state of a conversion inside its output folder, until it is complete (docs/outputs.md):
//
//   OUT/.tcast/lock                 locked by every run that works here
//   OUT/.tcast/plan.json            what is to be done
//   OUT/.tcast/identity             the SHA-256 of plan.json; without it the state is of no use
//   OUT/.tcast/shards/F             a complete shard without a place yet; F is its fingerprint
//   OUT/.tcast/shards/F.json        its record
//   OUT/.tcast/files/ID/NAME        complete other files; ID is the identity
//   OUT/.tcast/stop-ID              stops the tasks of a driver on Ray that ended early (python/tensorcast/ray.py)
//   OUT/.tcast/moving.json          all moves and removals, as soon as all files are complete
//   OUT/.tcast-finished.tmp         the rest of .tcast, after all files have their places
//   OUT/.tcast-files.json           what a complete conversion wrote
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/store/folder.hpp"
#include "convert/run/tensor_note.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

inline constexpr const char* state_name = ".tcast";
inline constexpr const char* finished_name = ".tcast-finished.tmp";
inline constexpr const char* moving_name = ".tcast/moving.json";

// A shard that was converted.
struct DoneShard {
  std::string sha256;
  std::uint64_t bytes = 0;
  std::string fingerprint;
  std::size_t tensors = 0;
  file_conversion::TensorNotes notes;
};

// Returns what the last complete conversion into a folder left as its record; nullopt if there is none. Its names are
// checked. Errors: io; parse: it is damaged; invalid_argument: it is no file.
[[nodiscard]] Result<std::optional<io::WrittenFiles>> read_record(const Folder& folder);

class WorkFolder {
 public:
  // Returns the folder of `output`, which may also be its .tcast or plan.json.
  [[nodiscard]] static std::string folder_of_output(const std::string& output);
  // Opens, or creates, the folder and its state, and locks it. Errors: io; invalid_argument: another run has it.
  [[nodiscard]] static Result<WorkFolder> create(const std::string& output);
  // Opens a folder that has a plan; without a kind it is not locked. Errors: io; invalid_argument: no plan, or another
  // run has it.
  [[nodiscard]] static Result<WorkFolder> open(const std::string& output, std::optional<io::LockKind> kind);

  [[nodiscard]] const Folder& files() const noexcept { return *folder_; }
  [[nodiscard]] const std::string& output() const noexcept { return folder_->path(); }
  [[nodiscard]] static std::string staged(const PlannedShard& shard) { return ".tcast/shards/" + shard.fingerprint; }
  [[nodiscard]] static std::string record(const PlannedShard& shard) { return staged(shard) + ".json"; }
  [[nodiscard]] std::string staged(const std::string& name) const;  // a file that is not a shard
  [[nodiscard]] const std::string& identity() const noexcept { return identity_; }

  // Returns the plan that the state has; nullopt if it has none. Sets the identity. Errors: io; parse.
  [[nodiscard]] Result<std::optional<CheckpointPlan>> find_plan();
  // Errors: as find_plan(); invalid_argument if there is no plan.
  [[nodiscard]] Result<CheckpointPlan> load_plan();
  // Replaces the plan, and removes what the former one had and `plan` does not. Errors: io.
  [[nodiscard]] Result<void> begin(const CheckpointPlan& plan);
  // Checks that the state is still there and that of this plan. Errors: io.
  [[nodiscard]] Result<void> check_identity() const;
  // Reports whether files are getting their places. Errors: io.
  [[nodiscard]] Result<bool> is_moving() const;
  // Report whether a folder has nothing but state, and whether it has none. Errors: io.
  [[nodiscard]] static Result<bool> is_empty(const Folder& folder);
  [[nodiscard]] static Result<bool> has_no_state(const Folder& folder);
  // Checks that the names of state are not those of somebody else's files. Errors: invalid_argument, naming one; io.
  [[nodiscard]] static Result<void> check_state(const Folder& folder);
  // Removes the state if there is nothing in it but the lock, which is ours: another run may have completed the output
  // just before. Best effort, as it is called after an error.
  void remove_unused() const;
  // Forgets the plan, so that any other can begin, which keeps the shards that fit it; best effort, as it is called
  // after an error.
  void forget_plan();
  // Removes the state. Call when all files have their places. Errors: io.
  [[nodiscard]] Result<void> finish_state();
  // Removes what a crash in finish_state() left in a folder. Errors: io.
  [[nodiscard]] static Result<void> remove_finished(const Folder& folder);

  // Returns the record of a shard if it is complete; nullopt if it has to be converted. Errors: io.
  [[nodiscard]] Result<std::optional<DoneShard>> done(const PlannedShard& shard) const;
  // Errors: io.
  [[nodiscard]] Result<void> set_done(const PlannedShard& shard, const DoneShard& done) const;

 private:
  explicit WorkFolder(std::unique_ptr<Folder> folder) : folder_(std::move(folder)) {}
  [[nodiscard]] Result<void> lock(io::LockKind kind);
  [[nodiscard]] Result<void> remove_strangers(const CheckpointPlan& plan) const;

  std::unique_ptr<Folder> folder_;
  std::optional<LockedFolder> state_;  // none for a URL
  std::string identity_;
};

}  // namespace tensorcast::checkpoint
