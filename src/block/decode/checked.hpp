// SPDX-License-Identifier: Apache-2.0
// A weight in blocks whose arrays are checked against each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "block/format/code_matrix.hpp"
#include "block/format/scale_grid.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

// A tensor whose sizes fit each other.
struct Checked {
  CodeMatrices codes;
  bool transposed = false;
  std::size_t rows = 0;     // of a matrix of the weight
  std::size_t columns = 0;  // of the weight
  std::size_t block_rows = 1;
  std::size_t block_columns = 1;
  ScaleGrid scales, zeros, biases;
  std::vector<float> globals;  // one, or one for each matrix
  std::vector<std::int32_t> group_of_row;
  const BlockTensor* tensor = nullptr;

  [[nodiscard]] const BlockCoding& coding() const noexcept { return tensor->coding; }
  [[nodiscard]] std::size_t grid_row(std::size_t code_row) const noexcept {
    return group_of_row.empty() ? code_row / block_rows : static_cast<std::size_t>(group_of_row[code_row]);
  }
};

// Sets everything but the codes' data. Errors: as code_range() of all rows.
[[nodiscard]] Result<Checked> check(const BlockTensor& tensor);

// As code_range().
[[nodiscard]] Result<CodeRange> range_of(const Checked& checked, std::int64_t first, std::int64_t count);

// Errors: invalid_argument: the target shares memory with these codes, or with another array that rows are read from.
[[nodiscard]] Result<void> check_target_memory(const Checked& checked, std::span<const std::byte> codes,
                                               std::span<const std::byte> target);

}  // namespace tensorcast::block
