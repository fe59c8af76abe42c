// Which elements a conversion saturated.
#pragma once

#include <cstddef>
#include <vector>

#include "tensorcast/cast.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::graph {

// A bit for each element, low bits first: beyond the target's range (infinities included) and now the target's extreme,
// as CastReport counts it. Empty when there is none. Preconditions: dst = cast(src, options), both of floating-point
// types.
[[nodiscard]] Result<std::vector<std::byte>> saturated_elements(const Tensor& src, const Tensor& dst,
                                                                const CastOptions& options);

}  // namespace tensorcast::graph
