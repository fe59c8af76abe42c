// SPDX-License-Identifier: Apache-2.0
// Finds and writes the scales of a weight: of its blocks, and of the whole tensor.
#pragma once

#include <cstddef>
#include <optional>

#include "block/encode/quantizer_work.hpp"
#include "block/encode/weight_layout.hpp"
#include "block/recipe/clip_search.hpp"
#include "block/recipe/scale_rule.hpp"
#include "kernels/runs.hpp"

namespace tensorcast::block {

class ScaleMaker {
 public:
  // `layout` outlives this. `largest`: of all numbers of the weight; of no use unless WeightLayout::needs_maximum().
  ScaleMaker(const WeightLayout& layout, float largest);

  // Writes the scales of a stretch, and leaves in `work` what its codes need. Errors: out_of_range: a number is
  // refused; the caller names it.
  [[nodiscard]] Result<void> put(const Stretch& stretch, QuantizerWork& work) const;

  [[nodiscard]] const ScaleContext& context() const noexcept { return context_; }
  // Of all elements, where the layout is_per_tensor().
  [[nodiscard]] const BlockScale& of_tensor() const noexcept { return tensor_scale_; }
  // The scale of the tensor beside those of its blocks, as it is stored; none: the recipe has no such scale.
  [[nodiscard]] std::optional<float> global() const noexcept {
    return layout_->recipe->global == nullptr ? std::nullopt : std::optional(context_.global);
  }
  // Of the rule, where it has them.
  [[nodiscard]] const std::optional<kernels::ScaleSteps>& steps() const noexcept { return steps_; }

 private:
  void measure(const Stretch& stretch, std::size_t runs, QuantizerWork& work) const;
  [[nodiscard]] bool put_ordinary(std::size_t index, std::size_t runs, QuantizerWork& work) const;
  [[nodiscard]] bool take_nonfinite(const Stretch& stretch, QuantizerWork& work) const;
  [[nodiscard]] BlockScale searched(const Stretch& stretch, std::size_t i, const QuantizerWork& work) const;
  void keep(std::size_t index, QuantizerWork& work) const;

  const WeightLayout* layout_;
  ScaleContext context_;
  std::optional<kernels::ScaleSteps> steps_;
  std::optional<ClipSearch> clip_;
  BlockScale tensor_scale_;
};

}  // namespace tensorcast::block
