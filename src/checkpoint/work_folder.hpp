// The state of a conversion inside its output folder, until it is complete:
//
//   OUT/plan.json                       what is to be done
//   OUT/.tcast/files/NAME               complete files that have no place yet
//   OUT/.tcast/done/NAME.done.json      one for each shard that is done
//   OUT/.tcast/plan.json                the plan again, and
//   OUT/.tcast/moving.json              all files, as soon as all are complete and get their places
//   OUT/.tcast-finished.tmp             the rest of .tcast, after all files have their places
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/plan.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

// A shard that was converted.
struct DoneShard {
  std::string sha256;
  std::uint64_t bytes = 0;
  std::string fingerprint;
  std::vector<TensorOutcome> tensors;  // in the order of the plan
};

class WorkFolder {
 public:
  // `output` is the folder or its plan.json.
  explicit WorkFolder(const std::string& output);

  [[nodiscard]] const std::string& output() const noexcept { return output_; }
  [[nodiscard]] std::string plan_path() const { return output_ + "/plan.json"; }
  [[nodiscard]] std::string moved_plan_path() const { return hidden() + "/plan.json"; }
  [[nodiscard]] std::string moving_path() const { return hidden() + "/moving.json"; }
  [[nodiscard]] std::string hidden() const { return output_ + "/.tcast"; }
  [[nodiscard]] std::string finished() const { return output_ + "/.tcast-finished.tmp"; }
  [[nodiscard]] std::string staged(const std::string& name) const { return hidden() + "/files/" + name; }
  [[nodiscard]] std::string done_path(const std::string& name) const {
    return hidden() + "/done/" + name + ".done.json";
  }
  [[nodiscard]] std::string place(const std::string& name) const { return output_ + "/" + name; }

  // Returns the text of the plan; nullopt if the folder has none. Errors: io.
  [[nodiscard]] Result<std::optional<std::string>> plan_text() const;
  // Errors: io; invalid_argument if there is no plan; parse.
  [[nodiscard]] Result<CheckpointPlan> load_plan() const;
  // Creates the folders and writes the plan. Errors: io.
  [[nodiscard]] Result<void> begin(const CheckpointPlan& plan) const;
  // Removes the files of an earlier plan that `plan` does not have. Errors: io.
  [[nodiscard]] Result<void> remove_strangers(const CheckpointPlan& plan) const;
  // Removes the state of a conversion whose files all have their places.
  // Errors: io.
  [[nodiscard]] Result<void> finish_hidden() const;
  // Removes what is left of a conversion that is complete. Errors: io.
  [[nodiscard]] Result<void> remove_finished() const;
  // Reports whether the folder is missing or has nothing but abandoned state.
  [[nodiscard]] bool is_empty() const;

  // Returns the record of a shard if it is complete; nullopt if it has to be converted.
  [[nodiscard]] std::optional<DoneShard> done(const PlannedShard& shard) const;
  // Errors: io.
  [[nodiscard]] Result<void> set_done(const PlannedShard& shard, const DoneShard& done) const;

 private:
  [[nodiscard]] Result<void> remove_remote_strangers(const std::set<std::string>& known) const;

  std::string output_;
};

}  // namespace tensorcast::checkpoint
