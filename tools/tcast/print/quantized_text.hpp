// SPDX-License-Identifier: Apache-2.0
// Prints the quantized layers of a file or checkpoint.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "print/report_json.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Returns a table of the kinds of layers, or with `listed` of all layers, then their known
// loaders, what cannot be decoded and why, and the warnings and notes; "" if there is nothing to say.
[[nodiscard]] std::string layers_text(const tensorcast::FileSummary& file, bool listed);

// Adds `layers`, `loaders`, `warnings` and `notes`, unless all are empty.
void add_layers_json(Json& json, const tensorcast::FileSummary& file);

}  // namespace tcast
