#include "checkpoint/tensor_set.hpp"

namespace tensorcast::checkpoint {

void add_model(const SourceCheckpoint& checkpoint, const SourceModel& model, ShardReader& reader) {
  for (const std::size_t index : model.shards) {
    const SourceShard& shard = checkpoint.shards[index];
    const std::size_t file = reader.add_file(
        {.folder = checkpoint.folder, .name = shard.name, .bytes = shard.bytes, .version = shard.version});
    for (std::size_t i = 0; i < shard.header.tensors.size(); ++i) {
      reader.add_tensor(shard.header.tensors[i], file, shard.data_begin + shard.header.begin_offsets[i]);
    }
  }
}

std::string name_prefix(const SourceModel& model) {
  // Variants of a model, such as model.fp16.safetensors, have tensors of the same names.
  const std::size_t dot = model.stem.find('.');
  return model.folder + (dot == std::string::npos ? "" : model.stem.substr(dot + 1) + ":");
}

}  // namespace tensorcast::checkpoint
