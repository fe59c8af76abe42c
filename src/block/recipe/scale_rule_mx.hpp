// SPDX-License-Identifier: Apache-2.0
// E8M0 scales. Each function is one tool's way, contradictions included; docs/blocks.md compares them.
#pragma once

#include "block/recipe/float_steps.hpp"
#include "block/recipe/scale_rule.hpp"

namespace tensorcast::block::mx {
inline constexpr std::uint8_t nan_code = 255;
inline constexpr int bias = 127;
inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();

inline BlockScale divided_by(int code, float divisor) noexcept {
  return {.code = static_cast<std::uint8_t>(code), .operand = {.factor = divisor}};
}

// torchao divides by 2^-126 where it stores 2^-127.
inline BlockScale torchao_scale(int biased, float largest) noexcept {
  if (is_nan(largest)) return divided_by(nan_code, infinity);
  const auto code = static_cast<std::uint32_t>(std::clamp(biased, 0, 255));
  return divided_by(static_cast<int>(code), std::max(float_of(code << mantissa_bits), smallest_normal));
}

inline int exponent_field(std::uint32_t bits) noexcept { return static_cast<int>(bits >> mantissa_bits & 255); }

// The exponent field after rounding the mantissa to `bits` bits, halves up.
inline int rounded_exponent_field(float largest, int bits) noexcept {
  return exponent_field(bits_of(largest) + (1u << (mantissa_bits - bits - 1)));
}

// The exponent of the smallest power of two that is not below x, as E8M0: NaN and infinity have codes of their own.
inline int exact_round_up(float x) noexcept {
  if (is_nan(x)) return nan_code;
  if (is_infinite(x)) return 254;
  if (!(x > power_of_two(-bias))) return 0;
  return std::min(exact_ceil_log2(x) + bias, 254);
}

// Ceiling of log2 as float32 computes it, at least -127. Infinity gives 128.
inline int log_round_up(float x) noexcept {
  if (is_infinite(x)) return 128;
  return x > 0 ? std::max(ceil_log2(x), -bias) : -bias;
}

inline BlockScale floor(const Extent& block, const ScaleContext& context) noexcept {
  return torchao_scale(exponent_field(bits_of(block.largest)) - context.element.exponent, block.largest);
}

inline BlockScale ceil(const Extent& block, const ScaleContext& context) noexcept {
  const std::uint32_t bits = bits_of(block.largest);
  const int up = (bits & ((1u << mantissa_bits) - 1)) != 0 ? 1 : 0;
  return torchao_scale(exponent_field(bits) + up - context.element.exponent, block.largest);
}

inline BlockScale even(const Extent& block, const ScaleContext& context) noexcept {
  const ElementLimits& element = context.element;
  return torchao_scale(rounded_exponent_field(block.largest, element.mantissa) - element.exponent, block.largest);
}

inline BlockScale quark(const Extent& block, const ScaleContext& context) noexcept {
  if (is_nan(block.largest)) return divided_by(nan_code, nan);
  const ElementLimits& element = context.element;
  const int field = rounded_exponent_field(block.largest, element.mantissa);
  // Rounded to infinity, whose logarithm less the exponent of the element is limited.
  const int exponent = field == 255 ? bias : std::max(field - bias - element.exponent, -bias);
  return divided_by(std::max(exponent + bias, 1), power_of_two(exponent));
}

inline BlockScale rceil(const Extent& block, const ScaleContext& context) noexcept {
  const int code = exact_round_up(block.largest * (1.0f / context.element.largest));
  return divided_by(code, code == nan_code ? nan : power_of_two(bias - code));
}

inline BlockScale rceil_torchao(const Extent& block, const ScaleContext& context) noexcept {
  const float quotient = block.largest / context.element.largest;
  if (is_nan(quotient)) return divided_by(nan_code, quotient);
  const int code = std::min(log_round_up(quotient) + bias, 254);
  return divided_by(code, code == 0 ? 1.0f : power_of_two(bias - code));
}

inline BlockScale modelopt_mxfp4(const Extent& block, const ScaleContext& context) noexcept {
  const float quotient = block.largest / context.element.largest;
  if (is_nan(quotient)) return divided_by(0, nan);
  const int exponent = log_round_up(quotient);
  if (exponent == 128) return divided_by(0, infinity);
  return divided_by(exponent + bias, power_of_two(exponent));
}

inline BlockScale modelopt_mxfp8(const Extent& block, const ScaleContext& context) noexcept {
  const float quotient = block.largest / context.element.largest;
  const int code = is_nan(quotient) ? 0 : std::min(log_round_up(quotient) + bias, 254);
  return divided_by(code, power_of_two(bias - code));
}

// rounded_exponent_field() of a float16, as a float32's; 0: subnormal, 255: infinity.
inline int rounded_float16_field(float largest, int bits) noexcept {
  constexpr float least_normal = 0x1p-14f;
  if (largest < least_normal) return largest + least_normal * power_of_two(-bits - 1) < least_normal ? 0 : 127 - 14;
  const int field = rounded_exponent_field(largest, bits);
  return field > 127 + 15 ? 255 : field;
}

inline BlockScale compressed_tensors(const Extent& block, const ScaleContext& context) noexcept {
  const ElementLimits& element = context.element;
  if (is_nan(block.largest)) return divided_by(0, nan);
  const int bits = element.mantissa == 3 && element.exponent == 2 ? 3 : 1;
  const bool half = context.weights == DType::float16;
  const int field = half ? rounded_float16_field(block.largest, bits) : rounded_exponent_field(block.largest, bits);
  // The logarithm of infinity, as an integer; in float16 that of 0 makes infinity, too.
  if (field == 255 || (half && field == 0)) return divided_by(127, infinity);
  const int code = field == 0 ? 0 : std::max(field - element.exponent, 0);
  return divided_by(code, power_of_two(code - bias));
}

inline BlockScale deepgemm(const Extent& block, const ScaleContext& context) noexcept {
  const float largest = is_nan(block.largest) ? block.largest : std::max(block.largest, 1e-4f);
  const int code = std::clamp(exact_round_up(largest / context.element.largest), 1, 254);
  return divided_by(code, power_of_two(bias - code));
}

inline BlockScale mlx(const Extent& block, const ScaleContext& context) noexcept {
  const float quotient = round_to(context.weights, block.largest / context.element.largest);
  if (!(quotient > 0) || !is_finite(quotient)) return divided_by(bias, 1.0f);
  const int exponent = exact_ceil_log2(quotient);
  return divided_by((exponent + bias) & 255, power_of_two(std::clamp(exponent, -149, 127)));
}

inline BlockScale comfy(const Extent& block, const ScaleContext& context) noexcept {
  if (block.largest == 0.0f) return {.clears = true};
  const float quotient = block.largest / context.element.largest;
  const int code = !is_finite(quotient) ? 0 : std::clamp(log_round_up(quotient) + bias, 0, 254);
  return divided_by(code, code == 0 ? 0.0f : power_of_two(code - bias));
}

inline BlockScale ggml(const Extent& block, const ScaleContext&) noexcept {
  if (!(block.largest > 0)) return divided_by(0, power_of_two(-bias));
  const int exponent = is_infinite(block.largest) ? 0 : floor_log2(block.largest) - 2;
  const int code = (exponent + bias) & 255;
  return divided_by(code, code == 255 ? infinity : power_of_two(code - bias));
}

}  // namespace tensorcast::block::mx
