// SPDX-License-Identifier: Apache-2.0
// ggml's block formats: what their blocks hold. kernels/per_target/unpack_gguf.cpp reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensorcast/block.hpp"

namespace tensorcast::block {

// ggml's numbers for files whose elements are mostly of one type (LLAMA_FTYPE): that of files which have this type
// alone, and the last of its mixes with others.
struct GgufFileTypes {
  std::uint32_t first = 1, last = 0;  // the default: there are none
};

struct GgufRow {
  GgufBlock block = GgufBlock::none;
  std::string_view scheme;
  std::uint32_t type = 0;  // ggml's number
  GgufBlockSize size;      // bytes as the sum of the fields: scales and minima, high bits, codes
  GgufFileTypes files = {};
  unsigned run = 32;                // elements that share a scale
  bool has_bias = false;            // and a bias
  bool has_integer_scales = false;  // which a float16 number of the block multiplies
};

// A row for each format but none, in the order of GgufBlock.
inline constexpr GgufRow gguf_rows[] = {
    {GgufBlock::q4_0, "q4_0", 2, {32, 2 + 16}, {2, 2}},
    {GgufBlock::q4_1, "q4_1", 3, {32, 2 + 2 + 16}, {3, 3}, 32, true},
    {GgufBlock::q5_0, "q5_0", 6, {32, 2 + 4 + 16}, {8, 8}},
    {GgufBlock::q5_1, "q5_1", 7, {32, 2 + 2 + 4 + 16}, {9, 9}, 32, true},
    {GgufBlock::q8_0, "q8_0", 8, {32, 2 + 32}, {7, 7}},
    {GgufBlock::q2_k, "q2_k", 10, {256, 2 + 2 + 16 + 64}, {10, 10}, 16, true, true},
    {GgufBlock::q3_k, "q3_k", 11, {256, 2 + 12 + 32 + 64}, {11, 13}, 16, false, true},
    {GgufBlock::q4_k, "q4_k", 12, {256, 2 + 2 + 12 + 128}, {14, 15}, 32, true, true},
    {GgufBlock::q5_k, "q5_k", 13, {256, 2 + 2 + 12 + 32 + 128}, {16, 17}, 32, true, true},
    {GgufBlock::q6_k, "q6_k", 14, {256, 2 + 16 + 64 + 128}, {18, 18}, 16, false, true},
    {GgufBlock::iq4_nl, "iq4_nl", 20, {32, 2 + 16}, {25, 25}},
    {GgufBlock::iq4_xs, "iq4_xs", 23, {256, 2 + 2 + 4 + 128}, {30, 30}, 32, false, true},
    {GgufBlock::mxfp4, "mxfp4", 39, {32, 1 + 16}, {38, 38}},
    {GgufBlock::nvfp4, "nvfp4", 40, {64, 4 + 32}, {39, 39}, 16},
    {GgufBlock::iq1_s, "iq1_s", 19, {256, 2 + 16 + 32}, {}, 32, false, true},
    {GgufBlock::iq1_m, "iq1_m", 29, {256, 8 + 16 + 32}, {}, 16, false, true},
    {GgufBlock::iq2_xxs, "iq2_xxs", 16, {256, 2 + 64}, {}, 32, false, true},
    {GgufBlock::iq2_xs, "iq2_xs", 17, {256, 2 + 8 + 64}, {}, 16, false, true},
    {GgufBlock::iq2_s, "iq2_s", 22, {256, 2 + 16 + 64}, {}, 16, false, true},
    {GgufBlock::iq3_xxs, "iq3_xxs", 18, {256, 2 + 32 + 64}, {}, 32, false, true},
    {GgufBlock::iq3_s, "iq3_s", 21, {256, 2 + 4 + 8 + 32 + 64}, {}, 32, false, true},
    {GgufBlock::tq1_0, "tq1_0", 34, {256, 2 + 4 + 48}},
    {GgufBlock::tq2_0, "tq2_0", 35, {256, 2 + 64}},
};

// Precondition: not none.
[[nodiscard]] constexpr const GgufRow& row(GgufBlock block) noexcept {
  return gguf_rows[static_cast<std::size_t>(block) - 1];
}

[[nodiscard]] constexpr GgufBlock gguf_block_of(std::string_view scheme) noexcept {
  for (const GgufRow& row : gguf_rows) {
    if (row.scheme == scheme) return row.block;
  }
  return GgufBlock::none;
}

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
