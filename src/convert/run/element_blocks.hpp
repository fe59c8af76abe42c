// SPDX-License-Identifier: Apache-2.0
// Cuts a tensor into blocks that fit the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tensorcast/dtype.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// Bytes of the wider type of a block. From 128 KiB to 4 MiB the processor time is the same; fewer hand-overs between
// threads are faster on a busy machine, and blocks above 1 MiB leave the second-level cache. If converting is slower
// than moving bytes, a block must be large enough for all threads.
inline constexpr std::size_t block_bytes = std::size_t{1} << 20;
inline constexpr std::size_t threaded_block_bytes = std::size_t{8} << 20;

// `scaled`: some tensor has a scale.
[[nodiscard]] inline std::size_t block_bytes_for(const ConversionRun& run, bool scaled) noexcept {
  const bool slow = run.report || run.on_loss != OnLoss::ignore || run.refuse_wrap || scaled ||
                    run.options.out_of_range == OutOfRange::error || run.options.invalid == Invalid::error;
  return slow && run.execution.threads != 1 ? threaded_block_bytes : block_bytes;
}

// Returns the elements per block: a multiple of 64, so that blocks of any type begin at a whole byte.
[[nodiscard]] inline std::uint64_t block_elements(DType from, DType to, std::size_t bytes) noexcept {
  return bytes * 8 / static_cast<std::size_t>(std::max(bit_width(from), bit_width(to))) / 64 * 64;
}

}  // namespace tensorcast::file_conversion
