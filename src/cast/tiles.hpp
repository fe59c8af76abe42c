// SPDX-License-Identifier: Apache-2.0
// Moves tiles of matrices whose rows are far apart in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cast/transpose.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

inline std::uint8_t swap_bytes(std::uint8_t item) { return item; }
inline std::uint16_t swap_bytes(std::uint16_t item) { return __builtin_bswap16(item); }
inline std::uint32_t swap_bytes(std::uint32_t item) { return __builtin_bswap32(item); }
inline std::uint64_t swap_bytes(std::uint64_t item) { return __builtin_bswap64(item); }

// Calls `function` with an unsigned integer of so many bytes: 1, 2, 4 or 8.
template <class Function>
void with_item(std::size_t bytes, Function function) {
  switch (bytes) {
    case 1:
      return function(std::uint8_t{});
    case 2:
      return function(std::uint16_t{});
    case 4:
      return function(std::uint32_t{});
    default:
      return function(std::uint64_t{});
  }
}

// Copies the tile `rows` x `columns` of an array to dense memory, rows first. The array is (nearly) dense along rows,
// so each of its cache lines is read once.
template <class Item, bool swapped>
void gather_tile(const std::byte* src, std::int64_t row_stride, std::int64_t column_stride, std::byte* dst,
                 std::size_t rows, std::size_t columns) {
  constexpr std::size_t line = 64 / sizeof(Item);
  const auto copy = [&](const std::byte* from, std::size_t row, std::size_t column) {
    Item item;
    std::memcpy(&item, from + static_cast<std::int64_t>(row) * row_stride, sizeof item);
    if constexpr (swapped) item = swap_bytes(item);
    std::memcpy(dst + (row * columns + column) * sizeof item, &item, sizeof item);
  };
  for (std::size_t first = 0; first < rows; first += line) {
    const std::size_t end = std::min(rows, first + line);
    const std::byte* from = src;
    for (std::size_t column = 0; column < columns; ++column, from += column_stride) {
      if (end - first == line) {
        for (std::size_t row = 0; row < line; ++row) copy(from, first + row, column);
      } else {
        for (std::size_t row = first; row < end; ++row) copy(from, row, column);
      }
    }
  }
}

template <class Item>
void gather_tile(const std::byte* src, std::int64_t row_stride, std::int64_t column_stride, std::byte* dst,
                 std::size_t rows, std::size_t columns, bool swapped) {
  if (swapped) return gather_tile<Item, true>(src, row_stride, column_stride, dst, rows, columns);
  gather_tile<Item, false>(src, row_stride, column_stride, dst, rows, columns);
}

inline void gather_tile(const std::byte* src, std::int64_t row_stride, std::int64_t column_stride, std::byte* dst,
                        std::size_t rows, std::size_t columns, std::size_t item_bytes, bool swapped) {
  with_item(item_bytes, [&](auto item) {
    gather_tile<decltype(item)>(src, row_stride, column_stride, dst, rows, columns, swapped);
  });
}

// Transposes `rows` x `columns` elements, each row dense: element [row][column] of `src` becomes [column][row] of
// `dst`.
inline void transpose_tile(std::size_t item_bytes, const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows,
                           std::size_t columns, std::byte* dst, std::ptrdiff_t dst_pitch) noexcept {
  with_item(item_bytes,
            [&](auto item) { Transposer<decltype(item), false>::run(src, src_pitch, rows, columns, dst, dst_pitch); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
