// SPDX-License-Identifier: Apache-2.0
#include "block/decode/transposed_tile.hpp"

#include <algorithm>
#include <array>

#include "cast/transpose.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t word_bits = 32, most_depth = RowReader::max_elements;
// Rows of a power of two would fall on the same lines of the cache.
constexpr std::size_t code_stride = most_depth + 64;

bool is_awq(const Checked& checked) noexcept { return checked.codes.packing == BlockPacking::awq; }

}  // namespace

bool TransposedTile::can_transpose(const Checked& checked) noexcept {
  const bool are_words = checked.codes.packing == BlockPacking::words_down || is_awq(checked);
  // A tile begins at a whole word of the codes of its rows.
  const bool are_whole = checked.block_rows % word_bits == 0 || checked.block_rows >= checked.codes.rows;
  return are_words && are_whole && checked.block_columns == 1 && checked.group_of_row.empty() &&
         checked.globals.empty();
}

TransposedTile::TransposedTile(const Checked& checked, DType to)
    : from_(checked),
      to_(to),
      depth_(checked.block_rows > most_depth ? most_depth : most_depth / checked.block_rows * checked.block_rows),
      codes_(rows * code_stride),
      tensor_(*checked.tensor),
      tile_([&] {
        tensor_.coding.packing = is_awq(checked) ? BlockPacking::row_pairs : BlockPacking::stream;
        Checked tile;
        tile.tensor = &tensor_;
        tile.codes = checked.codes;
        tile.codes.packing = tensor_.coding.packing;
        tile.codes.columns = std::min(depth_, checked.codes.rows);
        tile.codes.row_bytes = code_stride;
        tile.codes.matrix_bytes = 0;
        tile.codes.data = codes_.data();
        tile.block_columns = checked.block_rows;
        return tile;
      }()),
      reader_(tile_) {}

std::size_t TransposedTile::place(std::size_t row) const noexcept {
  // The two columns of a byte of AWQ, 0 and 2, 4 and 6, 1 and 3, 5 and 7, become neighbours.
  return is_awq(from_) ? row / 8 * 8 + row % 2 * 4 + row % 8 / 2 : row;
}

std::size_t TransposedTile::load(std::size_t matrix, std::size_t row, std::size_t count, std::size_t column) {
  const std::size_t group = from_.block_rows;
  const std::size_t left = from_.codes.rows - column;
  const std::size_t depth = std::min({depth_, left, group > depth_ ? group - column % group : depth_});
  const CodeMatrices& codes = from_.codes;
  const std::byte* const matrix_codes = codes.data + matrix * codes.matrix_bytes;
  if (is_awq(from_)) {
    const std::size_t bytes = (count + 7) / 8 * sizeof(std::uint32_t);
    Transposer<std::uint8_t>::run(matrix_codes + column * codes.row_bytes + row / 2, codes.row_bytes, depth, bytes,
                                  codes_.data(), code_stride);
  } else {
    constexpr std::size_t word = sizeof(std::uint32_t);
    const auto width = static_cast<std::size_t>(codes.bits);
    const std::size_t words = (depth * width + word_bits - 1) / word_bits;
    Transposer<std::uint32_t>::run(matrix_codes + column * width / word_bits * codes.row_bytes + row * word,
                                   codes.row_bytes, words, count, codes_.data(), code_stride);
  }
  const std::size_t first = column / group, blocks = (depth - 1) / group + 1;
  const auto transposed = [&](const ScaleGrid& grid, std::vector<float>& numbers) {
    if (grid.empty()) return ScaleGrid();
    numbers.resize(rows * blocks);
    std::array<float, rows> of_rows;
    for (std::size_t i = 0; i < blocks; ++i) {
      grid.read(matrix, first + i, row, std::span(of_rows).first(count));
      for (std::size_t j = 0; j < count; ++j) numbers[place(j) * blocks + i] = of_rows[j];
    }
    return ScaleGrid::of(numbers, {1, rows, blocks});
  };
  tile_.scales = transposed(from_.scales, scales_);
  tile_.zeros = transposed(from_.zeros, zeros_);
  tile_.biases = transposed(from_.biases, biases_);
  tile_.codes.columns = depth;
  reader_.restart();
  return depth;
}

bool TransposedTile::write(std::size_t row, std::byte* out) {
  return reader_.write(0, place(row), 0, tile_.codes.columns, to_, out);
}

void TransposedTile::read(std::size_t row, std::byte* out) {
  reader_.read(0, place(row), 0, tile_.codes.columns, to_, out);
}

}  // namespace tensorcast::block
