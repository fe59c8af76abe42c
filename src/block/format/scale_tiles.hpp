// SPDX-License-Identifier: Apache-2.0
// Scales as tensor cores read them: in tiles of 128 rows and 4 columns, whose rows r, r + 32, r + 64 and r + 96 are
// neighbours. A matrix of scales is rows of whole tiles.
#pragma once

#include <cstddef>

#include "dtype/ceil_div.hpp"

namespace tensorcast::block {

inline constexpr std::size_t tile_rows = 128, tile_columns = 4, tile_scales = tile_rows * tile_columns;

// Scales of rows of tiles that have these, with their padding.
[[nodiscard]] constexpr std::size_t scales_in_tiles(std::size_t rows, std::size_t columns) noexcept {
  return ceil_div(rows, tile_rows) * ceil_div(columns, tile_columns) * tile_scales;
}

// Where a scale lies in a matrix of `columns` of them.
[[nodiscard]] constexpr std::size_t place_in_tiles(std::size_t row, std::size_t column, std::size_t columns) noexcept {
  const std::size_t tile = row / tile_rows * ceil_div(columns, tile_columns) + column / tile_columns;
  const std::size_t r = row % tile_rows;
  return tile * tile_scales + r % 32 * 16 + r / 32 * tile_columns + column % tile_columns;
}

}  // namespace tensorcast::block
