// SPDX-License-Identifier: Apache-2.0
// The plan of a conversion: which tensors of which files become which shard, with which types and options.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/plan/shard_items.hpp"
#include "checkpoint/source/source.hpp"
#include "convert/plan/file_plan.hpp"
#include "convert/select/renamed_modules.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::checkpoint {

struct PlannedShard {
  std::string name;
  formats::Metadata metadata;
  std::vector<ShardItem> items;
  std::uint64_t bytes = 0;  // of the whole file
  std::string fingerprint;  // SHA-256 of all that decides its bytes
  // What follows from these: the places of its tensors in the order of its data, as for_each_tensor() counts them, and
  // sums.
  std::vector<std::uint32_t> order = {};
  std::size_t tensors = 0;
  std::uint64_t bytes_in = 0;      // that a conversion copies or converts
  std::uint64_t source_bytes = 0;  // of tensors of the input
  std::uint64_t tensor_bytes = 0;
};

struct PlannedModel {
  std::vector<std::size_t> shards;
  std::string index;         // name of the index to write; "": none
  std::string source_index;  // name of the index that it is made of; "": none
  std::string source_index_sha256;
  bool new_map = false;  // the shards have other names or tensors than the source's
};

struct PlannedConfig {
  std::string name;
  DType dtype = DType::undefined;            // undefined: it stays
  bool unquantized = false;                  // nothing is quantized any more
  std::vector<std::string> decoded = {};     // modules that are not, while others are
  std::string section = {};                  // the new quantization_config, as JSON
  file_conversion::NewEntries renamed = {};  // modules and patterns that descriptions name
};

struct CheckpointPlan {
  std::string source;           // folder, a real path
  ConversionSettings settings;  // of every shard
  bool overwrite = false;
  std::vector<SourceFile> inputs;
  LayerTable table;  // of layers that are decoded, or get another spelling or scheme
  std::vector<PlannedShard> shards;
  std::vector<PlannedModel> models;
  std::vector<PlannedConfig> configs;             // files that are rewritten
  std::vector<quantized::ConfigText> texts = {};  // files that the source does not have
  std::vector<ListedFile> copies;
  std::vector<std::string> empty_folders;
  std::vector<DigestedFile> descriptions = {};            // what layers were planned by: they say what codes mean
  std::vector<std::string> accepted = {};                 // words that the request takes as harmless
  std::vector<file_conversion::MadeChoice> choices = {};  // of a budget, one for each model
  std::vector<LeftOut> left_out;      // for the outcome; not in the text, as it changes without an effect
  std::vector<std::string> warnings;  // of the source; not in plan.json

  // The tensors of a shard, in the order of its data. Precondition: the plan was made or parsed.
  [[nodiscard]] std::vector<ShardTensor> tensors_of(const PlannedShard& shard) const;
  [[nodiscard]] std::uint64_t disk_bytes() const noexcept;
  // The folders that the output needs, such as "" and "unet/".
  [[nodiscard]] std::vector<std::string> folders() const;
};

// Plans without writing. `known`: choices of an earlier run for the same output, which are not made again.
// Errors: those of convert_folder().
[[nodiscard]] Result<CheckpointPlan> make_checkpoint_plan(const ConvertRequest& request,
                                                          std::vector<file_conversion::MadeChoice> known = {});

// The plan as text and back. Texts are equal if and only if the plans are. Errors: parse; `path` is for messages. A
// plan that parses has valid names, ranges inside its files, and fingerprints that fit.
[[nodiscard]] std::string plan_text(const CheckpointPlan& plan);
[[nodiscard]] Result<CheckpointPlan> parse_plan(const std::string& text, const std::string& path);

// All that the plan says of a source file.
[[nodiscard]] std::string input_text(const SourceFile& input);

// Lays out the data of a shard: sets its order and its sums, and returns its tensors as they are written. Errors: as
// for_each_tensor(); unsupported (a file cannot hold them together).
[[nodiscard]] Result<std::vector<formats::TensorInfo>> lay_out(const LayerTable& table, PlannedShard& shard);

// Fills the fingerprint of a shard.
void set_fingerprint(const CheckpointPlan& plan, PlannedShard& shard);

// Returns the indices of all shards.
[[nodiscard]] std::vector<std::size_t> all_shards(const CheckpointPlan& plan);
// Returns some of the shards of a plan, and their tensors.
[[nodiscard]] ConvertOutcome outcome_of(const CheckpointPlan& plan, std::span<const std::size_t> shards);

}  // namespace tensorcast::checkpoint
