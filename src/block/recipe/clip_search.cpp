// SPDX-License-Identifier: Apache-2.0
#include "block/recipe/clip_search.hpp"

#include <algorithm>
#include <cstdint>

#include "block/recipe/float_steps.hpp"
#include "block/recipe/run_encoder.hpp"
#include "codec/reference_cast.hpp"

namespace tensorcast::block {
namespace {

constexpr int most_steps = 32;
constexpr float step_size = 0x1p-6f;
constexpr std::size_t chunk = 512;

// As dequantize() reads it.
float number_of(const Recipe& recipe, const BlockScale& scale, const ScaleContext& context) noexcept {
  if (recipe.scales == DType::float8_e8m0fnu) return power_of_two(static_cast<int>(scale.code) - 127);
  if (recipe.scales != DType::float8_e4m3fn) return scale.number;
  const float number = e4m3_number(scale.code);
  if (recipe.stored_global == GlobalScale::factor) return number * context.global;
  return recipe.stored_global == GlobalScale::divisor ? number / context.global : number;
}

bool is_same(const BlockScale& a, const BlockScale& b) noexcept {
  return a.code == b.code && bits_of(a.number) == bits_of(b.number) && a.zero_point == b.zero_point &&
         bits_of(a.operand.factor) == bits_of(b.operand.factor);
}

}  // namespace

ClipSearch::ClipSearch(const Recipe& recipe, ScaleRule scale) : recipe_(&recipe), scale_(scale) {
  static const codec::Policy policy{};
  const ElementRule& rule = recipe.element;
  const unsigned codes = 1u << rule.bits;
  for (unsigned code = 0; code < codes; ++code) {
    if (rule.element == DType::int8) {
      const int number = code < codes / 2 ? static_cast<int>(code) : static_cast<int>(code) - static_cast<int>(codes);
      decoded_[code] = static_cast<float>(number);
    } else {
      decoded_[code] =
          float_of(static_cast<std::uint32_t>(codec::cast_code(rule.element, code, DType::float32, policy).bits));
    }
  }
}

double ClipSearch::error_of(const BlockScale& scale, const ScaleContext& context, const BlockNumbers& block) const {
  const float number = number_of(*recipe_, scale, context);
  const auto zero = static_cast<float>(scale.zero_point);
  std::array<std::uint8_t, chunk> codes;
  double sum = 0.0;
  for (std::size_t done = 0; done < block.numbers.size(); done += chunk) {
    const std::span<const float> part = block.numbers.subspan(done, std::min(chunk, block.numbers.size() - done));
    if (scale.clears) {
      codes.fill(0);
    } else {
      encode(recipe_->element, context.weights, scale.operand, part, {codes.data(), part.size()});
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      const double error = static_cast<double>(part[i]) - static_cast<double>((decoded_[codes[i]] - zero) * number);
      const double importance = block.importance == nullptr ? 1.0 : block.importance[(done + i) % block.width];
      sum += importance * (error * error);
    }
  }
  return sum;
}

BlockScale ClipSearch::find(const Extent& extent, const ScaleContext& context, const BlockNumbers& block) const {
  BlockScale best;
  scale_({&extent, 1}, context, &best);
  if (extent.largest == 0.0f || !is_finite(extent.largest)) return best;
  double least = error_of(best, context, block);
  BlockScale last = best;
  for (int step = 1; step <= most_steps; ++step) {
    const float factor = 1.0f - step_size * static_cast<float>(step);
    const Extent smaller{.largest = extent.largest * factor, .low = extent.low * factor, .high = extent.high * factor};
    BlockScale tried;
    scale_({&smaller, 1}, context, &tried);
    if (is_same(tried, last)) continue;
    last = tried;
    if (const double error = error_of(tried, context, block); error < least) least = error, best = tried;
  }
  return best;
}

}  // namespace tensorcast::block
