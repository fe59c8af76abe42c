// SPDX-License-Identifier: Apache-2.0
// What one task quantizes: where its numbers come from and its results go, and buffers between the steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "block/encode/weight_layout.hpp"
#include "block/recipe/scale_rule.hpp"
#include "kernels/runs.hpp"

namespace tensorcast::block {

// Whole blocks of rows that share scales.
struct Stretch {
  std::size_t row = 0, rows = 0;
  std::size_t column = 0, columns = 0;
};

struct QuantizerWork {
  const WeightLayout* layout = nullptr;
  const std::byte* numbers = nullptr;  // of row `first`
  std::size_t first = 0;
  std::size_t end = 0;                           // of the rows that this thread goes on with
  std::size_t column_begin = 0, column_end = 0;  // of its columns
  QuantizedRows out = {};
  bool has_nonzero = false;
  std::vector<float> buffer = {};
  // One entry for each block of a stretch; padded to a multiple of what a kernel reads at once.
  std::vector<std::uint32_t> largest = {};
  std::vector<float> low = {}, high = {};
  std::vector<Extent> extents = {};
  std::vector<BlockScale> scales = {};
  std::vector<std::uint8_t> scale_codes = {};
  std::vector<Operand> operands = {};
  bool are_ordinary = false;              // scales, which have codes
  bool are_finite = false;                // numbers whose scales are not ordinary
  std::vector<std::size_t> cleared = {};  // runs whose codes are 0
  std::vector<kernels::MantissaTable> tables = {};

  [[nodiscard]] std::size_t number_at(std::size_t row, std::size_t column) const noexcept {
    return (row - first) * layout->columns + column;
  }
  [[nodiscard]] std::byte* codes_of(std::size_t row) const noexcept {
    return out.codes + (row - first) * layout->codes_row_bytes;
  }
  // Of the i-th block of a stretch, row by row.
  [[nodiscard]] std::vector<float> block(const Stretch& stretch, std::size_t i) const {
    const std::size_t column = stretch.column + i * layout->block_columns;
    const std::size_t width = std::min(layout->block_columns, layout->columns - column);
    std::vector<float> made(stretch.rows * width);
    for (std::size_t row = 0; row < stretch.rows; ++row) {
      layout->numbers.load(numbers, number_at(stretch.row + row, column), width, &made[row * width]);
    }
    return made;
  }
  // Distance in numbers to the same place of the next stretch; 0: there is none.
  [[nodiscard]] std::size_t steps_to_next(const Stretch& stretch) const noexcept {
    if (stretch.column + stretch.columns < column_end) return stretch.columns;
    const bool is_last = stretch.row + stretch.rows >= end;
    return is_last ? 0 : stretch.rows * layout->columns - (stretch.column - column_begin);
  }
  // The same in bytes, for kernels that prefetch; 0: not known.
  [[nodiscard]] std::size_t bytes_to_next(const Stretch& stretch) const noexcept {
    return layout->numbers.are_in_place() ? layout->numbers.bytes(steps_to_next(stretch)) : 0;
  }
  // Bytes of the next stretch that are prefetched while this one is measured: a quarter, as measuring takes a quarter
  // of the time.
  [[nodiscard]] std::size_t begun_bytes(std::size_t ahead, std::size_t count) const noexcept {
    constexpr std::size_t quarters = 4, line = 64;
    const std::size_t bytes = layout->numbers.bytes(count) / quarters;
    return ahead != 0 && bytes % line == 0 ? bytes : 0;
  }

  // Calls part(row, column, numbers, count) for each piece of a row of the stretch.
  template <class Part>
  void for_each_part(const Stretch& stretch, const Part& part) {
    const std::size_t piece = layout->numbers.piece();
    for (std::size_t row = stretch.row; row < stretch.row + stretch.rows; ++row) {
      for (std::size_t done = 0; done < stretch.columns; done += piece) {
        const std::size_t n = std::min(piece, stretch.columns - done), column = stretch.column + done;
        part(row, column, layout->numbers.at(numbers, number_at(row, column), n, buffer), n);
      }
    }
  }
};

}  // namespace tensorcast::block
