// Prints the recipes that quantized weights were made by.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <string>

#include "report_json.hpp"
#include "tensorcast/detect_recipes.hpp"

namespace tcast {

// Detects with a progress bar. Errors: as detect_recipes().
[[nodiscard]] tensorcast::Result<std::vector<tensorcast::LayerRecipes>> detect_recipes(
    tensorcast::DetectRequest request, bool quiet);

// Returns a table of layers with the same recipes, or with `listed` of all layers; then a sentence about all of them.
[[nodiscard]] std::string recipes_text(std::span<const tensorcast::LayerRecipes> found, bool listed);

// Adds `recipes` to layers and to their tensors, `trials` to layers, and `recipes` of all layers together.
void add_recipes_json(Json& json, std::span<const tensorcast::LayerRecipes> found);

}  // namespace tcast
