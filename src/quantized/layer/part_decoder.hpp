// SPDX-License-Identifier: Apache-2.0
// Decodes a part of a weight, reading only what it needs, on threads.
#pragma once

#include <span>

#include "formats/array_part.hpp"
#include "quantized/layer/part_reader.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"

namespace tensorcast::quantized {

// Decodes to float32 and rounds once to `to`, a castable type of 8 bits or more. `parts` is read by one thread at a
// time. `out` has the part's elements, in C order. Elements that errors name and random bits are those of the whole
// weight. Memory: what the threads decode at once. Errors: those of LayerDecoder and cast().
[[nodiscard]] Result<void> decode_part(const Layer& layer, const LayerParts& parts, const formats::ArrayPart& part,
                                       DType to, std::span<std::byte> out, const CastOptions& options,
                                       const Execution& execution);

}  // namespace tensorcast::quantized
