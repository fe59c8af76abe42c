// SPDX-License-Identifier: Apache-2.0
// Casts of arrays whose last axis is not the one that is dense in the source: transposes and permutations.
#pragma once

#include <cstddef>
#include <optional>

#include "cast/strided_array.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Returns an axis along which the source has several elements in a cache line, if its last axis has not.
[[nodiscard]] std::optional<std::size_t> tile_axis(const StridedArray& src, std::size_t count);

// Converts all elements in tiles of the axis `rows`, which tile_axis() named, and the last one, on all threads. The
// arrays are disjoint. Errors: of an element that fails, not the first in C order.
[[nodiscard]] Result<void> cast_tiles(const StridedArray& src, const StridedArray& dst, std::size_t count,
                                      std::size_t rows, const Work& work);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
