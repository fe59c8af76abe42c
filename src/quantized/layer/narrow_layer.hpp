// SPDX-License-Identifier: Apache-2.0
// A layer of fewer rows and columns, in the place of a layer of which a part is to be decoded: its parts are read from
// those of the whole, so that no decoder knows of it.
#pragma once

#include <vector>

#include "formats/array_part.hpp"
#include "quantized/layer/part_reader.hpp"

namespace tensorcast::quantized {

struct NarrowLayer {
  Layer layer;
  LayerParts parts;
  std::vector<IndexRange> ranges;  // what was asked for, in the narrow layer
};

// The smallest layer of whole words and blocks that has `ranges`, one for each dimension, none of them empty. Layouts
// whose codes depend on other columns stay whole: GPTQ's with a group index, and bitsandbytes'.
// Precondition: LayerDecoder::create() takes the layer with these parts.
[[nodiscard]] NarrowLayer narrowed(const Layer& layer, const LayerParts& parts, std::vector<IndexRange> ranges);

}  // namespace tensorcast::quantized
