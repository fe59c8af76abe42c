// SPDX-License-Identifier: Apache-2.0
// A quantized layer in a plan: how it is decoded, and where its tensors are, perhaps in several shards.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "checkpoint/source/shard_reader.hpp"
#include "quantized/layer/decoded_reader.hpp"
#include "quantized/layer/layer.hpp"

namespace tensorcast::checkpoint {

struct LayerPart {
  formats::TensorInfo info;
  std::size_t input = 0;    // index in CheckpointPlan::inputs
  std::uint64_t begin = 0;  // of its bytes in that file
};

// `layer.parts[i].tensor` is i; parts that only activations or loaders need are left out.
struct DecodedLayer {
  quantized::Layer layer;
  std::vector<LayerPart> parts;

  [[nodiscard]] std::uint64_t bytes() const noexcept;
};

// Returns the parts that decoding reads. `place_of`: the input and first byte of a tensor of the model.
[[nodiscard]] DecodedLayer decoded_layer(const quantized::Layer& layer, std::span<const formats::TensorInfo> tensors,
                                         std::span<const std::pair<std::size_t, std::uint64_t>> places);

// As the plan's text has it, and back. `layer_from_json` throws Json::exception, or returns nullptr if a value is not
// one that a plan has; ranges and sizes of parts are for the caller and the decoder to check.
[[nodiscard]] nlohmann::ordered_json layer_json(const DecodedLayer& layer);
[[nodiscard]] std::shared_ptr<DecodedLayer> layer_from_json(const nlohmann::json& json);

}  // namespace tensorcast::checkpoint
