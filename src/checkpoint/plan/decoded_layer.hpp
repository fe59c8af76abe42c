// SPDX-License-Identifier: Apache-2.0
// A layer in a plan: how it is decoded, and where its tensors are, perhaps in several shards.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
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

// Whether decoding reads parts of this role.
[[nodiscard]] bool is_read(quantized::PartRole role) noexcept;

// How a layer is read, without its name, shape and parts, as the plan's text has it, and back. `read_layer` throws
// Json::exception, or returns false if a value is not one that a plan has.
[[nodiscard]] nlohmann::ordered_json layer_json(const quantized::Layer& layer);
[[nodiscard]] bool read_layer(const nlohmann::json& json, quantized::Layer& layer);

// Reads a number of a choice whose last is `last`; false: there is no such choice.
template <class Choice>
[[nodiscard]] bool read_choice(const nlohmann::json& json, Choice last, Choice& choice) {
  const auto number = json.template get<std::int64_t>();
  if (number < 0 || number > static_cast<std::int64_t>(last)) return false;
  choice = static_cast<Choice>(number);
  return true;
}

}  // namespace tensorcast::checkpoint
