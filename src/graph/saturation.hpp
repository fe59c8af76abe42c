// SPDX-License-Identifier: Apache-2.0
// Finds the elements that a conversion saturated.
#pragma once

#include <cstddef>
#include <vector>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::graph {

// Returns a bit for each element, low bits first, which is set if the source is out of the target's range (infinities
// included) and the result is the target's extreme, as CastReport counts it. Empty if no bit is set. Preconditions: dst
// = cast(src, options), both of floating-point types.
[[nodiscard]] Result<std::vector<std::byte>> saturated_elements(const Tensor& src, const Tensor& dst,
                                                                const CastOptions& options);

}  // namespace tensorcast::graph
