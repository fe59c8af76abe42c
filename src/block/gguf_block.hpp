// ggml's block formats: a block of bytes as integers, and a scale and a bias for each run of them.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstdint>

#include "tensorcast/block.hpp"

namespace tensorcast::block {

// Element i is q[i] * scale[i / run], rounded, plus bias[i / run] where there are biases, rounded.
struct GgufRuns {
  static constexpr std::size_t max_elements = 256;

  std::array<std::int8_t, max_elements> q;
  std::size_t run = 0;
  bool has_bias = false;
  std::array<float, max_elements / 16> scale;
  std::array<float, max_elements / 16> bias;
};

struct GgufRow {
  GgufBlock block = GgufBlock::none;
  GgufBlockSize size;
  void (*read)(const std::uint8_t* bytes, GgufRuns& runs) noexcept = nullptr;
};

// Precondition: not none.
[[nodiscard]] const GgufRow& row(GgufBlock block) noexcept;

}  // namespace tensorcast::block
