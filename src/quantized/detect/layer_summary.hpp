// SPDX-License-Identifier: Apache-2.0
// Text of `inspect` about quantized layers, and warnings about scales that known loaders reject.
#pragma once

#include <string>
#include <vector>

#include "formats/format.hpp"
#include "quantized/detect/recipe_evidence.hpp"
#include "quantized/layout/spelling.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::quantized {

// `prefix` is put before names.
[[nodiscard]] std::vector<QuantizedLayer> summary_of(const FoundLayers& found, std::span<const TensorInfo> tensors,
                                                     const std::string& prefix = {});

// Returns a sentence about the layers that cannot be decoded; "": there are none. inspect() says why, for each.
[[nodiscard]] std::string problem_warning(const FoundLayers& found);

// Warns of scales that are NaN, zero or infinite; of layers that loaders join, such as gate and up, whose tensor scales
// differ; of a method or a spelling that is not decoded. Notes negative scales, as auto-round makes them, and the
// recipes that are excluded. Reads at most 256 MiB of scales. Scales that cannot be read are passed over: reading the
// file tells.
[[nodiscard]] ScaleRemarks scale_remarks(const FoundLayers& found, formats::Reader& reader);

}  // namespace tensorcast::quantized
