// What the parts of Quantizer share.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <vector>

#include "block/quantizer.hpp"
#include "block/scale_rule.hpp"
#include "kernels/runs.hpp"

namespace tensorcast::block {

// Of one task: where numbers come from and results go, and buffers.
struct Quantizer::Work {
  const std::byte* numbers = nullptr;  // of row `first`
  std::size_t first = 0;
  std::size_t end = 0;                           // of the rows that this thread goes on with
  std::size_t column_begin = 0, column_end = 0;  // of its columns
  QuantizedRows out = {};
  bool has_nonzero = false;
  std::vector<float> buffer = {};
  // Of the runs of a stretch, and of those that a step has beyond it.
  std::vector<std::uint32_t> largest = {};
  std::vector<float> low = {}, high = {};
  std::vector<Extent> extents = {};
  std::vector<BlockScale> scales = {};
  std::vector<std::uint8_t> scale_codes = {};
  std::vector<Operand> operands = {};
  bool are_ordinary = false;              // scales, which have codes
  std::vector<std::size_t> cleared = {};  // runs whose codes are 0
  std::vector<kernels::MantissaTable> tables = {};
};

// Whole blocks of rows that share scales.
struct Quantizer::Stretch {
  std::size_t row = 0, rows = 0;
  std::size_t column = 0, columns = 0;
};

}  // namespace tensorcast::block
