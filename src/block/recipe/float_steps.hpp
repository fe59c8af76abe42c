// SPDX-License-Identifier: Apache-2.0
// Single float32 operations of quantization: roundings, powers of two, logarithms as tools compute them. No libm, whose
// results differ between systems.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tensorcast/dtype.hpp"

namespace tensorcast::block {

inline constexpr std::uint32_t magnitude_bits = 0x7fffffff;
inline constexpr std::uint32_t infinity_bits = 0x7f800000;
inline constexpr int mantissa_bits = 23;
inline constexpr float smallest_normal = std::numeric_limits<float>::min();

[[nodiscard]] constexpr std::uint32_t bits_of(float x) noexcept { return std::bit_cast<std::uint32_t>(x); }
[[nodiscard]] constexpr float float_of(std::uint32_t bits) noexcept { return std::bit_cast<float>(bits); }
[[nodiscard]] constexpr float magnitude(float x) noexcept { return float_of(bits_of(x) & magnitude_bits); }
[[nodiscard]] constexpr bool is_nan(float x) noexcept { return (bits_of(x) & magnitude_bits) > infinity_bits; }
[[nodiscard]] constexpr bool is_infinite(float x) noexcept { return (bits_of(x) & magnitude_bits) == infinity_bits; }
[[nodiscard]] constexpr bool is_finite(float x) noexcept { return (bits_of(x) & magnitude_bits) < infinity_bits; }

// 2^exponent, also where it is subnormal. Precondition: -149 <= exponent <= 127.
[[nodiscard]] constexpr float power_of_two(int exponent) noexcept {
  return float_of(exponent < -126 ? 1u << (exponent + 149)
                                  : static_cast<std::uint32_t>(exponent + 127) << mantissa_bits);
}

[[nodiscard]] constexpr float round_to_bfloat16(float x) noexcept {
  const std::uint32_t bits = bits_of(x);
  if (is_nan(x)) return x;
  return float_of((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

// To float16 and back. A float32 whose last bit counts as much as the float16's is rounded by adding 1.5 * 2^23 of
// them.
[[nodiscard]] constexpr float round_to_float16(float x) noexcept {
  const float size = magnitude(x);
  if (!(size < 65520.0f)) return is_nan(x) ? x : std::copysign(std::numeric_limits<float>::infinity(), x);
  const int exponent = static_cast<int>(bits_of(size) >> mantissa_bits) - 127;
  const float unit = power_of_two(std::max(exponent, -14) - 10 + mantissa_bits);
  const float rounded = (size + unit) - unit;
  return float_of(bits_of(rounded) | (bits_of(x) & 0x80000000u));
}

// The result of a step that a tool computes in the weights' type.
[[nodiscard]] constexpr float round_to(DType weights, float x) noexcept {
  if (weights == DType::bfloat16) return round_to_bfloat16(x);
  return weights == DType::float16 ? round_to_float16(x) : x;
}

// A positive finite number as 2^exponent * (1 + mantissa * 2^-23).
struct Binary {
  int exponent = 0;
  std::uint32_t mantissa = 0;
};
[[nodiscard]] constexpr Binary split(float x) noexcept {
  const std::uint32_t bits = bits_of(x);
  if (bits >= 1u << mantissa_bits) {
    return {static_cast<int>(bits >> mantissa_bits) - 127, bits & ((1u << mantissa_bits) - 1)};
  }
  const int top = std::bit_width(bits) - 1;
  return {top - 149, (bits << (mantissa_bits - top)) - (1u << mantissa_bits)};
}

// The smallest exponent whose power of two is not less than x, exactly. Precondition: x > 0, finite.
[[nodiscard]] constexpr int exact_ceil_log2(float x) noexcept {
  const Binary parts = split(x);
  return parts.exponent + (parts.mantissa != 0 ? 1 : 0);
}

// How many steps of 2^-23 above 2^exponent log2 still rounds to `exponent` in float32: half of the last bit of
// `exponent`, times ln 2. A power of two has a neighbour of half that distance on the side of zero.
[[nodiscard]] constexpr double log2_steps(int exponent, bool towards_zero) noexcept {
  if (exponent == 0) return 0;
  const auto size = static_cast<unsigned>(exponent < 0 ? -exponent : exponent);
  const int j = std::bit_width(size) - 1;
  constexpr double ln2 = 0.693147180559945309417;
  const double steps = ln2 * static_cast<double>(1u << j) / 2;
  return towards_zero && std::has_single_bit(size) ? steps / 2 : steps;
}

// Ceiling and floor of log2(x) rounded to float32, as PyTorch and NumPy compute them. Precondition: x > 0, finite.
[[nodiscard]] constexpr int ceil_log2(float x) noexcept {
  const Binary parts = split(x);
  const bool stays = static_cast<double>(parts.mantissa) <= log2_steps(parts.exponent, parts.exponent < 0);
  return stays ? parts.exponent : parts.exponent + 1;
}
[[nodiscard]] constexpr int floor_log2(float x) noexcept {
  const Binary parts = split(x);
  // 2^(exponent + 1) * (1 - below * 2^-24)
  const int next = parts.exponent + 1;
  const double below = static_cast<double>((1u << mantissa_bits) - parts.mantissa);
  return below <= 2 * log2_steps(next, next > 0) ? next : parts.exponent;
}

// The float8_e4m3fn code nearest to a number that is not negative, ties to even: at most 448, or NaN.
[[nodiscard]] constexpr std::uint8_t e4m3_code(float x) noexcept {
  if (is_nan(x)) return 0x7f;
  const float limited = std::min(x, 448.0f);
  if (limited < 0x1p-6f) {  // a multiple of 2^-9: the last bit of 2^14
    return static_cast<std::uint8_t>(bits_of(limited + 0x1p14f) - bits_of(0x1p14f));
  }
  const std::uint32_t bits = bits_of(limited);
  return static_cast<std::uint8_t>((bits + 0x7ffff + (bits >> 20 & 1)) / (1u << 20) - ((127u - 7u) << 3));
}

// Precondition: the code of a number that is not negative, or of NaN.
[[nodiscard]] constexpr float e4m3_number(std::uint8_t code) noexcept {
  if (code == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (code < 8) return static_cast<float>(code) * 0x1p-9f;
  return float_of((code + ((127u - 7u) << 3)) << 20);
}

}  // namespace tensorcast::block
