// How the scale of a block comes from its largest magnitude: one function for each tool's way.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "block/element_rule.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

// Of the numbers of a block, or of a tensor. NaN if one of them is.
struct Extent {
  float largest = 0.0f;  // magnitude
  float low = 0.0f;      // at most 0
  float high = 0.0f;     // at least 0
};

// What the scales of all blocks of a tensor depend on.
struct ScaleContext {
  DType weights = DType::float32;
  DType element = DType::undefined;
  float largest = 0.0f;  // of the tensor
  float global = 1.0f;   // its scale as it is stored
  bool is_power_of_two = false;
  bool zeros_have_scale_one = false;  // a block of zeros, where the tool would divide 0 by 0
};

struct BlockScale {
  std::uint8_t code = 0;  // E8M0 or E4M3
  float number = 0.0f;    // where scales are float32
  Operand operand = {};
  bool clears = false;  // all elements become the code 0
  std::int8_t zero_point = 0;
};

using ScaleRule = BlockScale (*)(const Extent& block, const ScaleContext& context) noexcept;
// The scale of a tensor from its largest magnitude, as it is stored.
using GlobalRule = float (*)(float largest, const ScaleContext& context) noexcept;

namespace mx {  // E8M0 scales
BlockScale floor(const Extent& block, const ScaleContext& context) noexcept;
BlockScale ceil(const Extent& block, const ScaleContext& context) noexcept;
BlockScale even(const Extent& block, const ScaleContext& context) noexcept;
BlockScale quark(const Extent& block, const ScaleContext& context) noexcept;
BlockScale rceil(const Extent& block, const ScaleContext& context) noexcept;
BlockScale rceil_torchao(const Extent& block, const ScaleContext& context) noexcept;
BlockScale modelopt_mxfp4(const Extent& block, const ScaleContext& context) noexcept;
BlockScale modelopt_mxfp8(const Extent& block, const ScaleContext& context) noexcept;
BlockScale compressed_tensors(const Extent& block, const ScaleContext& context) noexcept;
BlockScale deepgemm(const Extent& block, const ScaleContext& context) noexcept;
BlockScale mlx(const Extent& block, const ScaleContext& context) noexcept;
BlockScale comfy(const Extent& block, const ScaleContext& context) noexcept;
BlockScale ggml(const Extent& block, const ScaleContext& context) noexcept;
}  // namespace mx

namespace nv {  // E4M3 scales
float modelopt_global(float largest, const ScaleContext& context) noexcept;
float compressed_tensors_global(float largest, const ScaleContext& context) noexcept;
float te_global(float largest, const ScaleContext& context) noexcept;
float comfy_global(float largest, const ScaleContext& context) noexcept;
BlockScale modelopt(const Extent& block, const ScaleContext& context) noexcept;
BlockScale compressed_tensors(const Extent& block, const ScaleContext& context) noexcept;
BlockScale torchao(const Extent& block, const ScaleContext& context) noexcept;
BlockScale torchao_one_level(const Extent& block, const ScaleContext& context) noexcept;
BlockScale te(const Extent& block, const ScaleContext& context) noexcept;
BlockScale comfy(const Extent& block, const ScaleContext& context) noexcept;
BlockScale mlx(const Extent& block, const ScaleContext& context) noexcept;
BlockScale ggml(const Extent& block, const ScaleContext& context) noexcept;
}  // namespace nv

namespace fp8 {  // float32 scales of float8_e4m3fn
BlockScale compressed_tensors(const Extent& block, const ScaleContext& context) noexcept;
BlockScale torchao(const Extent& block, const ScaleContext& context) noexcept;  // and ModelOpt
BlockScale comfy(const Extent& block, const ScaleContext& context) noexcept;
BlockScale deepseek(const Extent& block, const ScaleContext& context) noexcept;
BlockScale deepseek_v3_2(const Extent& block, const ScaleContext& context) noexcept;
BlockScale deepgemm(const Extent& block, const ScaleContext& context) noexcept;
BlockScale transformers(const Extent& block, const ScaleContext& context) noexcept;
}  // namespace fp8

namespace integer {  // float32 scales
BlockScale int8(const Extent& block, const ScaleContext& context) noexcept;
BlockScale comfy_int8(const Extent& block, const ScaleContext& context) noexcept;
BlockScale int4(const Extent& block, const ScaleContext& context) noexcept;
BlockScale int4_asymmetric(const Extent& block, const ScaleContext& context) noexcept;
}  // namespace integer

}  // namespace tensorcast::block
