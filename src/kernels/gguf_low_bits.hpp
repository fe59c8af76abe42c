// SPDX-License-Identifier: Apache-2.0
// ggml's blocks of 1 to 3 bits, whose codes are indices of points of a grid, or digits of base 3. Plain code that each
// target shares: the blocks are rare, and their points are looked up, 4 or 8 numbers at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/runs.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::kernels {

inline constexpr GgufBlock last_gguf_block = GgufBlock::tq2_0;

[[nodiscard]] constexpr bool is_low_bit(GgufBlock block) noexcept { return block > GgufBlock::nvfp4; }

// As the UnpackGgufFn of `block`, which is_low_bit(), in the default floating-point environment.
void unpack_low_bits(GgufBlock block, const std::byte* src, std::size_t blocks, GgufRuns& runs) noexcept;

}  // namespace tensorcast::kernels
