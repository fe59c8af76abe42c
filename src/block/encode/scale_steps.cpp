// SPDX-License-Identifier: Apache-2.0
#include "block/encode/scale_steps.hpp"

#include <array>

#include "block/recipe/float_steps.hpp"
#include "block/recipe/scale_rule_mx.hpp"
#include "block/recipe/scale_rule_nv.hpp"

namespace tensorcast::block {
namespace {

using kernels::ScaleFactor;
using Steps = std::optional<kernels::ScaleSteps>;

// --- E8M0

constexpr std::uint32_t up = (1u << mantissa_bits) - 1;                                          // to a power of two
constexpr std::uint32_t half_up(int bits) noexcept { return 1u << (mantissa_bits - bits - 1); }  // to so many bits

// The exponent of the largest number, less that of the element's.
Steps of_exponent(const ElementLimits& element, std::uint32_t added) noexcept {
  return {{.is_e8m0 = true, .added = added, .offset = -element.exponent}};
}
Steps floor(const ScaleContext& context) noexcept { return of_exponent(context.element, 0); }
Steps ceil(const ScaleContext& context) noexcept { return of_exponent(context.element, up); }
Steps even(const ScaleContext& context) noexcept {
  const ElementLimits& element = context.element;
  return of_exponent(element, half_up(element.mantissa));
}
Steps mx_compressed_tensors(const ScaleContext& context) noexcept {
  if (context.weights == DType::float16) return {};  // subnormal numbers are far more
  const ElementLimits& element = context.element;
  return of_exponent(element, half_up(element.mantissa == 3 && element.exponent == 2 ? 3 : 1));
}

// A quotient, rounded up to a power of two.
Steps rceil(const ScaleContext& context) noexcept {
  return {{.is_e8m0 = true, .multiplier = 1.0f / context.element.largest, .added = up, .is_inverse = true}};
}
Steps deepgemm(const ScaleContext& context) noexcept {
  return {{.is_e8m0 = true, .divisor = context.element.largest, .least = 1e-4f, .added = up, .is_inverse = true}};
}
Steps mlx(const ScaleContext& context) noexcept {
  if (context.weights != DType::float32) return {};  // a quotient is rounded to the weights' type
  return {{.is_e8m0 = true, .divisor = context.element.largest, .added = up}};
}

// --- E4M3

Steps modelopt(const ScaleContext& context) noexcept {
  return {{.divisor = 6.0f * context.global, .least = 0x1p-9f, .constant = context.global}};
}
Steps nv_compressed_tensors(const ScaleContext& context) noexcept {
  if (context.weights != DType::float32) return {};
  return {{.divisor = 6.0f, .multiplier = context.global, .factor = ScaleFactor::quotient, .constant = context.global}};
}
Steps torchao(const ScaleContext& context) noexcept {
  return {{.divisor = 6.0f,
           .second_divisor = context.global,
           .least = 0x1p-6f,
           .factor = ScaleFactor::inverse_quotient,
           .constant = 1.0f / context.global}};
}
Steps torchao_one_level(const ScaleContext&) noexcept {
  return {{.divisor = 6.0f, .least = 0x1p-6f, .factor = ScaleFactor::inverse_quotient}};
}
Steps te(const ScaleContext& context) noexcept {
  return {{.multiplier = nv::te_encode(context.largest) * (1.0f / 6.0f),
           .factor = ScaleFactor::inverse_product,
           .constant = context.global}};
}
Steps comfy(const ScaleContext& context) noexcept {
  return {{.divisor = 6.0f, .second_divisor = context.global, .constant = context.global}};
}

struct Row {
  ScaleRule rule;
  Steps (*steps)(const ScaleContext& context) noexcept;
};
constexpr auto rows = std::to_array<Row>({
    {each<mx::floor>, floor},
    {each<mx::ceil>, ceil},
    {each<mx::even>, even},
    {each<mx::quark>, even},
    {each<mx::compressed_tensors>, mx_compressed_tensors},
    {each<mx::rceil>, rceil},
    {each<mx::deepgemm>, deepgemm},
    {each<mx::mlx>, mlx},
    {each<nv::modelopt>, modelopt},
    {each<nv::compressed_tensors>, nv_compressed_tensors},
    {each<nv::torchao>, torchao},
    {each<nv::torchao_one_level>, torchao_one_level},
    {each<nv::te>, te},
    {each<nv::comfy>, comfy},
});

}  // namespace

std::optional<kernels::ScaleSteps> steps_of(ScaleRule rule, const ScaleContext& context) noexcept {
  for (const Row& row : rows) {
    if (row.rule == rule) return row.steps(context);
  }
  return {};
}

float factor_of_code(const kernels::ScaleSteps& steps, std::uint8_t code) noexcept {
  if (steps.is_e8m0) {
    return float_of((steps.is_inverse ? 254u - code : std::uint32_t{code}) << mantissa_bits & infinity_bits);
  }
  const float scale = e4m3_number(code & 0x7f);
  switch (steps.factor) {
    case ScaleFactor::product:
      return scale * steps.constant;
    case ScaleFactor::quotient:
      return scale / steps.constant;
    case ScaleFactor::inverse_quotient:
      return steps.constant / scale;
    default:
      return 1.0f / (scale * steps.constant);
  }
}

}  // namespace tensorcast::block
