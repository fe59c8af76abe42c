// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/finish.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/plan/config_file.hpp"
#include "checkpoint/plan/placement.hpp"
#include "checkpoint/run/moves.hpp"
#include "checkpoint/store/file_name.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/sha256.hpp"

namespace tensorcast::checkpoint {
namespace {

// Reads a file of the source, and its permissions.
Result<std::string> read_source_text(const CheckpointPlan& plan, const std::string& name, std::uint64_t max_bytes,
                                     unsigned& mode) {
  const StoredFile source = TRY(open_source(plan.source, name));
  mode = source.mode();
  return read_text(source, max_bytes);
}

Result<std::string> config_text(const CheckpointPlan& plan, const PlannedConfig& config, unsigned& mode) {
  const std::string text = TRY(read_source_text(plan, config.name, max_config_bytes, mode));
  return in_file(plan.source + "/" + config.name, rewritten_config(text, config));
}

Result<std::string> index_text(const CheckpointPlan& plan, const PlannedModel& model, unsigned& mode) {
  std::string old;
  if (!model.source_index.empty()) {
    std::string text = TRY(read_source_text(plan, model.source_index, max_index_bytes, mode));
    if (io::sha256_of(text) != model.source_index_sha256) {
      return changed_since_planned(plan.source + "/" + model.source_index, "index");
    }
    old = std::move(text);
  }
  std::uint64_t total_size = 0;
  std::map<std::string, std::string> map;
  for (const std::size_t index : model.shards) {
    const PlannedShard& shard = plan.shards[index];
    total_size += shard.tensor_bytes;
    if (!model.new_map) continue;
    TRY(for_each_tensor(plan.table, shard.items, [&](const ShardTensor& tensor) {
      map.emplace(tensor.planned.target.name, last_component(shard.name));
    }));
  }
  return rewritten_index(old, total_size, map);
}

class Finishing {
 public:
  Finishing(const CheckpointPlan& plan, std::span<const std::string> shard_sums, WorkFolder& folder,
            const Attesting* attesting)
      : plan_(plan), shard_sums_(shard_sums), folder_(folder), attesting_(attesting) {}

  Result<void> run() {
    if (!TRY(folder_.is_moving())) TRY(stage_all());
    return carry_out(folder_);
  }

 private:
  // Layers were decoded by what these files said.
  [[nodiscard]] Result<void> check_descriptions() const {
    for (const DigestedFile& file : plan_.descriptions) {
      unsigned mode = 0;
      const std::string text = TRY(read_source_text(plan_, file.name, max_config_bytes, mode));
      if (io::sha256_of(text) != file.sha256) return changed_since_planned(plan_.source + "/" + file.name);
    }
    return {};
  }

  Result<void> stage_all() {
    TRY(folder_.check_identity());
    TRY(check_descriptions());
    for (std::size_t i = 0; i < plan_.shards.size(); ++i) {
      moves_.moves.push_back({.from = WorkFolder::staged(plan_.shards[i]),
                              .name = plan_.shards[i].name,
                              .bytes = plan_.shards[i].bytes,
                              .sha256 = shard_sums_[i]});
    }
    for (const ListedFile& file : plan_.copies) TRY(copy(file.name));
    for (const MadeText& file : made_texts(plan_)) {
      unsigned mode = 0;
      const std::string text = TRY(file.make(mode));
      TRY(stage(file.name, text, mode));
    }
    std::map<std::string, std::string> sorted;
    for (const Move& move : moves_.moves) sorted.emplace(move.name, move.sha256);
    std::string sums;
    for (const auto& [name, sha256] : sorted) sums += sums_line(sha256, name);
    if (attesting_ != nullptr) TRY(attest(sorted));
    TRY(stage(sums_name, sums));
    // The order in which files get their places: SHA256SUMS after the shards; what makes the folder loadable last.
    std::rotate(moves_.moves.begin() + static_cast<std::ptrdiff_t>(plan_.shards.size()), moves_.moves.end() - 1,
                moves_.moves.end());
    // Again, as somebody may have written to the folder since the plan was made.
    moves_.old = TRY(check_old_files(plan_, folder_.files()));
    for (const std::string& synced : synced_) TRY(folder_.files().sync_folder(synced));
    for (const std::string& empty : plan_.empty_folders) TRY(folder_.files().create_folder(empty));
    return begin_moves(moves_, folder_);
  }

