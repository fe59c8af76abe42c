// SPDX-License-Identifier: Apache-2.0
// Compares a quantized layer with what each recipe makes of its original.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quantized/layer/original_rows.hpp"
#include "quantized/layer/part_reader.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/detect_recipes.hpp"
#include "tensorcast/execution.hpp"

namespace tensorcast::quantized {

// What an output's metadata say of how its weights were quantized.
struct RecordedRecipes {
  std::vector<std::string> recipes;  // "nvfp4:modelopt"
  QuantizeOptions options = {};      // but the recipe, and what the layer itself tells
  bool weighs = false;               // by a file of importance

  // Reports whether a recipe of the scheme is recorded.
  [[nodiscard]] bool names(std::string_view scheme) const;
};

// The weight before it was quantized, in float32, bfloat16 or float16, with the shape of the layer.
struct OriginalWeight {
  DType dtype = DType::undefined;
  ReadNumbers read;
  // The largest magnitude of all weights that loaders join with this one, in the type of `dtype`; none: it stands
  // alone.
  std::function<Result<std::optional<float>>(DType compute_dtype)> joined_maximum;
  std::vector<float> importance = {};         // of its columns, as QuantizeOptions; empty: none is known
  const RecordedRecipes* recorded = nullptr;  // the only recipes that are tried; null, or none of the scheme: all
};

// Returns the scheme whose recipes are tried; "": there are none.
[[nodiscard]] std::string scheme_of_recipes(const Layer& layer);

// Fills `found`: scheme, blocks, trials, or the problem. `advance` is told of bytes read, and returns false to cancel.
// Errors: those of reading; cancelled.
[[nodiscard]] Result<void> try_recipes(PartReader reader, const OriginalWeight& original, const Execution& execution,
                                       const std::function<bool(std::uint64_t bytes)>& advance, LayerRecipes& found);

}  // namespace tensorcast::quantized
