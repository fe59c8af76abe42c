// SPDX-License-Identifier: Apache-2.0
// Tiles of GPTQ's and AWQ's codes, transposed: rows of the weight as streams of codes, whose scales follow each other.
#pragma once

#include <cstddef>
#include <vector>

#include "block/decode/row_reader.hpp"

namespace tensorcast::block {

// Transposes packed codes, which is cheaper than to transpose numbers: words or bytes of them, never single nibbles. A
// row of the weight then has scales of long runs, as other formats have.
class TransposedTile {
 public:
  static constexpr std::size_t rows = 256;    // of a weight, at most
  static constexpr std::size_t row_unit = 8;  // the first row of a tile is a multiple

  // Reports whether codes, scales and groups are of a kind that tiles have.
  [[nodiscard]] static bool can_transpose(const Checked& checked) noexcept;

  // Precondition: can_transpose(). The tensor of `checked` outlives the tile.
  // `to`: as in RowReader::read().
  TransposedTile(const Checked& checked, DType to);
  TransposedTile(const TransposedTile&) = delete;
  TransposedTile& operator=(const TransposedTile&) = delete;

  // Takes columns [column, column + the result) of rows [row, row + count) of the weight, `count` at most
  // TransposedTile::rows. Precondition: `row` is a multiple of row_unit; `column` is 0 or the end of another tile.
  std::size_t load(std::size_t matrix, std::size_t row, std::size_t count, std::size_t column);

  // The numbers of a row of the tile, as RowReader::read() gives them.
  void read(std::size_t row, std::byte* out);
  // The same with RowReader::write().
  bool write(std::size_t row, std::byte* out);

 private:
  // The row of tile_ that has the row `row` of the weight.
  [[nodiscard]] std::size_t place(std::size_t row) const noexcept;

  const Checked& from_;
  DType to_;
  std::size_t depth_;  // columns of the weight in a tile
  std::vector<std::byte> codes_;
  std::vector<float> scales_, zeros_, biases_;
  BlockTensor tensor_;
  Checked tile_;
  RowReader reader_;
};

}  // namespace tensorcast::block
