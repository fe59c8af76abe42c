// SPDX-License-Identifier: Apache-2.0
// Weights that DequantizeLinear gives back: codes and scales, by the recipes of quantize().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::models::onnx {

// A scheme whose numbers DequantizeLinear computes.
struct WeightScheme {
  std::string_view word;    // in requests
  std::string_view scheme;  // of quantize()
  DType codes = DType::undefined;
  std::int64_t first_opset = 0;
};

// A scheme and how weights are quantized to it: "nvfp4", "mxfp4:even".
struct WeightRecipe {
  const WeightScheme* scheme = nullptr;
  std::string recipe = {};          // empty: the scheme's default
  std::int64_t block = 0;           // numbers that share a scale; 0: those of a channel
  DType scales = DType::undefined;  // as they are stored; float32: in the weight's own type
  bool has_tensor_scale = false;    // by which the scales are multiplied
  std::int64_t group_size = 0;      // of quantize()
  bool symmetric = true;            // of quantize(); false: codes have zero points

  [[nodiscard]] bool has_float_scales() const noexcept { return scales == DType::float32; }
};

// Errors: invalid_argument: no such scheme or recipe, or one whose numbers DequantizeLinear does not compute.
[[nodiscard]] Result<WeightRecipe> parse_weight_recipe(std::string_view text, std::uint64_t group_size, bool symmetric);

// What is stored of a weight.
struct StoredWeight {
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
  std::vector<std::byte> zero_points = {};  // of the codes' type, one for each scale; empty: none
};

// The last weight that was quantized, as its codes and scales are written one after the other; and all tensor scales
// and losses.
struct LastWeight {
  std::uint64_t tensor = UINT64_MAX;
  std::shared_ptr<const StoredWeight> stored = {};
  std::map<std::uint64_t, float> tensor_scales = {};
  std::map<std::uint64_t, double> snr_db = {};
};

// How one weight is quantized.
class Quantization {
 public:
  struct Source {
    const io::InputFile* file = nullptr;  // outlives the quantization
    formats::onnx::ByteRange tensor;
    DType dtype = DType::undefined;
    std::vector<std::int64_t> shape = {};
    bool float32_scales = false;  // a scale is too small for the weight's own type
    std::string name = {};
    bool allow_loss = false;  // a destroyed weight is no error
  };
  // `axis`: of the channels, or along which blocks lie. `by_axis`: false: one scale in all, where it is for channels.
  Quantization(WeightRecipe recipe, Source source, std::size_t axis, bool by_axis, std::shared_ptr<LastWeight> last);

  [[nodiscard]] const WeightRecipe& recipe() const noexcept { return recipe_; }
  [[nodiscard]] bool has_axis() const noexcept { return by_axis_; }
  [[nodiscard]] std::size_t axis() const noexcept { return axis_; }
  [[nodiscard]] DType scales_dtype() const noexcept;
  // Reports whether DequantizeLinear gives float32, and a Cast behind it the weight's type.
  [[nodiscard]] bool is_wide() const noexcept {
    return source_.dtype != DType::float32 && (!recipe_.has_float_scales() || source_.float32_scales);
  }
  [[nodiscard]] const std::vector<std::int64_t>& scales_shape() const noexcept { return scales_shape_; }
  [[nodiscard]] std::size_t scales_bytes() const;
  [[nodiscard]] std::size_t zero_points_bytes() const;
  // Errors: parse, unsupported, io; unsupported: scales that the weight's type does not hold; out_of_range: the weight
  // is destroyed.
  [[nodiscard]] Result<std::shared_ptr<const StoredWeight>> stored() const;
  [[nodiscard]] Result<float> tensor_scale() const;
  // Returns the signal to noise ratio in decibels; nothing before stored() was called.
  [[nodiscard]] std::optional<double> snr_db() const;

 private:
  [[nodiscard]] Result<StoredWeight> quantized() const;

  WeightRecipe recipe_;
  Source source_;
  std::size_t axis_;
  bool by_axis_;
  std::size_t outer_ = 1, length_ = 1, inner_ = 1;  // elements before the axis, along it, and behind it
  std::vector<std::int64_t> scales_shape_;
  std::shared_ptr<LastWeight> last_;
};

// Reports whether the input is a matrix that a dot product takes: of MatMul, Gemm, LSTM, GRU, RNN, and of ONNX
// Runtime's FusedMatMul and Attention.
[[nodiscard]] bool is_matrix_input(const Node& node, std::size_t index);

// Returns the axis along which a weight that is input `index` of `node` has its output channels, or its inputs, which a
// dot product runs over.
[[nodiscard]] std::size_t channel_axis(const Node& node, std::size_t index, std::size_t rank);
[[nodiscard]] std::size_t input_axis(const Node& node, std::size_t index, std::size_t rank);

}  // namespace tensorcast::models::onnx
