// All tensors of a checkpoint behind one reader, to list, compare and verify them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/shard_reader.hpp"
#include "checkpoint/source.hpp"
#include "convert/quantized/config.hpp"

namespace tensorcast::checkpoint {

// Adds the tensors of one model to `reader`, in the order of its shards.
void add_model(const SourceCheckpoint& checkpoint, const SourceModel& model, ShardReader& reader);

// What the configurations beside models and the metadata of their files say about quantization
// (convert/quantization_claim.hpp). The configurations of a folder are read once, for all its models.
class Claims {
 public:
  explicit Claims(const SourceCheckpoint& checkpoint);  // which must outlive it

  // Returns "" if nothing says so.
  [[nodiscard]] std::string of(const SourceModel& model);
  // Returns the texts themselves, for convert/quantized/.
  [[nodiscard]] std::vector<quantized::ConfigText> texts_of(const SourceModel& model) const;

 private:
  const std::string& of_folder(const std::string& folder);

  const SourceCheckpoint& checkpoint_;
  std::map<std::string, std::vector<std::string>> configs_;  // by folder: names of files that may say so
  std::map<std::string, std::string> claims_;                // by folder
};

// Returns what tells a model's tensors from those of the folder's other models:
// "unet/", "fp16:", mostly "".
[[nodiscard]] std::string name_prefix(const SourceModel& model);

}  // namespace tensorcast::checkpoint
