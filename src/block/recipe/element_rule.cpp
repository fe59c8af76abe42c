// SPDX-License-Identifier: Apache-2.0
// The definition: one number after the other, rounded by the codec. Slow; RunEncoder equals it.
#include "block/recipe/element_rule.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "block/recipe/float_steps.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast::block {
namespace {

// The codes' midpoints, from 0 to 6.
constexpr std::array<float, 7> e2m1_midpoints = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};

std::uint8_t e2m1_towards_zero(float size) noexcept {
  return static_cast<std::uint8_t>(
      std::count_if(e2m1_midpoints.begin(), e2m1_midpoints.end(), [&](float midpoint) { return size > midpoint; }));
}

// The first float4 code whose product with `scale` is nearest.
std::uint8_t search_e2m1(float number, float scale) noexcept {
  constexpr std::array<float, 8> sizes = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  std::uint8_t found = 0;
  float least = magnitude(number);
  for (std::uint8_t code = 1; code < 16; ++code) {
    const float size = sizes[code % 8] * scale;
    const float distance = magnitude((code < 8 ? size : -size) - number);
    if (distance < least) least = distance, found = code;
  }
  return found;
}

std::uint8_t float_code(const ElementRule& rule, float quotient) noexcept {
  static const codec::Policy policy{};
  const int sign_bit = rule.bits - 1;
  const bool is_negative = (bits_of(quotient) >> 31) != 0;
  const float size = magnitude(quotient);
  std::uint8_t code = 0;
  if (rule.ties == Ties::towards_zero) {
    code = is_nan(size) ? std::uint8_t{0} : e2m1_towards_zero(size);
  } else {
    const float limited = is_nan(size) ? size : std::min(size, limits_of(rule.element).largest);
    code = static_cast<std::uint8_t>(codec::cast_code(DType::float32, bits_of(limited), rule.element, policy).bits &
                                     ((1u << sign_bit) - 1));
  }
  bool has_sign = is_negative;
  if (rule.zeros == Zeros::negative_numbers) has_sign = quotient < 0;
  if (code == 0 && rule.zeros == Zeros::never_negative) has_sign = false;
  if (quotient == 0 && rule.zeros == Zeros::always_negative) has_sign = true;
  return static_cast<std::uint8_t>(code | (has_sign ? 1u << sign_bit : 0u));
}

std::uint8_t integer_code(const ElementRule& rule, DType weights, float quotient, float zero) noexcept {
  const float moved = rule.rounds ? round_to(weights, quotient + zero) : quotient + zero;
  const float limit = static_cast<float>(1 << (rule.bits - 1));
  const float limited = is_nan(moved) ? 0.0f : std::min(std::max(moved, -limit), limit - 1);
  constexpr float unit = 0x1.8p23f;
  const auto nearest = static_cast<int>((limited + unit) - unit);
  return static_cast<std::uint8_t>(static_cast<unsigned>(nearest) & ((1u << rule.bits) - 1));
}

}  // namespace

ElementLimits limits_of(DType element) noexcept {
  if (!is_castable(element) || family(element) != Family::floating) return {};
  const FloatFormat& format = row(element).format;
  const int bits = format.mantissa_bits, exponent = format.max_exponent();
  const auto mantissa = static_cast<float>((format.largest_code() & ((1u << bits) - 1)) + (1u << bits));
  return {std::ldexp(mantissa, exponent - bits), exponent, bits};
}

void define_codes(const ElementRule& rule, DType weights, const Operand& operand, std::span<const float> numbers,
                  std::span<std::uint8_t> codes) noexcept {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    float quotient = rule.multiplies ? numbers[i] * operand.factor : numbers[i] / operand.factor;
    if (rule.rounds) quotient = round_to(weights, quotient);
    if (rule.search != Search::none) {
      const bool is_quotient = rule.search == Search::quotients;
      codes[i] = search_e2m1(is_quotient ? quotient : numbers[i], is_quotient ? 1.0f : operand.factor);
      continue;
    }
    if (rule.nan_code >= 0 && is_nan(quotient)) {
      const unsigned sign = rule.nan_has_sign ? bits_of(quotient) >> 31 : 0;
      codes[i] = static_cast<std::uint8_t>(static_cast<unsigned>(rule.nan_code) | sign << (rule.bits - 1));
      continue;
    }
    codes[i] =
        rule.element == DType::int8 ? integer_code(rule, weights, quotient, operand.zero) : float_code(rule, quotient);
  }
}

}  // namespace tensorcast::block
