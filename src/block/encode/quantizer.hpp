// SPDX-License-Identifier: Apache-2.0
// A weight's quantization, in pieces of whole rows: what quantize() runs over a tensor, and conversions of files over
// parts of one.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "block/encode/code_maker.hpp"
#include "block/encode/quantizer_work.hpp"
#include "block/encode/scale_maker.hpp"
#include "block/encode/weight_layout.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

class Quantizer {
 public:
  // What scales need to know of the whole weight. It is asked while the quantizer is made, and only if they do.
  struct WholeWeight {
    // The largest magnitude.
    std::function<Result<float>()> maximum;
    // Whether all numbers are zero, in a weight whose maximum() is not needed. Null: run() finds out, of all rows at
    // once (QuantizedRows::are_all).
    std::function<Result<bool>()> is_zero = nullptr;
  };
  // Errors: those of `weight`.
  [[nodiscard]] static Result<Quantizer> make(SharedLayout layout, const WholeWeight& weight);
  // Of a weight whose largest magnitude is known.
  Quantizer(SharedLayout layout, float largest) : Quantizer(std::move(layout), largest, largest == 0.0f) {}

  // Makes codes and scales of rows [first, first + count) of all matrices together. `first` begins a block of rows, and
  // the last row ends one, or a matrix. Without rows, it only writes the scale of a weight that has one.
  // Errors: out_of_range: NaN or infinity; the element counts from the weight's first one.
  [[nodiscard]] Result<void> run(std::size_t first, std::size_t count, const std::byte* numbers,
                                 const QuantizedRows& out, const Execution& execution) const;
  // The same into `out`, which becomes a weight of [count, columns]; its buffers are kept from call to call.
  [[nodiscard]] Result<void> run(std::size_t first, std::size_t count, const std::byte* numbers, QuantizedTensor& out,
                                 const Execution& execution) const;
  // The same on this thread, with buffers that are kept from call to call: they are allocated by the first. An error's
  // element counts from `numbers`.
  [[nodiscard]] Result<void> run_here(std::size_t first, std::size_t count, const std::byte* numbers,
                                      const QuantizedRows& out, QuantizerWork& work) const;

  [[nodiscard]] const WeightLayout& layout() const noexcept { return *layout_; }
  // QuantizedTensor::global_scale.
  [[nodiscard]] std::optional<float> global_scale() const noexcept { return scales_.global(); }

 private:
  Quantizer(SharedLayout layout, float largest, bool is_zero);
  [[nodiscard]] Result<bool> run_rows(std::size_t first, std::size_t count, const std::byte* numbers,
                                      const QuantizedRows& out, const Execution& execution) const;
  void put_shared_scales(std::size_t first, std::size_t count, const QuantizedRows& out, bool has_nonzero) const;
  [[nodiscard]] Result<void> run_bands(std::size_t first, std::size_t count, QuantizerWork& work) const;
  [[nodiscard]] Result<void> run_band(std::size_t first, std::size_t count, QuantizerWork& work) const;
  [[nodiscard]] Result<void> run_gguf(std::size_t first, std::size_t count, QuantizerWork& work) const;

  SharedLayout layout_;
  bool is_zero_;  // all numbers, as far as is known
  ScaleMaker scales_;
  CodeMaker codes_;
};

}  // namespace tensorcast::block
