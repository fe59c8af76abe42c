// SPDX-License-Identifier: Apache-2.0
// Which known loaders take the quantized layers of a model.
#pragma once

#include <string>
#include <vector>

#include "quantized/layout/spelling.hpp"

namespace tensorcast::quantized {

// Returns a sentence for each limit of loaders that layers go beyond.
[[nodiscard]] std::vector<std::string> loader_warnings(const FoundLayers& found);

}  // namespace tensorcast::quantized
