// SPDX-License-Identifier: Apache-2.0
// Prints the recipes that quantized weights were made by.
#pragma once

#include <span>
#include <string>

#include "print/report_json.hpp"
#include "tensorcast/detect_recipes.hpp"

namespace tcast {

// Detects with a progress bar. Errors: as tensorcast::detect_recipes(), whose request has the first arguments.
[[nodiscard]] tensorcast::Result<std::vector<tensorcast::LayerRecipes>> detect_recipes(
    const std::string& input, const std::string& original, const std::string& importance,
    const tensorcast::Execution& execution, bool quiet);

// Returns a table of layers with the same recipes, or with `listed` of all layers; then a sentence about all of them.
// `is_weighed`: a file of importance was tried.
[[nodiscard]] std::string recipes_text(std::span<const tensorcast::LayerRecipes> found, bool listed, bool is_weighed);

// Adds `recipes` to layers and to their tensors, `trials` to layers, and `recipes` of all layers together.
void add_recipes_json(Json& json, std::span<const tensorcast::LayerRecipes> found);

}  // namespace tcast
