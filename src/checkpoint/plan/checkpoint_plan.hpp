// SPDX-License-Identifier: Apache-2.0
// The plan of a conversion: which tensors of which files become which shard, with which types and options.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/plan/decoded_layer.hpp"
#include "checkpoint/plan/written_part.hpp"
#include "checkpoint/source/source.hpp"
#include "convert/plan/file_plan.hpp"
#include "convert/select/renamed_modules.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::checkpoint {

// A source file, as it was when the conversion was planned.
struct PlannedInput {
  std::string name;
  std::uint64_t bytes = 0;
  std::string version;
  std::string header_sha256;
  std::uint64_t data_begin = 0;
};

struct ShardTensor {
  file_conversion::PlannedTensor planned;  // its `source` is not used
  std::size_t input = 0;                   // index in CheckpointPlan::inputs
  std::uint64_t begin = 0;                 // of its bytes in that file
  // Of a layer that is decoded; `input` and `begin` are then those of its codes. Null: a tensor.
  std::shared_ptr<const DecodedLayer> decoded = nullptr;
  // Of a layer that gets another spelling or scheme; `input` and `begin` are those of the tensor that it comes from.
  std::shared_ptr<const WrittenPart> written = nullptr;

  // The tensors of a layer that are read; null: `planned` is read as it is.
  [[nodiscard]] const DecodedLayer* layer() const noexcept {
    return written != nullptr ? &written->source : decoded.get();
  }
  // The same, and those that share its tensor scale.
  [[nodiscard]] std::vector<const DecodedLayer*> layers() const {
    std::vector<const DecodedLayer*> all;
    if (layer() != nullptr) all.push_back(layer());
    if (written == nullptr) return all;
    for (const DecodedLayer& sibling : written->siblings) all.push_back(&sibling);
    return all;
  }
};

struct PlannedShard {
  std::string name;
  formats::Metadata metadata;
  std::vector<ShardTensor> tensors;  // in the order of the data
  std::uint64_t bytes = 0;           // of the whole file
  std::string fingerprint;           // SHA-256 of all that decides its bytes

  [[nodiscard]] std::uint64_t bytes_in() const noexcept;      // that a conversion copies or converts
  [[nodiscard]] std::uint64_t source_bytes() const noexcept;  // of tensors of the input
  [[nodiscard]] std::uint64_t tensor_bytes() const noexcept;
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

// A file that the source does not have.
struct PlannedText {
  std::string name;
  std::string text;
};

struct CheckpointPlan {
  std::string source;           // folder, a real path
  ConversionSettings settings;  // of every shard
  bool overwrite = false;
  std::vector<PlannedInput> inputs;
  std::vector<PlannedShard> shards;
  std::vector<PlannedModel> models;
  std::vector<PlannedConfig> configs;  // files that are rewritten
  std::vector<PlannedText> texts = {};
  std::vector<ListedFile> copies;
  std::vector<std::string> empty_folders;
  std::vector<file_conversion::MadeChoice> choices = {};  // of a budget, one for each model
  std::vector<LeftOut> left_out;      // for the outcome; not in the text, as it changes without an effect
  std::vector<std::string> warnings;  // of the source; not in plan.json

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
[[nodiscard]] std::string input_text(const PlannedInput& input);

// Fills the fingerprint of a shard.
void set_fingerprint(const CheckpointPlan& plan, PlannedShard& shard);

// Returns the tensors and shards of a plan.
[[nodiscard]] ConvertOutcome outcome_of(const CheckpointPlan& plan);

}  // namespace tensorcast::checkpoint
