// SPDX-License-Identifier: Apache-2.0
// Rows of codes as numbers, with their scales.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "block/decode/checked.hpp"
#include "block/decode/product_tables.hpp"
#include "block/format/code_matrix.hpp"
#include "kernels/ops.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

// Keeps the scales of a row for the next row of the same blocks.
class RowReader {
 public:
  static constexpr std::size_t max_elements = 2048;  // codes, numbers and results stay in the first-level cache

  explicit RowReader(const Checked& checked);

  // Reads `count` codes, at most max_elements, of a row from `column` on, a multiple of CodeMatrices::alignment.
  // `out` has room for `count` rounded up to a multiple of kernels::run_step.
  void read(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count, DType to, std::byte* out);

  // The same with stores that bypass the cache. Returns false if it cannot, and `out` is unspecified then.
  // Preconditions: `out` is a line of the cache, and `count` a multiple of kernels::run_step.
  [[nodiscard]] bool write(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count, DType to,
                           std::byte* out);

  // Codes and scales have changed.
  void restart() noexcept { is_loaded_ = false; }

 private:
  void read_gguf(const std::byte* blocks, std::size_t count, DType to, std::byte* out);
  [[nodiscard]] bool decode_gguf(const std::byte* blocks, std::size_t count, DType to, std::byte* out,
                                 bool bypasses_cache);
  [[nodiscard]] DType read_numbers(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count);
  // Tables of products, where they are faster.
  void choose_products(const Checked& checked, bool is_table);
  void load_scales(std::size_t matrix, std::size_t grid_row, std::size_t column, std::size_t count);
  void scale(DType from, std::size_t column, std::size_t count, DType to, std::byte* out);
  [[nodiscard]] bool add_powers(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count,
                                std::byte* out, bool bypasses_cache);
  [[nodiscard]] bool look_up_products(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count,
                                      std::byte* out, bool bypasses_cache);
  void look_up_nibbles(std::size_t matrix, std::size_t row, std::size_t column, std::size_t count, DType to,
                       std::byte* out, bool bypasses_cache);
  [[nodiscard]] bool has_scale_codes() const noexcept;
  void choose_gguf_products();
  void unpack_filled(unsigned byte);
  void scales_of_gguf_codes(std::span<float, 256> scales);
  [[nodiscard]] const std::uint16_t* tables_of_codes(std::size_t matrix, DType to);
  void apply_global(std::size_t matrix, std::span<float> scales) const noexcept;
  void expand(std::size_t column, std::size_t count);
  [[nodiscard]] kernels::RunParameters parameters(std::size_t block) const noexcept;

  // Numbers of codes, in one of three types. Zeros fill the last step.
  union Numbers {
    float floats[max_elements];
    std::uint16_t halves[max_elements];  // bfloat16
    std::int8_t integers[max_elements];
    kernels::GgufRuns gguf;
  };

  const Checked& checked_;
  const kernels::Ops& ops_ = kernels::ops_of(active_target());
  bool is_loaded_ = false;
  bool has_zeros_ = false;
  bool are_powers_ = false;  // scales of runs of 32: of two, and no element becomes subnormal or too large
  std::size_t matrix_ = 0, grid_row_ = 0, first_block_ = 0, blocks_ = 0;
  std::vector<float> scales_, zeros_, biases_;  // of blocks, and kernels::run_step more
  std::array<std::vector<float>, 3> each_;      // of elements
  CodeMatrices::NibblePairs pairs_;             // of a table
  Float8Products float8_;
  bool adds_powers_ = false;  // to the only one of float8_
  NibbleProducts nibbles_;
  kernels::DecodeGgufFn decode_ = nullptr;        // of GGUF, to bfloat16
  kernels::UnpackGgufFn unpack_codes_ = nullptr;  // of GGUF, for nibbles_
  std::vector<std::byte> scale_codes_;            // if scales have codes of a byte, of which each has a table:
  const std::uint16_t* code_tables_ = nullptr;    // for code_tables_to_ and the global scale of code_tables_matrix_
  DType code_tables_to_ = DType::undefined;
  std::size_t code_tables_matrix_ = 0;
  alignas(64) Numbers numbers_ = {};
};

}  // namespace tensorcast::block
