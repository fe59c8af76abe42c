// Plans which scheme and spelling weights of a model get.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "convert/quantized/respelling.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::quantized {

struct ChosenWeight {
  std::size_t layer = 0;  // in FoundLayers::layers: a layer, or a weight that add_weight() made one
  std::string scheme;
};

// Makes a plain tensor a layer, which is to be quantized; returns its index.
std::size_t add_weight(FoundLayers& found, const TensorInfo& tensor, std::size_t index);

struct QuantizeRequest {
  QuantizeTargets targets;
  bool to_gguf = false;  // the output is GGUF: so are its layouts
  // Whether a tensor or weight of this name is written.
  std::function<bool(const std::string&)> writes;
};

// Spells out what becomes of the weights; the others' layers of the result have no tensors. Reads nothing.
// Errors: invalid_argument (schemes, recipes and options that do not exist, or together), unsupported (what the
// spelling cannot hold, naming the tensor).
[[nodiscard]] Result<Respelling> plan_quantizing(const FoundLayers& found, std::span<const ChosenWeight> chosen,
                                                 std::span<const TensorInfo> tensors, const QuantizeRequest& request);

}  // namespace tensorcast::quantized
