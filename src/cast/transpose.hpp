// SPDX-License-Identifier: Apache-2.0
// Transposes tiles of elements of 1, 2, 4 or 8 bytes: as many rows of 16 bytes as these have elements at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "dtype/prefetch.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// `rows_are_far`: those of the source are on pages of their own, and fetched ahead.
template <class Element, bool rows_are_far = true>
class Transposer {
  static constexpr std::size_t edge = 16 / sizeof(Element);
  static constexpr std::size_t ahead = 4 * edge;  // rows; no CPU foresees those that are on other pages

  template <std::size_t bytes>
  using Lane = std::conditional_t<
      bytes == 1, std::uint8_t,
      std::conditional_t<bytes == 2, std::uint16_t, std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;
  template <std::size_t bytes>
  struct Lanes {
    typedef Lane<bytes> Type __attribute__((vector_size(16)));
  };
  using Row = typename Lanes<8>::Type;

  // The lanes of two rows in turns, from the middle on if `half` is 1.
  template <std::size_t bytes, int half, std::size_t... i>
  static Row interleaved(Row a, Row b, std::index_sequence<i...>) noexcept {
    using Type = typename Lanes<bytes>::Type;
    constexpr std::size_t lanes = sizeof...(i);
    return (Row)__builtin_shufflevector((Type)a, (Type)b,
                                        static_cast<int>(i / 2 + i % 2 * lanes + half * lanes / 2)...);
  }

  // Groups of `size` registers have the columns of as many rows; two groups become one, until one has all.
  template <std::size_t size>
  static void merge_groups(Row (&rows)[edge]) noexcept {
    if constexpr (size < edge) {
      constexpr std::size_t bytes = size * sizeof(Element);
      constexpr auto lanes = std::make_index_sequence<16 / bytes>{};
      Row merged[edge];
      for (std::size_t i = 0; i < edge / 2; ++i) {
        const std::size_t from = i / size * 2 * size + i % size;
        merged[2 * i] = interleaved<bytes, 0>(rows[from], rows[from + size], lanes);
        merged[2 * i + 1] = interleaved<bytes, 1>(rows[from], rows[from + size], lanes);
      }
      for (std::size_t i = 0; i < edge; ++i) rows[i] = merged[i];
      merge_groups<2 * size>(rows);
    }
  }

 public:
  // dst[j][i] = src[i][j] for `rows` x `columns` elements, neighbours in a row; from row to row it is so many bytes.
  // Any alignment.
  static void run(const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows, std::size_t columns, std::byte* dst,
                  std::int64_t dst_pitch) noexcept {
    const auto from = [&](std::size_t i, std::size_t j) {
      return src + static_cast<std::ptrdiff_t>(i) * src_pitch + static_cast<std::ptrdiff_t>(j * sizeof(Element));
    };
    const auto to = [&](std::size_t i, std::size_t j) {
      return dst + static_cast<std::int64_t>(j) * dst_pitch + static_cast<std::int64_t>(i * sizeof(Element));
    };
    const std::size_t whole_rows = rows / edge * edge, whole_columns = columns / edge * edge;
    // Along the rows of the source, of which each may be on a page of its own.
    for (std::size_t i = 0; i < whole_rows; i += edge) {
      for (std::size_t row = i + ahead; rows_are_far && row < std::min(i + ahead + edge, rows); ++row) {
        prefetch(from(row, 0), columns * sizeof(Element));
      }
      for (std::size_t j = 0; j < whole_columns; j += edge) {
        transpose(from(i, j), src_pitch, to(i, j), dst_pitch);
      }
    }
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t first = j < whole_columns ? whole_rows : 0;
      for (std::size_t i = first; i < rows; ++i) {
        std::memcpy(to(i, j), from(i, j), sizeof(Element));
      }
    }
  }

 private:
  static void transpose(const std::byte* src, std::ptrdiff_t src_pitch, std::byte* dst,
                        std::int64_t dst_pitch) noexcept {
    Row rows[edge];
    for (std::size_t i = 0; i < edge; ++i)
      std::memcpy(&rows[i], src + static_cast<std::ptrdiff_t>(i) * src_pitch, sizeof(Row));
    merge_groups<1>(rows);
    for (std::size_t i = 0; i < edge; ++i) {
      std::memcpy(dst + static_cast<std::int64_t>(i) * dst_pitch, &rows[i], sizeof(Row));
    }
  }
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
