// SPDX-License-Identifier: Apache-2.0
// Text of `inspect` about quantized layers, and warnings about scales that known loaders reject.
#pragma once

#include <string>
#include <vector>

#include "formats/format.hpp"
#include "quantized/layout/spelling.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::quantized {

// `prefix` is put before names.
[[nodiscard]] std::vector<QuantizedLayer> summary_of(const FoundLayers& found, std::span<const TensorInfo> tensors,
                                                     const std::string& prefix = {});

// Returns a sentence about the layers that cannot be decoded; "": there are none. inspect() says why, for each.
[[nodiscard]] std::string problem_warning(const FoundLayers& found);

// Returns sentences about scales: NaN, zero or infinite ones; layers that loaders join, such as gate and up, whose
// tensor scales differ; a method or a spelling that is not decoded. Reads at most 256 MiB of scales. Scales that cannot
// be read are passed over: reading the file tells.
[[nodiscard]] std::vector<std::string> scale_warnings(const FoundLayers& found, formats::Reader& reader);

}  // namespace tensorcast::quantized
