// All tensors of a checkpoint behind one reader, to list, compare and verify them.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/shard_reader.hpp"
#include "checkpoint/source.hpp"

namespace tensorcast::checkpoint {

// Adds the tensors of one model to `reader`, in the order of its shards.
void add_model(const SourceCheckpoint& checkpoint, const SourceModel& model, ShardReader& reader);

// Returns what the configurations beside a model and the metadata of its files say about its quantization
// (convert/quantization_claim.hpp).
[[nodiscard]] std::string claim_of(const SourceCheckpoint& checkpoint, const SourceModel& model);

// Returns what tells a model's tensors from those of the folder's other models:
// "unet/", "fp16:", mostly "".
[[nodiscard]] std::string name_prefix(const SourceModel& model);

}  // namespace tensorcast::checkpoint
