// SPDX-License-Identifier: Apache-2.0
// Prefetches what is read next while runs are encoded.
#pragma once

#include "kernels/runs.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// In the loop that encodes, for its block of `bytes` that lies `at` bytes behind `numbers`: all at once is more than
// the CPU waits for at a time.
SIMD_INLINE void prefetch_block(const std::byte* numbers, std::size_t at, std::size_t bytes, const Ahead& ahead) {
  if (ahead.bytes == 0) return;
  if (ahead.is_begun) {
    prefetch_lines(numbers + ahead.bytes + at / 4 * 3, bytes / 4 * 3);
  } else {
    prefetch_lines(numbers + ahead.bytes + at, bytes);
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
