// SPDX-License-Identifier: Apache-2.0
// Scales, zero points and biases: a number for each block.
#pragma once

#include <cstddef>
#include <span>

#include "block/format/code_matrix.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

// Blocks of all matrices of codes.
struct GridSize {
  std::size_t matrices = 1;
  std::size_t rows = 1;
  std::size_t columns = 1;
};

class ScaleGrid {
 public:
  ScaleGrid() = default;
  // Borrows the numbers of all blocks.
  [[nodiscard]] static ScaleGrid of(std::span<const float> numbers, const GridSize& size) noexcept;

  [[nodiscard]] bool empty() const noexcept { return source_ == Source::none; }
  [[nodiscard]] bool is_swizzled() const noexcept { return source_ == Source::swizzled; }
  [[nodiscard]] bool is_packed() const noexcept { return source_ == Source::packed; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  // The numbers of blocks [column, column + out.size()) of a row: scales or biases, or zero points with what is added.
  void read(std::size_t matrix, std::size_t row, std::size_t column, std::span<float> out) const noexcept;

  // Reports whether scales are codes of a byte, which read_codes() copies and numbers_of_codes() gives the numbers of.
  [[nodiscard]] bool has_byte_codes() const noexcept;
  void read_codes(std::size_t matrix, std::size_t row, std::size_t column, std::span<std::byte> out) const noexcept;
  // Where the code of a block is, if those of a row follow each other, and rows do; else null.
  [[nodiscard]] const std::byte* place_of_code(std::size_t matrix, std::size_t row, std::size_t column) const noexcept;
  void numbers_of_codes(std::span<float, 256> out) const noexcept;

 private:
  friend Result<ScaleGrid> scale_grid(const TensorView&, const GridSize&, DType, bool, const char*);
  friend Result<ScaleGrid> zero_grid(const TensorView&, const GridSize&, const BlockCoding&);

  enum class Source : std::uint8_t { none, one, dense, swizzled, packed };

  void read_packed(std::size_t matrix, std::size_t row, std::size_t column, std::span<float> out) const noexcept;

  Source source_ = Source::none;
  DType dtype_ = DType::undefined;
  GridSize size_;
  const std::byte* data_ = nullptr;
  CodeMatrices codes_;  // if packed
  float added_ = 0;     // to each number
  // GPTQ version 1 subtracted 1 from all zero points of a word at once: all ones means 0, which borrowed from the next.
  bool adds_to_words_ = false;
};

// `read_as`: the type of scales that are stored as uint8; undefined: none. Errors: invalid_argument.
[[nodiscard]] Result<ScaleGrid> scale_grid(const TensorView& view, const GridSize& size, DType read_as, bool swizzled,
                                           const char* what);
[[nodiscard]] Result<ScaleGrid> zero_grid(const TensorView& view, const GridSize& size, const BlockCoding& coding);

}  // namespace tensorcast::block
