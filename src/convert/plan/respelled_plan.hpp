// SPDX-License-Identifier: Apache-2.0
// What the tensors of layers become in another spelling or scheme.
#pragma once

#include <span>
#include <vector>

#include "convert/plan/file_plan.hpp"

namespace tensorcast::file_conversion {

// Why a layer is written as it is, in words. `scheme`: what it was, if its codes stay.
[[nodiscard]] std::string words_of(const quantized::RespelledLayer& layer, const std::string& scheme);

// Plans one of the tensors that a layer becomes, which is `written`. `fate`: the layer and the place; `source`: the
// name of the tensor that it comes from; `words`: those of words_of(); `bytes`: of all tensors that the layer is.
[[nodiscard]] PlannedTensor planned_written(const quantized::RespelledLayer& layer,
                                            const quantized::WrittenLayer& written, Rewritten fate,
                                            const std::string& source, const std::string& words, std::uint64_t bytes);

// Plans tensor `index`, one of the layer `place`: at its codes, all tensors that the layer becomes. Errors: unsupported
// (a type that the output cannot hold).
[[nodiscard]] Result<void> plan_respelled(std::span<const formats::TensorInfo> tensors, std::size_t index,
                                          const quantized::Layer& layer, std::size_t place,
                                          const quantized::Respelling& respelling, const formats::Format& output,
                                          std::vector<PlannedTensor>& plan);

}  // namespace tensorcast::file_conversion
