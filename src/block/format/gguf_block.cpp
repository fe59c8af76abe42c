// SPDX-License-Identifier: Apache-2.0
#include "block/format/gguf_block.hpp"

#include <algorithm>

#include "kernels/gguf_low_bits.hpp"

namespace tensorcast::block {
namespace {

static_assert([] {
  std::size_t i = 0;
  for (const GgufRow& row : gguf_rows) {
    if (static_cast<std::size_t>(row.block) != ++i) return false;
  }
  return i == static_cast<std::size_t>(kernels::last_gguf_block);
}());

}  // namespace

void split_float4_blocks(const GgufRow& format, std::span<const std::byte> blocks, std::byte* codes,
                         std::byte* scales) noexcept {
  const std::size_t run = format.run, runs = format.size.elements / run;
  const std::byte* from = blocks.data();
  while (from != blocks.data() + blocks.size()) {
    if (scales != nullptr) scales = std::copy_n(from, runs, scales);
    from += runs;
    for (std::size_t i = 0; i < runs; ++i, from += run / 2) {
      if (codes == nullptr) continue;
      for (std::size_t k = 0; k < run / 2; ++k) {
        codes[k] = from[k] & std::byte{15};
        codes[k + run / 2] = from[k] >> 4;
      }
      codes += run;
    }
  }
}

void join_float4_blocks(const GgufRow& format, const std::byte* codes, const std::byte* scales, std::size_t count,
                        std::byte* blocks) noexcept {
  const std::size_t run = format.run, runs = format.size.elements / run;
  for (std::size_t block = 0; block < count; ++block, scales += runs) {
    blocks = std::copy_n(scales, runs, blocks);
    for (std::size_t i = 0; i < runs; ++i, codes += run) {
      for (std::size_t k = 0; k < run / 2; ++k) {
        *blocks++ = (codes[k] & std::byte{15}) | (codes[k + run / 2] & std::byte{15}) << 4;
      }
    }
  }
}

}  // namespace tensorcast::block

namespace tensorcast {
inline namespace TENSORCAST_ABI {

GgufBlockSize block_size(GgufBlock block) noexcept {
  return block == GgufBlock::none || block > kernels::last_gguf_block ? GgufBlockSize{} : block::row(block).size;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
