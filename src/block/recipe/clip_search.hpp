// SPDX-License-Identifier: Apache-2.0
// The scale of a block by least squares: its largest numbers are clipped where that makes the others more exact.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "block/recipe/recipe.hpp"

namespace tensorcast::block {

// Numbers of a block, rows of `width` one after the other; `importance`, unless null, has one number for each column.
struct BlockNumbers {
  std::span<const float> numbers;
  const float* importance = nullptr;
  std::size_t width = 1;
};

class ClipSearch {
 public:
  ClipSearch() = default;
  // `recipe` outlives the search. `scale`: the one of its rules that is used.
  ClipSearch(const Recipe& recipe, ScaleRule scale);

  // Tries the recipe's scale, and those of a block whose extent is smaller by n / 64, for n up to 32. Returns the one
  // whose codes decode with the smallest sum of squared errors, times importance; of equal ones the largest. The sums
  // are float64, in the order of the numbers.
  [[nodiscard]] BlockScale find(const Extent& extent, const ScaleContext& context, const BlockNumbers& block) const;

 private:
  [[nodiscard]] double error_of(const BlockScale& scale, const ScaleContext& context, const BlockNumbers& block) const;

  const Recipe* recipe_ = nullptr;
  ScaleRule scale_ = nullptr;
  std::array<float, 256> decoded_ = {};  // by code
};

}  // namespace tensorcast::block
