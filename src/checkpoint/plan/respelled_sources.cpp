// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/respelled_sources.hpp"

namespace tensorcast::checkpoint {

ShardTensor RespelledSources::shard_tensor(file_conversion::PlannedTensor planned) {
  std::shared_ptr<const quantized::RespelledLayer>& layer = layers_[planned.layer];
  if (layer == nullptr) {
    layer = std::make_shared<const quantized::RespelledLayer>(respelling_.layers[planned.layer]);
  }
  const auto [input, begin] = places_[layer->sources[planned.written]];
  auto written = std::make_shared<WrittenPart>();
  written->source = decoded_layer(found_.layers[planned.layer], tensors_, places_);
  for (const std::size_t sibling : layer->siblings) {
    written->siblings.push_back(decoded_layer(found_.layers[sibling], tensors_, places_));
  }
  written->layer = layer;
  written->tensor = planned.written;
  return {.planned = std::move(planned), .input = input, .begin = begin, .written = std::move(written)};
}

}  // namespace tensorcast::checkpoint
