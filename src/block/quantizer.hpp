// SPDX-License-Identifier: Apache-2.0
// A weight's quantization, in pieces of whole rows: what quantize() runs over a tensor, and conversions of files over
// parts of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "block/clip_search.hpp"
#include "block/recipe.hpp"
#include "block/run_encoder.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

// Whether recipes compute in this type: float32, bfloat16 or float16.
[[nodiscard]] bool is_weights_type(DType dtype) noexcept;

// Where pieces of a weight's rows are written.
struct QuantizedRows {
  std::byte* codes = nullptr;
  std::byte* scales = nullptr;  // of the first block of rows, or the one of the weight
  std::int8_t* zero_points = nullptr;
  bool bypasses_cache = false;  // writes codes around the cache; `codes` must be aligned to 64 bytes
  bool are_all = false;         // they are the whole weight, and tell whether it is zero
};

class Quantizer {
 public:
  struct Work;  // of one task: quantizer_work.hpp

  // `gguf`: blocks of GGUF, whatever the scheme's other layouts. Errors: as quantize(), except of elements.
  [[nodiscard]] static Result<Quantizer> make(DType weights, const Shape& shape, std::string_view scheme,
                                              const QuantizeOptions& options, GgufBlock gguf = GgufBlock::none);

  // Reports whether set_maximum() must be called before run().
  [[nodiscard]] bool needs_maximum() const noexcept { return is_per_tensor() || recipe_->global != nullptr; }
  // The largest magnitude of `count` numbers of the weights' type.
  // Errors: out_of_range: NaN or infinity; the element counts from `numbers`.
  [[nodiscard]] Result<float> maximum(const std::byte* numbers, std::size_t count, const Execution& execution) const;
  // The largest magnitude of all numbers of the weight. Of no use unless needs_maximum() or marks_zeros().
  void set_maximum(float largest);
  // Reports whether a weight of zeros has scales of 1, as no recipe was named: run() must know that it is one, by
  // set_maximum() or by QuantizedRows::are_all.
  [[nodiscard]] bool marks_zeros() const noexcept { return is_default_; }

  // Makes codes and scales of rows [first, first + count) of all matrices together. `first` begins a block of rows, and
  // the last row ends one, or a matrix. Without rows, it only writes the scale of a weight that has one.
  // Errors: out_of_range: NaN or infinity; the element counts from the weight's first one.
  // Returns whether a number was not zero.
  [[nodiscard]] Result<bool> run(std::size_t first, std::size_t count, const std::byte* numbers,
                                 const QuantizedRows& out, const Execution& execution) const;

  // The same into `out`, which becomes a weight of [count, columns]; its buffers are kept from call to call.
  [[nodiscard]] Result<bool> run(std::size_t first, std::size_t count, const std::byte* numbers, QuantizedTensor& out,
                                 const Execution& execution) const;
  // Gives the vectors of `out` the sizes of rows [first, first + count).
  [[nodiscard]] QuantizedRows room_in(QuantizedTensor& out, std::size_t first, std::size_t count) const;

  // The same on this thread, with buffers that are kept from call to call: they are allocated by the first.
  [[nodiscard]] Result<bool> run_here(std::size_t first, std::size_t count, const std::byte* numbers,
                                      const QuantizedRows& out, Work& work) const;

  // Scales of 1, in the type that the layout has.
  void set_unit_scales(std::span<std::byte> scales) const noexcept;

