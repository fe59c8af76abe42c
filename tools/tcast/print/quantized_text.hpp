// SPDX-License-Identifier: Apache-2.0
// Prints the quantized layers of a file or checkpoint.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "print/report_json.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Returns a table of the kinds of layers, or with `listed` of all layers, then their known loaders, what cannot be decoded
// and why, and the warnings; "" if there is nothing to say.
[[nodiscard]] std::string layers_text(std::span<const tensorcast::QuantizedLayer> layers,
                                      std::span<const std::string> warnings, bool listed);

// Adds `layers`, `loaders` and `warnings`, unless layers and warnings are empty.
void add_layers_json(Json& json, std::span<const tensorcast::QuantizedLayer> layers,
                     std::span<const std::string> warnings);

}  // namespace tcast
