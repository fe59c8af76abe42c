// SPDX-License-Identifier: Apache-2.0
// float32 scales of float8_e4m3fn and of integers. Each function is one tool's way; docs/blocks.md compares them.
#pragma once

#include "block/recipe/float_steps.hpp"
#include "block/recipe/scale_rule.hpp"

namespace tensorcast::block {
namespace float_scales {

inline constexpr float largest_e4m3 = 448.0f;

inline BlockScale scale_of(float number, float factor) noexcept {
  return {.number = number, .operand = {.factor = factor}};
}

// The distance of 1 to the next number of the type.
inline float epsilon(DType dtype) noexcept {
  return dtype == DType::bfloat16 ? 0x1p-7f : dtype == DType::float16 ? 0x1p-10f : 0x1p-23f;
}

inline float smallest_normal_of(DType dtype) noexcept { return dtype == DType::float16 ? 0x1p-14f : smallest_normal; }

// The largest magnitude that a block is taken to have at least; NaN stays.
inline float at_least(float largest, float least) noexcept {
  return is_nan(largest) ? largest : std::max(largest, least);
}

inline float power_of_two_above(float scale, int lowest) noexcept {
  return is_finite(scale) ? power_of_two(std::max(exact_ceil_log2(scale), lowest)) : scale;
}

// Half to even, as rint does in the default rounding mode. Precondition: |x| < 2^22.
inline float round_half_even(float x) noexcept {
  constexpr float unit = 0x1.8p23f;
  return (x + unit) - unit;
}

}  // namespace float_scales

namespace fp8 {
using namespace float_scales;

inline BlockScale compressed_tensors(const Extent& block, const ScaleContext& context) noexcept {
  const float scale = round_to(context.weights, block.largest / largest_e4m3);
  const float used = scale == 0.0f ? epsilon(context.weights) : scale;
  return scale_of(used, used);
}

inline BlockScale torchao(const Extent& block, const ScaleContext& context) noexcept {
  if (context.scale_of_zero_block_is_one && block.largest == 0.0f) return scale_of(1.0f, 1.0f);
  const float scale = round_to(context.weights, block.largest / largest_e4m3);
  return scale_of(scale, scale);
}

// As ModelOpt exports a checkpoint: in float32, whatever the weights are.
inline BlockScale modelopt_export(const Extent& block, const ScaleContext& context) noexcept {
  if (context.scale_of_zero_block_is_one && block.largest == 0.0f) return scale_of(1.0f, 1.0f);
  const float scale = block.largest / largest_e4m3;
  return scale_of(scale, scale);
}

inline BlockScale comfy(const Extent& block, const ScaleContext& context) noexcept {
  const float scale = round_to(context.weights, block.largest / largest_e4m3);
  return scale_of(scale, round_to(context.weights, 1.0f / scale));
}

inline BlockScale deepseek(const Extent& block, const ScaleContext& context) noexcept {
  float scale = at_least(block.largest, 1e-4f) / largest_e4m3;
  if (context.is_power_of_two && is_finite(scale)) scale = power_of_two(ceil_log2(scale));
  return scale_of(scale, scale);
}

inline BlockScale deepseek_v3_2(const Extent& block, const ScaleContext& context) noexcept {
  float scale = at_least(block.largest, 1e-4f) * (1.0f / largest_e4m3);
  if (context.is_power_of_two) scale = power_of_two_above(scale, -126);
  return scale_of(scale, scale);
}

inline BlockScale deepgemm(const Extent& block, const ScaleContext& context) noexcept {
  float scale = at_least(block.largest, 1e-4f) / largest_e4m3;
  if (context.is_power_of_two) scale = power_of_two_above(scale, -126);
  // By its bits, clamped to 254: of NaN and infinity too.
  if (context.is_power_of_two && !is_finite(scale)) scale = 0x1p127f;
  return scale_of(scale, 1.0f / scale);
}

inline BlockScale transformers(const Extent& block, const ScaleContext& context) noexcept {
  float factor = block.largest > 0 ? (1.0f / block.largest) * largest_e4m3 : 1.0f;
  float scale = 1.0f / factor;
  if (context.is_power_of_two && is_infinite(scale)) scale = factor = std::numeric_limits<float>::quiet_NaN();
  if (context.is_power_of_two && is_finite(scale)) {
    scale = power_of_two(ceil_log2(std::max(scale, smallest_normal)));
    factor = 1.0f / scale;
  }
  return scale_of(scale, factor);
}

}  // namespace fp8

namespace integer {
using namespace float_scales;

inline BlockScale int8(const Extent& block, const ScaleContext& context) noexcept {
  const float scale = round_to(context.weights, block.largest / 127.5f);
  const float used = scale == 0.0f ? epsilon(context.weights) : scale;
  return scale_of(used, used);
}

// The scale is stored in float32, and rounded to the weights' type to divide.
inline BlockScale comfy_int8(const Extent& block, const ScaleContext& context) noexcept {
  const float scale = at_least(block.largest / 127.0f, 1e-30f);
  const float used = round_to(context.weights, scale);
  return scale_of(scale, used == 0.0f ? smallest_normal_of(context.weights) : used);
}

inline BlockScale int4(const Extent& block, const ScaleContext& context) noexcept {
  const float scale = round_to(context.weights, block.largest / 7.5f);
  const float used = scale == 0.0f ? epsilon(context.weights) : scale;
  return scale_of(used, used);
}

inline BlockScale int4_asymmetric(const Extent& block, const ScaleContext& context) noexcept {
  const DType weights = context.weights;
  if (is_nan(block.largest)) return scale_of(block.largest, block.largest);
  const float scale = round_to(weights, round_to(weights, block.high - block.low) / 15.0f);
  const float place = round_to(weights, -8.0f - round_to(weights, block.low / scale));
  float zero = 0.0f;
  if (!is_nan(place)) zero = round_half_even(std::min(std::max(place, -8.0f), 7.0f));
  const float used = scale == 0.0f ? epsilon(weights) : scale;
  BlockScale made = scale_of(used, used);
  made.operand.zero = zero;
  made.zero_point = static_cast<std::int8_t>(zero);
  return made;
}

}  // namespace integer

}  // namespace tensorcast::block
