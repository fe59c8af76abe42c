// SPDX-License-Identifier: Apache-2.0
// Makes the rows and rules of layers that are decoded, or get another spelling or scheme.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/plan/planned_layer.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::checkpoint {

class LayerTableMaker {
 public:
  // For one model. All outlive it. `places`: the input and first byte of each tensor of the model.
  LayerTableMaker(const quantized::FoundLayers& found, const quantized::Respelling& respelling,
                  std::span<const formats::TensorInfo> tensors,
                  std::span<const std::pair<std::size_t, std::uint64_t>> places, LayerTable& table)
      : found_(found), respelling_(respelling), tensors_(tensors), places_(places), table_(table) {}

  // Returns the row of the layer of a tensor, which is decoded or written; makes it, and those of its siblings.
  [[nodiscard]] std::size_t row_of(const file_conversion::PlannedTensor& planned);
  // The input of what a tensor comes from.
  [[nodiscard]] std::size_t input_of(const file_conversion::PlannedTensor& planned) const;

 private:
  [[nodiscard]] std::size_t row_of_rewritten(std::size_t layer);
  [[nodiscard]] std::size_t row_of_decoded(const file_conversion::PlannedTensor& planned);
  // A row with what a layer is, and the rule to it.
  [[nodiscard]] PlannedLayer row(const quantized::Layer& layer, LayerRule& rule) const;
  [[nodiscard]] std::size_t index_of(const LayerRule& rule);

  const quantized::FoundLayers& found_;
  const quantized::Respelling& respelling_;
  std::span<const formats::TensorInfo> tensors_;
  std::span<const std::pair<std::size_t, std::uint64_t>> places_;
  LayerTable& table_;
  std::map<std::size_t, std::size_t> rows_;   // of layers
  std::map<std::string, std::size_t> rules_;  // by their text
};

}  // namespace tensorcast::checkpoint
