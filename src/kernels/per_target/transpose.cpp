// SPDX-License-Identifier: Apache-2.0
// Transposes tiles, as cast/transpose.hpp does, in wider registers: as many rows at once as a register has elements, so
// that it becomes a piece of a row of the result.
#include <algorithm>
#include <cstring>

#include "kernels/per_target/functions.hpp"
#include "kernels/simd/lanes.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_TARGET_LEVEL >= 1

namespace {

// Groups of `size` registers have the columns of as many rows; two groups become one, until one has all.
template <int item_bytes, int size, int edge>
SIMD_INLINE void merge_groups(U8 (&rows)[edge]) {
  if constexpr (size < edge) {
    U8 merged[edge];
#pragma GCC unroll 8
    for (int i = 0; i < edge / 2; ++i) {
      const int from = i / size * 2 * size + i % size;
      merged[2 * i] = low_units<size * item_bytes>(rows[from], rows[from + size]);
      merged[2 * i + 1] = high_units<size * item_bytes>(rows[from], rows[from + size]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < edge; ++i) rows[i] = merged[i];
    merge_groups<item_bytes, 2 * size, edge>(rows);
  }
}

// Of a row that is copied before its registers are filled: rows that are a power of two apart share one set of the
// first-level cache, which each line would leave before its second use. An odd number of lines apart they do not.
constexpr std::size_t chunk_bytes = 256, chunk_pitch = chunk_bytes + line_bytes;

template <int item_bytes>
SIMD_INLINE void transpose_chunk(const std::byte* chunk, std::size_t bytes, std::byte* dst, std::ptrdiff_t dst_pitch) {
  constexpr int edge = lane_bytes / item_bytes;  // rows and columns of a lane
  for (std::size_t at = 0; at < bytes; at += lane_bytes, dst += edge * dst_pitch) {
    U8 rows[edge];
#pragma GCC unroll 16
    for (int i = 0; i < edge; ++i) rows[i] = load_lanes(chunk + at + i * chunk_pitch, edge * chunk_pitch);
    merge_groups<item_bytes, 1, edge>(rows);
#pragma GCC unroll 16
    for (int i = 0; i < edge; ++i) store(dst + i * dst_pitch, rows[i]);
  }
}

template <int item_bytes>
[[gnu::noinline]] void transpose_items(const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows,
                                       std::size_t columns, std::byte* dst, std::ptrdiff_t dst_pitch) {
  constexpr std::size_t rows_at_once = kRegisterBytes / item_bytes;
  alignas(line_bytes) std::byte chunk[rows_at_once * chunk_pitch];
  const std::size_t whole_rows = rows / rows_at_once * rows_at_once;
  const std::size_t whole_bytes = columns * item_bytes / kRegisterBytes * kRegisterBytes;
  for (std::size_t row = 0; row < whole_rows; row += rows_at_once) {
    const std::byte* const from = src + static_cast<std::ptrdiff_t>(row) * src_pitch;
    for (std::size_t first = 0; first < whole_bytes; first += chunk_bytes) {
      const std::size_t bytes = std::min(chunk_bytes, whole_bytes - first);
      for (std::size_t i = 0; i < rows_at_once; ++i) {
        const std::byte* const run = from + static_cast<std::ptrdiff_t>(i) * src_pitch + first;
        for (std::size_t at = 0; at < bytes; at += kRegisterBytes)
          store(chunk + i * chunk_pitch + at, load<U8>(run + at));
      }
      std::byte* const to = dst + static_cast<std::ptrdiff_t>(first / item_bytes) * dst_pitch + row * item_bytes;
      transpose_chunk<item_bytes>(chunk, bytes, to, dst_pitch);
    }
  }
  for (std::size_t i = 0; i < rows; ++i) {
    const std::byte* const from = src + static_cast<std::ptrdiff_t>(i) * src_pitch;
    for (std::size_t j = i < whole_rows ? whole_bytes / item_bytes : 0; j < columns; ++j) {
      std::memcpy(dst + static_cast<std::ptrdiff_t>(j) * dst_pitch + i * item_bytes, from + j * item_bytes, item_bytes);
    }
  }
}

}  // namespace

void transpose(std::size_t item_bytes, const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows,
               std::size_t columns, std::byte* dst, std::ptrdiff_t dst_pitch) noexcept {
  const auto of_items = item_bytes == 1   ? transpose_items<1>
                        : item_bytes == 2 ? transpose_items<2>
                        : item_bytes == 4 ? transpose_items<4>
                                          : transpose_items<8>;
  of_items(src, src_pitch, rows, columns, dst, dst_pitch);
}

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
