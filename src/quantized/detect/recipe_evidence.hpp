// SPDX-License-Identifier: Apache-2.0
// What codes and scales themselves say of the recipe that made them, without the original.
#pragma once

#include <string>
#include <vector>

#include "formats/format.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::quantized {

// Sentences about scales and codes.
struct ScaleRemarks {
  std::vector<std::string> warnings = {};  // what known loaders reject, or read as other numbers
  std::vector<std::string> notes = {};     // what is worth knowing, and no fault
};

// Adds a note for each scheme of MX and NVFP4: the recipes that its codes and scale bytes exclude, or that all are
// excluded; and warns of oddities: blocks whose scale is zero although codes are not, bytes that wrapped. Reads up to
// 4 MiB of each layer, 64 MiB in all; layers that cannot be read are passed over: reading the file tells.
void add_recipe_remarks(const FoundLayers& found, formats::Reader& reader, ScaleRemarks& remarks);

}  // namespace tensorcast::quantized
