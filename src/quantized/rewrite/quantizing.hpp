// SPDX-License-Identifier: Apache-2.0
// Quantizes the weights of a file, range by range, as a packer asks for codes and scales.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "block/encode/quantizer.hpp"
#include "quantized/layer/original_rows.hpp"
#include "quantized/rewrite/importance.hpp"
#include "quantized/rewrite/layer_packer.hpp"
#include "quantized/rewrite/loss_meter.hpp"
#include "tensorcast/execution.hpp"

namespace tensorcast::quantized {

// How the numbers of a weight become codes: quantize()'s arguments, in a plan.
struct Quantizing {
  std::string scheme;
  bool gguf = false;               // ggml's blocks, whatever else the scheme may be
  DType numbers = DType::float32;  // the type of the numbers that are read
  // The recipe is a name in the table of recipes, or empty, and so outlives this. The importance is not set: its
  // numbers are read when a quantizer is made.
  QuantizeOptions options = {};
  ImportanceEntry importance = {};

  // The type that the numbers are rounded to first.
  [[nodiscard]] DType compute() const noexcept {
    return options.compute_dtype == DType::undefined ? numbers : options.compute_dtype;
  }
  // As TensorOutcome::search.
  [[nodiscard]] std::string search() const { return search_text(options.clip, !importance.file.empty()); }
};

// Reads the importance, from `importance` if it is that file and open. Errors: as quantize(), except of elements; those
// of the importance's file.
[[nodiscard]] Result<block::SharedLayout> layout_of(const Quantizing& quantizing, const Shape& shape,
                                                    const ImportanceFile* importance = nullptr);

inline constexpr std::int64_t max_rotated_columns = 4096;  // of a group that ConvRot rotates

// Whether weights of the scheme may be rotated first.
[[nodiscard]] bool is_rotated(std::string_view scheme) noexcept;
// Whether groups of `size` columns, as Deviations::rotation, can be rotated before a weight is quantized; true for 0.
[[nodiscard]] bool can_rotate(std::int64_t size, const Quantizing& quantizing, const Shape& shape) noexcept;

// What a layer is that a quantizer makes; `layout` may lack the bytes.
[[nodiscard]] LayerContent content_of(const QuantizedTensor& layout, std::string name, bool zero_points);

// The shape of what is quantized, whose last size is that of the inputs; that of a transposed layer gives the weight's
// again.
[[nodiscard]] std::vector<std::int64_t> shape_to_quantize(const Layer& layer);

// LayerContent::exact_scales of a weight that a recipe made in the type `weights`.
[[nodiscard]] DType exact_scales_of(const QuantizedTensor& layout, DType weights) noexcept;

// Reads the transpose of each matrix of a transposed layer. Memory: a matrix.
[[nodiscard]] ReadNumbers transposed_numbers(DType type, const Layer& layer, ReadNumbers read);
// The element of a transposed layer that is `element` of its transpose.
[[nodiscard]] std::uint64_t transposed_element(const Layer& layer, std::uint64_t element) noexcept;

// The largest magnitude of a weight. Errors: out_of_range (NaN, infinity), those of reading.
[[nodiscard]] Result<float> largest_magnitude(const block::WeightLayout& layout, const ReadNumbers& read,
                                              const Execution& execution);

class NumberCodes final : public LayerCodes {
 public:
  // `read` reads the type Quantizing::numbers. `maximum` gives the largest magnitude for the tensor's scale, and is
  // called if there is one. Memory: 2 Mi elements or the rows of a block if these are more, and up to 32 MiB of scales.
  [[nodiscard]] static Result<std::unique_ptr<NumberCodes>> create(const Quantizing& quantizing,
                                                                   const LayerContent& content, ReadNumbers read,
                                                                   std::function<Result<float>()> maximum,
                                                                   const Execution& execution);
  [[nodiscard]] Result<void> codes(std::uint64_t first_row, std::span<std::byte> out) override;
  [[nodiscard]] Result<void> scales(std::uint64_t first_row, std::span<std::byte> out) override;
  [[nodiscard]] Result<void> zero_points(std::uint64_t first_row, std::span<std::byte> out) override;
  [[nodiscard]] Result<std::vector<float>> global_scales() override;
  [[nodiscard]] Result<bool> packed(const BlockCoding& coding, std::uint64_t offset, std::span<std::byte> out) override;

  // Measures all rows when they are first quantized. To be called before them.
  void measure_loss() { meter_.emplace(numbers_, rows_); }
  // What the weight loses; nullopt: not all of its rows were measured.
  [[nodiscard]] std::optional<QuantizedLoss> loss() const;

 private:
  NumberCodes(block::SharedLayout layout, const Quantizing& quantizing, const LayerContent& content, ReadNumbers read,
              std::function<Result<float>()> maximum, const Execution& execution);
  // Made once: it reads all numbers if a scale of the tensor, or whether all are zero, depends on them.
  [[nodiscard]] Result<const block::Quantizer*> quantizer();
  [[nodiscard]] Result<bool> all_zero() const;
  // Reads whole rows, and rotates their groups.
  [[nodiscard]] Result<void> read_rows(std::uint64_t first, std::uint64_t count);
  // Quantizes the rows around `row`, unless they are at hand.
  [[nodiscard]] Result<void> quantize_around(std::uint64_t row);
  // Copies grid rows of `item` bytes a scale, from all rows or from those at hand.
  [[nodiscard]] Result<void> copy_grid(std::uint64_t first_row, std::uint64_t item, bool are_zero_points,
                                       std::span<std::byte> out);

  block::SharedLayout layout_;
  std::optional<block::Quantizer> quantizer_;
  DType numbers_, compute_;
  LayerContent content_;
  ReadNumbers read_;
  std::function<Result<float>()> maximum_;
  Execution execution_;
  std::uint64_t rows_, matrix_rows_, band_, scale_bytes_;
  std::uint64_t window_begin_ = 0, window_end_ = 0;  // rows at hand
  std::vector<std::byte> source_;
  QuantizedTensor window_;
  std::uint64_t kept_rows_ = 0;  // whose scales are in the following
  std::vector<std::byte> all_scales_;
  std::vector<std::int8_t> all_zeros_;
  std::optional<LossMeter> meter_;
};

}  // namespace tensorcast::quantized
