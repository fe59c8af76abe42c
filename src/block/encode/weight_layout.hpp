// SPDX-License-Identifier: Apache-2.0
// What a recipe makes of a weight as far as its shape and options tell: the sizes of codes and scales, and where each
// of them lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "block/encode/weight_numbers.hpp"
#include "block/recipe/recipe.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

// Where pieces of a weight's rows are written.
struct QuantizedRows {
  std::byte* codes = nullptr;
  std::byte* scales = nullptr;  // of the first block of rows, or the one of the weight
  std::int8_t* zero_points = nullptr;
  bool bypasses_cache = false;  // writes codes around the cache; `codes` must be aligned to 64 bytes
  bool are_all = false;         // they are the whole weight, and tell whether it is zero
};

struct WeightLayout;
using SharedLayout = std::shared_ptr<const WeightLayout>;

struct WeightLayout {
  // `gguf`: blocks of GGUF, whatever the scheme's other layouts. Errors: as quantize(), except of elements.
  [[nodiscard]] static Result<SharedLayout> make(DType weights, const Shape& shape, std::string_view scheme,
                                                 const QuantizeOptions& options, GgufBlock gguf = GgufBlock::none);

  // Reports whether scales depend on the largest magnitude of the whole weight.
  [[nodiscard]] bool needs_maximum() const noexcept { return is_per_tensor() || recipe->global != nullptr; }
  [[nodiscard]] bool is_gguf() const noexcept { return recipe->gguf != GgufBlock::none; }
  [[nodiscard]] bool is_per_tensor() const noexcept { return !is_gguf() && tensor.block_rows == 0; }
  [[nodiscard]] bool has_zero_points() const noexcept { return scale != nullptr && scale == recipe->asymmetric; }
  // Scales, and zero points, before this row.
  [[nodiscard]] std::size_t scales_before(std::size_t row) const noexcept;
  // Those of rows [first, first + count): 1 of a weight that has one.
  [[nodiscard]] std::size_t scale_count(std::size_t first, std::size_t count) const noexcept;
  // Rows that share scales, and the first of them: such bands begin anew with each matrix.
  [[nodiscard]] std::size_t band_of(std::size_t row) const noexcept;
  [[nodiscard]] std::size_t row_of(std::size_t band) const noexcept;
  // The importance of the columns of a row from `column` on; null: none.
  [[nodiscard]] const float* importance_of(std::size_t row, std::size_t column) const noexcept;
  // Gives the vectors of `out` the sizes of rows [first, first + count).
  [[nodiscard]] QuantizedRows room_in(QuantizedTensor& out, std::size_t first, std::size_t count) const;
  // Reports whether stores of the whole weight's codes should bypass the cache: they are many, and may.
  [[nodiscard]] bool results_bypass_cache() const noexcept;

  const Recipe* recipe = nullptr;
  ScaleRule scale = nullptr;  // of the recipe; null: GGUF's blocks
  WeightNumbers numbers;
  QuantizedTensor tensor;   // the result without its bytes and its scale
  bool is_default = false;  // no recipe was named: blocks of a weight of zeros have scales of 1
  bool is_power_of_two = false;
  bool is_searched = false;  // by Clip::mse
  std::vector<float> importance;
  std::size_t rows = 0;  // of all matrices
  std::size_t matrix_rows = 1;
  std::size_t columns = 1;
  std::size_t band_rows = 1;  // rows that share scales
  std::size_t block_columns = 1;
  std::size_t grid_columns = 1;
  unsigned run_shift = 0;  // of blocks; a row that is one block has shift_of_all
  std::size_t codes_row_bytes = 0;

 private:
  [[nodiscard]] Result<void> take_blocks(std::string_view scheme, const QuantizeOptions& options);
  [[nodiscard]] Result<void> take_search(std::string_view scheme, const QuantizeOptions& options);
  [[nodiscard]] Result<void> lay_out_gguf();
  void lay_out_codes();
};

// Errors: invalid_argument: `maximum` is NaN, infinite or negative.
[[nodiscard]] Result<void> check_maximum(const QuantizeOptions& options);
// The `maximum` of the options, which have one, in the type that the weights are rounded to first: it is the largest
// magnitude of the rounded weights, as rounding keeps their order.
[[nodiscard]] float maximum_of(const QuantizeOptions& options) noexcept;

// Scales of 1, in their type.
void set_unit_scales(DType type, std::span<std::byte> scales) noexcept;

}  // namespace tensorcast::block
