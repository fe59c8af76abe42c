// SPDX-License-Identifier: Apache-2.0
// Makes the rows and rules of layers that are decoded, or get another spelling or scheme.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "checkpoint/plan/planned_layer.hpp"

namespace tensorcast::checkpoint {

using TensorPlace = std::pair<std::size_t, std::uint64_t>;  // the input, and the first byte there

class LayerTableMaker {
 public:
  // All outlive it. `places`: of each tensor of the model.
  LayerTableMaker(const file_conversion::ModelToPlan& model, std::span<const TensorPlace> places, LayerTable& table)
      : model_(model), places_(places), table_(table) {}

  // Returns the row of the layer of a tensor, which is decoded or written; makes it, and those of its siblings.
  [[nodiscard]] std::size_t row_of(const file_conversion::PlannedTensor& planned);
  // The input of what a tensor comes from.
  [[nodiscard]] std::size_t input_of(const file_conversion::PlannedTensor& planned) const;

 private:
  [[nodiscard]] std::size_t row_of_rewritten(std::size_t layer);
  [[nodiscard]] std::size_t row_of_decoded(const file_conversion::PlannedTensor& planned);
  // A row with what a layer is, and the rule to it. `sources`: tensors that written ones come from.
  [[nodiscard]] PlannedLayer row(const quantized::Layer& layer, LayerRule& rule,
                                 std::span<const std::size_t> sources = {}) const;
  [[nodiscard]] std::size_t index_of(const LayerRule& rule);

  const file_conversion::ModelToPlan& model_;
  std::span<const TensorPlace> places_;
  LayerTable& table_;
  std::map<std::size_t, std::size_t> rows_;   // of layers
  std::map<std::string, std::size_t> rules_;  // by their text
};

}  // namespace tensorcast::checkpoint
