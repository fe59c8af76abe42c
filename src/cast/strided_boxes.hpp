// SPDX-License-Identifier: Apache-2.0
// Casts of arrays of any strides to dense ones: permutations that keep the last axis, slices, other byte orders.
#pragma once

#include <cstddef>

#include "cast/strided_array.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Reports whether cast_boxes() takes these arrays.
[[nodiscard]] bool has_boxes(const StridedArray& src, const StridedArray& dst, const Work& work);

// Converts all elements in C order. The arrays are disjoint. Errors: of the first element that fails.
[[nodiscard]] Result<void> cast_boxes(const StridedArray& src, const StridedArray& dst, std::size_t count,
                                      const Work& work);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
