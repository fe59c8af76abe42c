// SPDX-License-Identifier: Apache-2.0
// ggml's block formats: what their blocks hold. kernels/per_target/unpack_gguf.cpp reads them.
#pragma once

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

}  // namespace tensorcast::block
