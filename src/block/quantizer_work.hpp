// SPDX-License-Identifier: Apache-2.0
// What the parts of Quantizer share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "block/quantizer.hpp"
#include "block/scale_rule.hpp"
#include "block/tuning.hpp"
#include "kernels/runs.hpp"

namespace tensorcast::block {

inline std::size_t Quantizer::part_size() const noexcept {
  return read_ == DType::bfloat16 ? piece_numbers : piece_numbers / 2;
}

// Of one task: where numbers come from and results go, and buffers.
struct Quantizer::Work {
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
};

// Whole blocks of rows that share scales.
struct Quantizer::Stretch {
  std::size_t row = 0, rows = 0;
  std::size_t column = 0, columns = 0;
};

// Calls part(row, column, numbers, count) for each piece of at most part_size() numbers of a row of the stretch.
template <class Part>
void Quantizer::for_each_part(const Stretch& stretch, Work& work, const Part& part) const {
  for (std::size_t row = stretch.row; row < stretch.row + stretch.rows; ++row) {
    for (std::size_t done = 0; done < stretch.columns; done += part_size()) {
      const std::size_t n = std::min(part_size(), stretch.columns - done), column = stretch.column + done;
      part(row, column, numbers_at(work.numbers, (row - work.first) * columns_ + column, n, work.buffer), n);
    }
  }
}

}  // namespace tensorcast::block
