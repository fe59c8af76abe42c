// SPDX-License-Identifier: Apache-2.0
// All tensors of a checkpoint behind one reader, to list, compare and verify them.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "checkpoint/source/shard_reader.hpp"
#include "checkpoint/source/source.hpp"
#include "quantized/layout/open_input.hpp"

namespace tensorcast::checkpoint {

// Adds the tensors of one model to `reader`, in the order of its shards.
void add_model(const SourceCheckpoint& checkpoint, const SourceModel& model, ShardReader& reader);

// A model: its tensors, and what its files say about its quantization.
struct OpenedModel {
  file_conversion::OpenedInput input;
  const ShardReader* shards = nullptr;  // the reader of `input`; null: it is that of a file
  std::string unread = {};              // a sentence about a configuration that cannot be read; "": there is none

  [[nodiscard]] quantized::FoundLayers layers() const { return file_conversion::layers_of(input); }
  // Returns the file of a tensor.
  [[nodiscard]] std::string path_of(std::size_t tensor) const {
    return shards == nullptr ? input.file->path() : shards->path_of(tensor);
  }
  // The same by its name, or of the codes of a weight; "": the model has neither.
  [[nodiscard]] std::string file_of(const std::string& name) const;
};

// Opens a model of a checkpoint: with the configurations beside it, and the metadata of its files. What cannot be read
// says nothing.
[[nodiscard]] OpenedModel open_model(const SourceCheckpoint& checkpoint, const SourceModel& model);
// Opens a file of tensors. Errors: those of reading.
[[nodiscard]] Result<OpenedModel> open_model_file(const std::string& path);

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
