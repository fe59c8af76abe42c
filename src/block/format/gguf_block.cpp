// SPDX-License-Identifier: Apache-2.0
#include "block/format/gguf_block.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/gguf_low_bits.hpp"

namespace tensorcast::block {
namespace {

constexpr std::array<GgufRow, static_cast<std::size_t>(kernels::last_gguf_block)> rows = {{
    {GgufBlock::q4_0, {32, 18}},
    {GgufBlock::q4_1, {32, 20}, 32, true},
    {GgufBlock::q5_0, {32, 22}},
    {GgufBlock::q5_1, {32, 24}, 32, true},
    {GgufBlock::q8_0, {32, 34}},
    {GgufBlock::q2_k, {256, 84}, 16, true},
    {GgufBlock::q3_k, {256, 110}, 16},
    {GgufBlock::q4_k, {256, 144}, 32, true},
    {GgufBlock::q5_k, {256, 176}, 32, true},
    {GgufBlock::q6_k, {256, 210}, 16},
    {GgufBlock::iq4_nl, {32, 18}},
    {GgufBlock::iq4_xs, {256, 136}},
    {GgufBlock::mxfp4, {32, 17}},
    {GgufBlock::nvfp4, {64, 36}, 16},
    {GgufBlock::iq1_s, {256, 50}},
    {GgufBlock::iq1_m, {256, 56}, 16},
    {GgufBlock::iq2_xxs, {256, 66}},
    {GgufBlock::iq2_xs, {256, 74}, 16},
    {GgufBlock::iq2_s, {256, 82}, 16},
    {GgufBlock::iq3_xxs, {256, 98}},
    {GgufBlock::iq3_s, {256, 110}},
    {GgufBlock::tq1_0, {256, 54}},
    {GgufBlock::tq2_0, {256, 66}},
}};
static_assert([] {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].block) != i + 1) return false;
  }
  return true;
}());

}  // namespace

const GgufRow& row(GgufBlock block) noexcept { return rows[static_cast<std::size_t>(block) - 1]; }

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
