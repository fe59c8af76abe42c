// SPDX-License-Identifier: Apache-2.0
// ggml's block formats: what their blocks hold. kernels/per_target/unpack_gguf.cpp reads them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "tensorcast/block.hpp"

namespace tensorcast::block {

struct GgufRow {
  GgufBlock block = GgufBlock::none;
  std::string_view scheme;
  GgufBlockSize size;
  unsigned run = 32;                // elements that share a scale
  bool has_bias = false;            // and a bias
  bool has_integer_scales = false;  // which a float16 number of the block multiplies
};

// A row for each format but none, in the order of GgufBlock.
inline constexpr GgufRow gguf_rows[] = {
    {GgufBlock::q4_0, "q4_0", {32, 18}},
    {GgufBlock::q4_1, "q4_1", {32, 20}, 32, true},
    {GgufBlock::q5_0, "q5_0", {32, 22}},
    {GgufBlock::q5_1, "q5_1", {32, 24}, 32, true},
    {GgufBlock::q8_0, "q8_0", {32, 34}},
    {GgufBlock::q2_k, "q2_k", {256, 84}, 16, true, true},
    {GgufBlock::q3_k, "q3_k", {256, 110}, 16, false, true},
    {GgufBlock::q4_k, "q4_k", {256, 144}, 32, true, true},
    {GgufBlock::q5_k, "q5_k", {256, 176}, 32, true, true},
    {GgufBlock::q6_k, "q6_k", {256, 210}, 16, false, true},
    {GgufBlock::iq4_nl, "iq4_nl", {32, 18}},
    {GgufBlock::iq4_xs, "iq4_xs", {256, 136}, 32, false, true},
    {GgufBlock::mxfp4, "mxfp4", {32, 17}},
    {GgufBlock::nvfp4, "nvfp4", {64, 36}, 16},
    {GgufBlock::iq1_s, "iq1_s", {256, 50}, 32, false, true},
    {GgufBlock::iq1_m, "iq1_m", {256, 56}, 16, false, true},
    {GgufBlock::iq2_xxs, "iq2_xxs", {256, 66}, 32, false, true},
    {GgufBlock::iq2_xs, "iq2_xs", {256, 74}, 16, false, true},
    {GgufBlock::iq2_s, "iq2_s", {256, 82}, 16, false, true},
    {GgufBlock::iq3_xxs, "iq3_xxs", {256, 98}, 32, false, true},
    {GgufBlock::iq3_s, "iq3_s", {256, 110}, 32, false, true},
    {GgufBlock::tq1_0, "tq1_0", {256, 54}},
    {GgufBlock::tq2_0, "tq2_0", {256, 66}},
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
