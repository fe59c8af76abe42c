// SPDX-License-Identifier: Apache-2.0
// ggml's block formats: what their blocks hold. kernels/per_target/unpack_gguf.cpp reads them.
#pragma once

#include <cstddef>
#include <span>

#include "tensorcast/block.hpp"

namespace tensorcast::block {

struct GgufRow {
  GgufBlock block = GgufBlock::none;
  GgufBlockSize size;
  unsigned run = 32;      // elements that share a scale
  bool has_bias = false;  // and a bias
};

// Precondition: not none.
[[nodiscard]] const GgufRow& row(GgufBlock block) noexcept;

// mxfp4 and nvfp4: a byte of scale for each run, then the codes of each run, whose low nibbles are its first half.
[[nodiscard]] constexpr bool is_float4(GgufBlock block) noexcept {
  return block == GgufBlock::mxfp4 || block == GgufBlock::nvfp4;
}
// Takes whole blocks apart: codes, one a byte, and scales; null: not wanted.
void split_float4_blocks(const GgufRow& format, std::span<const std::byte> blocks, std::byte* codes,
                         std::byte* scales) noexcept;
void join_float4_blocks(const GgufRow& format, const std::byte* codes, const std::byte* scales, std::size_t count,
                        std::byte* blocks) noexcept;

}  // namespace tensorcast::block
