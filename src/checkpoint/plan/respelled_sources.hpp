// SPDX-License-Identifier: Apache-2.0
// Where the tensors of respelled layers come from, for a plan.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::checkpoint {

class RespelledSources {
 public:
  // All outlive it. `places`: the input and first byte of each tensor of the model.
  RespelledSources(const quantized::FoundLayers& found, const quantized::Respelling& respelling,
                   std::span<const formats::TensorInfo> tensors,
                   std::span<const std::pair<std::size_t, std::uint64_t>> places)
      : found_(found), respelling_(respelling), tensors_(tensors), places_(places) {}

  // Precondition: planned.written is not SIZE_MAX.
  [[nodiscard]] ShardTensor shard_tensor(file_conversion::PlannedTensor planned);

 private:
  const quantized::FoundLayers& found_;
  const quantized::Respelling& respelling_;
  std::span<const formats::TensorInfo> tensors_;
  std::span<const std::pair<std::size_t, std::uint64_t>> places_;
  // Of each layer, as its tensors share them.
  std::map<std::size_t, std::shared_ptr<const quantized::RespelledLayer>> layers_;
};

}  // namespace tensorcast::checkpoint
