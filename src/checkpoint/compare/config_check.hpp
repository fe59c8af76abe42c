// SPDX-License-Identifier: Apache-2.0
// Compares what the files of a model say about its quantization with the tensors that are there.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "quantized/layout/config_text.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::checkpoint {

struct Contradiction {
  std::string source;   // of the description: "config.json", "the file's metadata"
  std::string tensor;   // the weight
  std::string module;   // that the list has, or lacks
  std::string message;  // a sentence
  std::string list;     // of modules that are not quantized: "ignore"

  friend bool operator==(const Contradiction&, const Contradiction&) = default;
};

// Returns modules that a description lists as not quantized and whose codes are there; and modules of matrices that
// have no codes and are not listed. Of the latter, only what every loader takes for a linear layer counts: no routers,
// no embeddings. `any_list` is off: they count only if the description has a list, as some tools write none for models
// whose loaders know what is not quantized.
[[nodiscard]] std::vector<Contradiction> contradictions_of(const quantized::FoundLayers& found,
                                                           std::span<const formats::TensorInfo> tensors,
                                                           std::span<const quantized::ConfigText> texts, bool any_list);

}  // namespace tensorcast::checkpoint
