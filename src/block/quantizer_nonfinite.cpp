// SPDX-License-Identifier: Apache-2.0
// NaN and infinity: what is refused, and blocks whose codes the kernels do not make as the tool does.
#include <algorithm>
#include <array>

#include "block/code_packing.hpp"
#include "block/element_rule.hpp"
#include "block/float_steps.hpp"
#include "block/quantizer_work.hpp"
#include "dtype/formatted.hpp"

namespace tensorcast::block {

// The error of the first number that is refused, among those from `first` on.
Error Quantizer::nonfinite(const std::byte* numbers, std::size_t first, std::size_t count) const {
  constexpr std::size_t chunk = 1024;
  std::array<float, chunk> floats;
  for (std::size_t done = 0; done < count; done += chunk) {
    const std::size_t n = std::min(chunk, count - done);
    load(numbers, first + done, n, floats.data());
    for (std::size_t i = 0; i < n; ++i) {
      if (!refuses(floats[i])) continue;
      Error error{.code = ErrorCode::out_of_range,
                  .message = formatted("{} has no block scale", is_nan(floats[i]) ? "NaN" : "infinity"),
                  .hint = "set `nonfinite` to tool to quantize it as the recipe's tool does",
                  .element = first + done + i};
      if (has(recipe_->undefined, floats[i])) {
        error.message += formatted(", and what {} makes of it is undefined", layout_.recipe->recipe);
        error.hint.clear();
      }
      return error;
    }
  }
  return Error{.message = "no number is NaN or infinite"};
}

// Looks at the blocks with NaN or infinity one number after the other. Returns false if one is refused.
bool Quantizer::take_nonfinite(const Stretch& stretch, Work& work) const {
  if (!recipe_->skips_nan && refused_ == UnspecifiedInputs::none) return true;
  for (std::size_t i = 0; i < work.extents.size(); ++i) {
    if (is_finite(work.extents[i].largest)) continue;
    float largest = 0.0f;
    for (const float x : numbers_of_block(stretch, i, work)) {
      if (refuses(x)) return false;
      if (!is_nan(x)) largest = std::max(largest, magnitude(x));
    }
    if (recipe_->skips_nan) work.extents[i].largest = largest;
  }
  return true;
}

// Writes the codes of blocks whose scale is NaN or infinite, or that have NaN, again: as the tool has NaN.
void Quantizer::put_nan_codes(const Stretch& stretch, Work& work) const {
  if (recipe_->element.nan_code < 0) return;
  const auto bits = static_cast<std::size_t>(recipe_->element.bits);
  for (std::size_t i = 0; i < work.operands.size(); ++i) {
    if (is_finite(work.operands[i].factor) && !is_nan(work.extents[i].largest)) continue;
    const std::vector<float> block = numbers_of_block(stretch, i, work);
    const std::size_t width = block.size() / stretch.rows, column = stretch.column + i * block_columns_;
    std::vector<std::uint8_t> codes(width);
    for (std::size_t row = 0; row < stretch.rows; ++row) {
      define_codes(recipe_->element, context_.weights, work.operands[i], {&block[row * width], width}, codes);
      std::byte* const of_row = work.out.codes + (stretch.row + row - work.first) * codes_row_bytes_;
      pack_stream(recipe_->element.bits, codes, of_row + column * bits / 8);
    }
  }
}

}  // namespace tensorcast::block
