// SPDX-License-Identifier: Apache-2.0
// E4M3 scales of NVFP4, and the scale of the tensor. Each function is one tool's way; docs/blocks.md compares them.
#pragma once

#include "block/recipe/float_steps.hpp"
#include "block/recipe/scale_rule.hpp"

namespace tensorcast::block::nv {
inline constexpr float largest_product = 448.0f * 6.0f;
inline constexpr float largest_float = std::numeric_limits<float>::max();

// torch.clamp: NaN stays.
inline float clamped(float x, float low, float high) noexcept {
  return is_nan(x) ? x : std::min(std::max(x, low), high);
}

inline BlockScale scale_of(std::uint8_t code, float factor) noexcept {
  return {.code = code, .operand = {.factor = factor}};
}

// ggml's rounding of positive numbers: ties away from zero, and 448 from 256 on.
inline std::uint8_t ggml_code(float x) noexcept {
  if (!(x > 0)) return 0;
  const std::uint32_t bits = bits_of(std::min(x, 448.0f));
  const int exponent = static_cast<int>(bits >> mantissa_bits) - 127 + 7;
  if (exponent <= 0) return static_cast<std::uint8_t>(std::min(static_cast<int>(x * 512.0f + 0.5f), 7));
  if (exponent >= 15) return 0x7e;
  const std::uint32_t code = static_cast<std::uint32_t>(exponent << 3) + (bits >> 20 & 7) + (bits >> 19 & 1);
  return static_cast<std::uint8_t>(code >= 15u << 3 ? 0x7eu : code);
}

inline float modelopt_global(float largest, const ScaleContext&) noexcept { return largest / largest_product; }

inline float compressed_tensors_global(float largest, const ScaleContext& context) noexcept {
  const float tiny = context.weights == DType::float16 ? 0x1p-14f : smallest_normal;
  const float inverse = round_to(context.weights, 1.0f / (is_nan(largest) ? largest : std::max(largest, tiny)));
  const float global = round_to(context.weights, inverse * largest_product);
  return is_finite(global) ? global : 1.0f;
}

// 1 for a tensor of zeros, and for infinity.
inline float te_encode(float largest) noexcept {
  const float encode = std::min(largest_product / largest, largest_float);
  return largest == 0.0f || encode == 0.0f ? 1.0f : encode;
}
inline float te_global(float largest, const ScaleContext&) noexcept { return 1.0f / te_encode(largest); }

inline float comfy_global(float largest, const ScaleContext& context) noexcept {
  return round_to(context.weights, largest / largest_product);
}

inline BlockScale modelopt(const Extent& block, const ScaleContext& context) noexcept {
  float scale = block.largest / (6.0f * context.global);
  if (scale == 0.0f) scale = 1.0f;
  const std::uint8_t code = e4m3_code(clamped(scale, 0x1p-9f, 448.0f));
  return scale_of(code, e4m3_number(code) * context.global);
}

inline BlockScale compressed_tensors(const Extent& block, const ScaleContext& context) noexcept {
  const float local = round_to(context.weights, block.largest / 6.0f);
  std::uint8_t code = e4m3_code(context.global * local);
  if (code == 0) code = 0x20;  // 0.125
  return scale_of(code, e4m3_number(code) / context.global);
}

inline BlockScale torchao(const Extent& block, const ScaleContext& context) noexcept {
  const std::uint8_t code = e4m3_code(clamped((block.largest / 6.0f) / context.global, 0x1p-6f, 448.0f));
  return scale_of(code, (1.0f / context.global) / e4m3_number(code));
}

inline BlockScale torchao_one_level(const Extent& block, const ScaleContext&) noexcept {
  const std::uint8_t code = e4m3_code(clamped(block.largest / 6.0f, 0x1p-6f, 448.0f));
  return scale_of(code, 1.0f / e4m3_number(code));
}

inline BlockScale te(const Extent& block, const ScaleContext& context) noexcept {
  const float scale = block.largest * (te_encode(context.largest) * (1.0f / 6.0f));
  const std::uint8_t code = e4m3_code(clamped(scale, 0.0f, 448.0f));
  return scale_of(code, std::min(1.0f / (e4m3_number(code) * context.global), largest_float));
}

inline BlockScale comfy(const Extent& block, const ScaleContext& context) noexcept {
  const float scale = (block.largest / 6.0f) / context.global;
  const std::uint8_t code = e4m3_code(is_nan(scale) ? scale : std::min(scale, 448.0f));
  float total = context.global * e4m3_number(code);
  // The scale of the tensor times 0 or NaN: a negative NaN, as x86 makes it.
  if (is_infinite(context.global)) total = -std::numeric_limits<float>::quiet_NaN();
  if (total == 0.0f) return {.code = code, .clears = true};
  return scale_of(code, total);
}

// MLX and ggml choose the first of equally near numbers: 0 if the scale is 0.
inline BlockScale mlx(const Extent& block, const ScaleContext& context) noexcept {
  const float scale = round_to(context.weights, block.largest / 6.0f);
  if (is_nan(scale)) return {.code = 0x7e, .clears = true};
  const std::uint8_t code = e4m3_code(scale);
  if (code == 0) return {.clears = true};
  return scale_of(code, e4m3_number(code));
}

inline BlockScale ggml(const Extent& block, const ScaleContext&) noexcept {
  const std::uint8_t code = ggml_code(block.largest / 6.0f);
  if (code == 0) return {.clears = true};
  return scale_of(code, e4m3_number(code));
}

}  // namespace tensorcast::block::nv
