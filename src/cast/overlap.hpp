// SPDX-License-Identifier: Apache-2.0
// Whether strided arrays share bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// The bytes of an array: `item_bytes` at `lowest` + the sum of stride * index, for each index from 0 to `last`.
struct Footprint {
  struct Axis {
    std::uint64_t stride = 0;  // bytes
    std::uint64_t last = 0;
  };

  std::uintptr_t lowest = 0;
  std::uint64_t item_bytes = 1;
  std::uint64_t span = 0;       // bytes from the lowest address to behind the highest one
  std::vector<Axis> axes = {};  // of two elements or more
};

// The footprint of an array of one element or more, whose element of indices 0 is at `data`. Strides are bytes.
// Errors: invalid_argument: it reaches beyond the addresses that a process has.
[[nodiscard]] Result<Footprint> footprint(const std::byte* data, const Shape& shape, const Shape& strides,
                                          std::uint64_t item_bytes);

// Reports whether the arrays share a byte: false is certain. True, too, for arrays that would take too long to tell:
// the question is a bounded linear Diophantine equation, which is solved exactly within a limit of work.
[[nodiscard]] bool may_overlap(const Footprint& a, const Footprint& b);

// Reports whether two elements of one array share a byte, likewise.
[[nodiscard]] bool may_overlap_itself(const Footprint& array);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
