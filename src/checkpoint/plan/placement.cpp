// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "checkpoint/plan/work_folder.hpp"
#include "checkpoint/store/file_name.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::checkpoint {
namespace {

using Kind = io::Found::Kind;

// Reports whether a loader may take a file of this name for weights, or for their index.
bool is_weights(const std::string& name) {
  // Beside weights, and never loaded as such.
  constexpr auto others = std::to_array<std::string_view>(
      {"training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.pt", "scheduler.bin", "scaler.pt"});
  constexpr auto extensions = std::to_array<std::string_view>(
      {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack", ".npz", ".distcp"});
  const std::string last = last_component(name);
  if (std::ranges::find(others, last) != others.end()) return false;
  const bool ends = std::ranges::any_of(extensions, [&](std::string_view end) { return last.ends_with(end); });
  return ends || (last.ends_with(".json") && last.find(".index.") != std::string::npos);
}

class OldFiles {
 public:
  OldFiles(const CheckpointPlan& plan, const Folder& folder) : plan_(plan), folder_(folder) {}

  Result<std::vector<io::WrittenFile>> run() {
    std::optional<io::WrittenFiles> record = TRY(read_record(folder_));
    if (record.has_value()) {
      for (io::WrittenFile& file : record->files) written_.insert_or_assign(file.name, file);
    }
    std::vector<std::string> names = output_names(plan_);
    for (const std::string& name : names) TRY(check_free(name));
    for (const std::string& folder : plan_.empty_folders) TRY(check_folders_of(folder + "/"));
    new_.insert(names.begin(), names.end());
    for (const std::string& inside : plan_.folders()) TRY(check_weights(inside));
    if (!in_the_way_.empty())
      return refuse("is in the way: tensorcast did not write it, or it was changed since", in_the_way_);
    if (!weights_.empty())
      return refuse("would be mixed with the output: tensorcast did not write it, or it was changed since", weights_);
    std::vector<io::WrittenFile> old;
    for (const auto& [name, file] : written_) {
      if (TRY(is_ours(name))) old.push_back(file);
    }
    return old;
  }

 private:
  // Reports whether the folder has the file as a former run wrote it.
  Result<bool> is_ours(const std::string& name) {
    const auto known = ours_.find(name);
    if (known != ours_.end()) return known->second;
    const auto file = written_.find(name);
    if (file == written_.end()) return false;
    const Result<bool> same = folder_.is_as_written(file->second);
    if (same) ours_.emplace(name, *same);
    return same;
  }

  // Checks that what has the name of a folder that `name` is in is a folder.
  Result<void> check_folders_of(const std::string& name) {
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string above = name.substr(0, slash);
      if (std::ranges::find(in_the_way_, above) != in_the_way_.end()) return {};
      if (!checked_folders_.insert(above).second) continue;
      const std::optional<Folder::Entry> found = TRY(folder_.find(above));
      if (!found.has_value() || found->kind == Kind::folder) continue;
      in_the_way_.push_back(above);
      return {};
    }
    return {};
  }

  // Checks that the output may have a file of this name.
  Result<void> check_free(const std::string& name) {
    TRY(check_folders_of(name));
    if (!in_the_way_.empty() && name.starts_with(in_the_way_.back() + "/")) return {};
    const std::optional<Folder::Entry> found = TRY(folder_.find(name));
    if (!found.has_value()) return {};
    if (!TRY(is_ours(name))) in_the_way_.push_back(name);
    return {};
  }

  Result<void> check_weights(const std::string& inside) {
    if (!inside.empty()) {
      const std::string above = inside.substr(0, inside.size() - 1);
      if (std::ranges::find(in_the_way_, above) != in_the_way_.end()) return {};
    }
    const std::vector<std::string> names = TRY(folder_.names_in(inside));
    for (const std::string& name : names) {
      if (!is_weights(name) || new_.contains(name)) continue;
      if (!TRY(is_ours(name))) weights_.push_back(name);
    }
    return {};
  }

  [[nodiscard]] Error refuse(std::string_view why, const std::vector<std::string>& names) const {
    return in_file(folder_.path(), invalid(fmt::format("{} {}", first_names(names, "\""), why),
                                           "write to another folder, or move these files away"));
  }

  const CheckpointPlan& plan_;
  const Folder& folder_;
  std::map<std::string, io::WrittenFile> written_;
  std::map<std::string, bool> ours_;
  std::set<std::string> new_;
  std::set<std::string> checked_folders_;
  std::vector<std::string> in_the_way_;
  std::vector<std::string> weights_;
};

}  // namespace

std::vector<std::string> output_names(const CheckpointPlan& plan) {
  std::vector<std::string> names;
  for (const PlannedShard& shard : plan.shards) names.push_back(shard.name);
  names.emplace_back(sums_name);
  for (const ListedFile& file : plan.copies) names.push_back(file.name);
  for (const PlannedConfig& config : plan.configs) names.push_back(config.name);
  for (const quantized::ConfigText& file : plan.texts) names.push_back(file.name);
  for (const PlannedModel& model : plan.models) {
    if (!model.index.empty()) names.push_back(model.index);
  }
  return names;
}

Result<std::vector<io::WrittenFile>> check_old_files(const CheckpointPlan& plan, const Folder& folder) {
  return OldFiles(plan, folder).run();
}

}  // namespace tensorcast::checkpoint
