// SPDX-License-Identifier: Apache-2.0
// Weights that DequantizeLinear gives back: codes and scales, by the recipes of quantize().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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

  [[nodiscard]] bool has_float_scales() const noexcept { return scales == DType::float32; }
};

// Errors: invalid_argument: no such scheme or recipe, or one whose numbers DequantizeLinear does not compute.
[[nodiscard]] Result<WeightRecipe> parse_weight_recipe(std::string_view text);

// What is stored of a weight.
struct StoredWeight {
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
};

// The last weight that was quantized, as its codes and scales are written one after the other; and all tensor scales.
struct LastWeight {
  std::uint64_t tensor = UINT64_MAX;
  std::shared_ptr<const StoredWeight> stored = {};
  std::map<std::uint64_t, float> tensor_scales = {};
};

// How one weight is quantized.
class Quantization {
 public:
  struct Source {
    const io::InputFile* file = nullptr;  // outlives the quantization
    formats::onnx::ByteRange tensor;
    DType dtype = DType::undefined;
    std::vector<std::int64_t> shape = {};
  };
  // `axis`: of the channels, or along which blocks lie. `by_axis`: false: one scale in all, where it is for channels.
  Quantization(WeightRecipe recipe, Source source, std::size_t axis, bool by_axis, std::shared_ptr<LastWeight> last);

  [[nodiscard]] const WeightRecipe& recipe() const noexcept { return recipe_; }
  [[nodiscard]] bool has_axis() const noexcept { return by_axis_; }
  [[nodiscard]] std::size_t axis() const noexcept { return axis_; }
  [[nodiscard]] DType scales_dtype() const noexcept;
  [[nodiscard]] const std::vector<std::int64_t>& scales_shape() const noexcept { return scales_shape_; }
  [[nodiscard]] std::size_t scales_bytes() const;
  // Errors: parse, unsupported, io; unsupported: scales that the weight's type does not hold.
  [[nodiscard]] Result<std::shared_ptr<const StoredWeight>> stored() const;
  [[nodiscard]] Result<float> tensor_scale() const;

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

// Returns the axis along which a weight that is input `index` of `node` has its output channels, or its inputs, which a
// dot product runs over.
[[nodiscard]] std::size_t channel_axis(const Node& node, std::size_t index, std::size_t rank);
[[nodiscard]] std::size_t input_axis(const Node& node, std::size_t index, std::size_t rank);

}  // namespace tensorcast::models::onnx
