// The loops of each engine: from source codes through a table to target codes.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/narrow/layout.hpp"

namespace tensorcast::kernels::narrow {

// Converts `count` elements, at least one. Unused bits of the last byte written are unspecified.
using Loop = void (*)(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table);

// The loop of layout_list<engine>.layouts[i] is at [i].
using Loops = std::array<Loop, max_layouts>;

extern const Loops scalar_loops;
#if defined(__x86_64__)
extern const Loops avx2_loops;
extern const Loops avx512_loops;
extern const Loops avx512vbmi_loops;
#endif

}  // namespace tensorcast::kernels::narrow
