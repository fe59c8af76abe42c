// Turns tiles of 2 or 4 byte elements: eight or four rows of 16 bytes at once.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace tensorcast::block {

template <class Element>
class Transposer {
  static constexpr std::size_t edge = 16 / sizeof(Element);
  typedef Element Row __attribute__((vector_size(16)));

  // The elements of two rows in turns, from the middle on if `half` is 1.
  template <int half, std::size_t... i>
  static Row interleaved(Row a, Row b, std::index_sequence<i...>) noexcept {
    return __builtin_shufflevector(a, b,
                                   (static_cast<int>(i / 2 + i % 2 * edge) + half * static_cast<int>(edge / 2))...);
  }

 public:
  // dst[j][i] = src[i][j] for `rows` x `columns` elements; strides in elements. `dst` has any alignment.
  static void run(const Element* src, std::size_t src_stride, std::size_t rows, std::size_t columns, std::byte* dst,
                  std::size_t dst_stride) noexcept {
    const std::size_t whole_rows = rows / edge * edge, whole_columns = columns / edge * edge;
    for (std::size_t j = 0; j < whole_columns; j += edge) {
      for (std::size_t i = 0; i < whole_rows; i += edge) {
        turn(src + i * src_stride + j, src_stride, dst + (j * dst_stride + i) * sizeof(Element), dst_stride);
      }
    }
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t first = j < whole_columns ? whole_rows : 0;
      for (std::size_t i = first; i < rows; ++i) {
        std::memcpy(dst + (j * dst_stride + i) * sizeof(Element), src + i * src_stride + j, sizeof(Element));
      }
    }
  }

 private:
  // Interleaving the upper half of the rows with the lower one, log2(edge) times, turns them.
  static void turn(const Element* src, std::size_t src_stride, std::byte* dst, std::size_t dst_stride) noexcept {
    constexpr auto lanes = std::make_index_sequence<edge>{};
    Row rows[edge], mixed[edge];
    for (std::size_t i = 0; i < edge; ++i) std::memcpy(&rows[i], src + i * src_stride, sizeof(Row));
    for (std::size_t step = 1; step < edge; step *= 2) {
      for (std::size_t i = 0; i < edge / 2; ++i) {
        mixed[2 * i] = interleaved<0>(rows[i], rows[i + edge / 2], lanes);
        mixed[2 * i + 1] = interleaved<1>(rows[i], rows[i + edge / 2], lanes);
      }
      for (std::size_t i = 0; i < edge; ++i) rows[i] = mixed[i];
    }
    for (std::size_t i = 0; i < edge; ++i) {
      std::memcpy(dst + i * dst_stride * sizeof(Element), &rows[i], sizeof(Row));
    }
  }
};

}  // namespace tensorcast::block