  // Writes the statement about all files of the output.
  Result<void> attest(const std::map<std::string, std::string>& sums) {
    std::vector<DigestedFile> outputs;
    for (const auto& [name, sha256] : sums) outputs.push_back({.name = name, .sha256 = sha256});
    const std::string text = attesting_->text(std::move(outputs));
    if (!attesting_->is_inside()) return attesting_->write(text);
    if (TRY(folder_.files().find(attestation_name)).has_value()) {
      const std::optional<io::WrittenFiles> old = TRY(read_record(folder_.files()));
      if (!old || std::ranges::find(old->files, attestation_name, &io::WrittenFile::name) == old->files.end()) {
        return in_file(folder_.files().path_of(attestation_name), invalid("the file exists already and is not ours"));
      }
    }
    return stage(attestation_name, text);
  }

  void add(const std::string& name, std::uint64_t bytes, std::string sha256) {
    moves_.moves.push_back({.from = folder_.staged(name), .name = name, .bytes = bytes, .sha256 = std::move(sha256)});
  }

  // Creates a file that waits for its place.
  Result<std::unique_ptr<NewFile>> create(const std::string& name, std::uint64_t bytes) {
    const std::string staged = folder_.staged(name);
    std::string inside = folder_of(staged);
    inside.pop_back();
    if (synced_.insert(inside).second) TRY(folder_.files().create_folder(inside));
    return folder_.files().create_file(staged, bytes);
  }

  Result<void> stage(const std::string& name, const std::string& text, unsigned mode = 0) {
    std::unique_ptr<NewFile> sink = TRY(create(name, text.size()));
    sink->set_mode(mode);
    TRY(sink->append(std::as_bytes(std::span(text))));
    add(name, text.size(), io::sha256_of(text));
    return sink->commit();
  }

  Result<void> copy(const std::string& name) {
    const StoredFile source = TRY(open_source(plan_.source, name));
    std::unique_ptr<NewFile> sink = TRY(create(name, source.size()));
    sink->set_mode(source.mode());
    io::Sha256 hash;
    TRY(read_blocks(source, [&](std::span<const std::byte> bytes) {
      hash.update(bytes);
      return sink->append(bytes);
    }));
    add(name, source.size(), hash.digest());
    return sink->commit();
  }

  const CheckpointPlan& plan_;
  std::span<const std::string> shard_sums_;
  WorkFolder& folder_;
  const Attesting* attesting_;
  Moves moves_;                   // shards first, indexes last
  std::set<std::string> synced_;  // folders of the state
};

}  // namespace

std::string sums_line(const std::string& sha256, const std::string& name) {
  if (name.find_first_of("\\\n\r") == std::string::npos) return fmt::format("{}  {}\n", sha256, name);
  std::string escaped;
  for (const char c : name) {
    escaped += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\r' ? "\\r" : std::string(1, c);
  }
  return fmt::format("\\{}  {}\n", sha256, escaped);
}

Result<void> finish(const CheckpointPlan& plan, std::span<const std::string> shard_sums, WorkFolder& folder,
                    const Attesting* attesting) {
  return Finishing(plan, shard_sums, folder, attesting).run();
}

std::vector<MadeText> made_texts(const CheckpointPlan& plan) {
  std::vector<MadeText> texts;
  for (const PlannedConfig& config : plan.configs) {
    texts.push_back({.name = config.name, .make = [&](unsigned& mode) { return config_text(plan, config, mode); }});
  }
  for (const quantized::ConfigText& file : plan.texts) {
    texts.push_back({.name = file.name, .make = [&](unsigned& /*mode*/) { return Result<std::string>(file.text); }});
  }
  for (const PlannedModel& model : plan.models) {
    if (model.index.empty()) continue;
    texts.push_back({.name = model.index, .make = [&](unsigned& mode) { return index_text(plan, model, mode); }});
  }
  return texts;
}

}  // namespace tensorcast::checkpoint