  // Reports whether stores of the whole weight's codes should bypass the cache: they are many, and may.
  [[nodiscard]] bool results_bypass_cache() const noexcept;
  // The result without its bytes; its vectors are empty.
  [[nodiscard]] const QuantizedTensor& layout() const noexcept { return layout_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t band_rows() const noexcept { return band_rows_; }
  [[nodiscard]] std::size_t codes_row_bytes() const noexcept { return codes_row_bytes_; }
  // Scales, and zero points, before this row.
  [[nodiscard]] std::size_t scales_before(std::size_t row) const noexcept;
  // Those of rows [first, first + count): 1 of a weight that has one.
  [[nodiscard]] std::size_t scale_count(std::size_t first, std::size_t count) const noexcept;
  [[nodiscard]] bool is_per_tensor() const noexcept {
    return recipe_->gguf == GgufBlock::none && layout_.block_rows == 0;
  }
  [[nodiscard]] bool has_zero_points() const noexcept { return scale_ != nullptr && scale_ == recipe_->asymmetric; }
  // The importance of the columns of a row from `column` on; null: none.
  [[nodiscard]] const float* importance_of(std::size_t row, std::size_t column) const noexcept;

 private:
  struct Stretch;

  Quantizer() = default;
  Result<void> lay_out(std::string_view scheme, const QuantizeOptions& options);
  [[nodiscard]] std::size_t band_of(std::size_t row) const noexcept;
  [[nodiscard]] std::size_t row_of(std::size_t band) const noexcept;
  void load(const std::byte* numbers, std::size_t first, std::size_t count, float* out) const;
  [[nodiscard]] Error nonfinite(const std::byte* numbers, std::size_t first, std::size_t count) const;
  [[nodiscard]] bool refuses(float x) const noexcept { return has(refused_, x); }
  [[nodiscard]] bool take_nonfinite(const Stretch& stretch, Work& work) const;
  void put_nan_codes(const Stretch& stretch, Work& work) const;
  [[nodiscard]] const std::byte* numbers_at(const std::byte* numbers, std::size_t first, std::size_t count,
                                            std::vector<float>& buffer) const;
  Result<bool> run_rows(std::size_t first, std::size_t count, const std::byte* numbers, const QuantizedRows& out,
                        const Execution& execution) const;
  void put_shared_scales(std::size_t first, std::size_t count, const QuantizedRows& out, bool has_nonzero) const;
  Result<void> run_bands(std::size_t first, std::size_t count, Work& work) const;
  Result<void> run_band(std::size_t first, std::size_t count, Work& work) const;
  [[nodiscard]] std::size_t part_size() const noexcept;
  template <class Part>
  void for_each_part(const Stretch& stretch, Work& work, const Part& part) const;
  void measure(const Stretch& stretch, std::size_t runs, Work& work) const;
  Result<void> put_scales(const Stretch& stretch, Work& work) const;
  [[nodiscard]] bool put_ordinary_scales(std::size_t index, std::size_t runs, Work& work) const;
  void set_steps();
  [[nodiscard]] std::vector<float> numbers_of_block(const Stretch& stretch, std::size_t i, const Work& work) const;
  [[nodiscard]] BlockScale searched_scale(const Extent& extent, const Stretch& stretch, std::size_t i,
                                          const Work& work) const;
  void keep_scales(std::size_t index, Work& work) const;
  // Reports whether the kernels read the weight's own numbers.
  [[nodiscard]] bool reads_in_place() const noexcept {
    return source_ == read_ && (context_.weights == source_ || context_.weights == DType::float32);
  }
  [[nodiscard]] std::size_t steps_to_next(const Stretch& stretch, const Work& work) const;
  [[nodiscard]] std::size_t bytes_to_next(const Stretch& stretch, const Work& work) const;
  [[nodiscard]] std::size_t begun_bytes(std::size_t ahead, std::size_t count) const;
  const kernels::MantissaTable* tables_of(const Stretch& stretch, const Operand* operands, Work& work) const;
  void put_codes(const Stretch& stretch, const Operand* operands, Work& work) const;
  Result<void> run_gguf(std::size_t first, std::size_t count, Work& work) const;
  [[nodiscard]] Result<void> take_search(std::string_view scheme, const QuantizeOptions& options);

  const Recipe* recipe_ = nullptr;
  ScaleRule scale_ = nullptr;
  ScaleContext context_;
  std::optional<kernels::ScaleSteps> steps_;               // of scale_, where it has them
  std::shared_ptr<const kernels::StepTables> code_steps_;  // of blocks whose scales steps_ gives
  std::shared_ptr<const MantissaTables> tables_;           // of other scales
  QuantizedTensor layout_;
  DType source_ = DType::undefined;
  DType read_ = DType::float32;                          // what the kernels read: the source's type, or float32
  UnspecifiedInputs refused_ = UnspecifiedInputs::both;  // an error
  bool is_default_ = false;
  bool is_zero_ = false;  // all numbers, as far as set_maximum() knows
  std::size_t rows_ = 0;  // of all matrices
  std::size_t matrix_rows_ = 1;
  std::size_t columns_ = 1;
  std::size_t band_rows_ = 1;  // rows that share scales
  std::size_t block_columns_ = 1;
  std::size_t grid_columns_ = 1;
  unsigned run_shift_ = 0;  // of blocks; a row that is one block has shift_of_all
  RunEncoder encoder_;
  std::size_t codes_row_bytes_ = 0;
  BlockScale tensor_scale_;  // of all elements, after set_maximum()
  std::optional<ClipSearch> clip_;
  std::vector<float> importance_;
};

}  // namespace tensorcast::block
