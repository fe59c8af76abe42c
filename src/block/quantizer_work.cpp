// SPDX-License-Identifier: Apache-2.0
#include "block/quantizer_work.hpp"

namespace tensorcast::block {

std::vector<float> QuantizerWork::block(const Stretch& stretch, std::size_t i) const {
  const std::size_t column = stretch.column + i * layout->block_columns;
  const std::size_t width = std::min(layout->block_columns, layout->columns - column);
  std::vector<float> made(stretch.rows * width);
  for (std::size_t row = 0; row < stretch.rows; ++row) {
    layout->numbers.load(numbers, number_at(stretch.row + row, column), width, &made[row * width]);
  }
  return made;
}

std::size_t QuantizerWork::steps_to_next(const Stretch& stretch) const noexcept {
  if (stretch.column + stretch.columns < column_end) return stretch.columns;
  const bool is_last = stretch.row + stretch.rows >= end;
  return is_last ? 0 : stretch.rows * layout->columns - (stretch.column - column_begin);
}

std::size_t QuantizerWork::begun_bytes(std::size_t ahead, std::size_t count) const noexcept {
  constexpr std::size_t quarters = 4, line = 64;
  const std::size_t bytes = layout->numbers.bytes(count) / quarters;
  return ahead != 0 && bytes % line == 0 ? bytes : 0;
}

}  // namespace tensorcast::block
