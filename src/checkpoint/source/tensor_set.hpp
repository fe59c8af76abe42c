// SPDX-License-Identifier: Apache-2.0
// All tensors of a checkpoint behind one reader, to list, compare and verify them.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/source/shard_reader.hpp"
#include "checkpoint/source/source.hpp"
#include "quantized/detect/layer_summary.hpp"
#include "quantized/layer/decoded_reader.hpp"

namespace tensorcast::checkpoint {

// Adds the tensors of one model to `reader`, in the order of its shards.
void add_model(const SourceCheckpoint& checkpoint, const SourceModel& model, ShardReader& reader);

// What the configurations beside models and the metadata of their files say about quantization
// (quantized/layout/quantization_claim.hpp). The configurations of a folder are read once, for all its models.
class Claims {
 public:
  explicit Claims(const SourceCheckpoint& checkpoint);  // which must outlive it

  // Returns "" if nothing says so.
  [[nodiscard]] std::string of(const SourceModel& model);
  // Returns the texts themselves, for quantized/.
  [[nodiscard]] std::vector<quantized::ConfigText> texts_of(const SourceModel& model) const;

 private:
  const std::string& of_folder(const SourceModel& model);

  const SourceCheckpoint& checkpoint_;
  std::map<std::string, std::vector<std::string>> configs_;     // by folder: names of files that may say so
  std::map<std::pair<std::string, bool>, std::string> claims_;  // by folder, and whether it is of Mistral's files
};

// Finds the quantized layers of a model, whose tensors are those of `reader`.
[[nodiscard]] quantized::FoundLayers layers_of(const Claims& claims, const SourceModel& model, ShardReader& reader);

// Chooses what another checkpoint, which was converted from this one, has of each layer: the weight, or the tensors of
// the layer. The weight is decoded there if its tensors are not there. Without decoded layers `layers` is left empty.
// `is_there` tells whether it has a tensor of numbers, by its name here.
void keep_decoded(quantized::FoundLayers& layers, std::span<const formats::TensorInfo> tensors,
                  const std::function<bool(const std::string& name)>& is_there);

// Returns what tells a model's tensors from those of the folder's other models:
// "unet/", "fp16:", mostly "".
[[nodiscard]] std::string name_prefix(const SourceModel& model);
// Returns the one of these models that a file holds. `hint`: how one is chosen. Errors: unsupported, if there is none
// or several, with `path`.
[[nodiscard]] Result<const SourceModel*> only_model(std::span<const SourceModel* const> chosen, const std::string& path,
                                                    const std::string& hint);

}  // namespace tensorcast::checkpoint
