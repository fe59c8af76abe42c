// SPDX-License-Identifier: Apache-2.0
// How the scale of a block comes from its largest magnitude: what the rules of scale_rule_*.hpp share.
#pragma once

#include <cstdint>
#include <span>

#include "block/recipe/element_rule.hpp"
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
  ElementLimits element;  // of floats
  float largest = 0.0f;   // of the tensor
  float global = 1.0f;    // its scale as it is stored
  bool is_power_of_two = false;
  bool scale_of_zero_block_is_one = false;  // a block of zeros, where the tool would divide 0 by 0
};

struct BlockScale {
  std::uint8_t code = 0;  // E8M0 or E4M3
  float number = 0.0f;    // where scales are float32
  Operand operand = {};
  bool clears = false;  // all elements become the code 0
  std::int8_t zero_point = 0;
};

// The scales of blocks one after the other: one function for each tool's way.
using ScaleRule = void (*)(std::span<const Extent> blocks, const ScaleContext& context, BlockScale* scales) noexcept;

// A rule for one block, as a rule for many.
template <BlockScale (*rule)(const Extent&, const ScaleContext&) noexcept>
void each(std::span<const Extent> blocks, const ScaleContext& context, BlockScale* scales) noexcept {
  const ScaleContext constant = context;  // which no store to `scales` changes
  for (const Extent& block : blocks) *scales++ = rule(block, constant);
}

// The scale of a tensor from its largest magnitude, as it is stored.
using GlobalRule = float (*)(float largest, const ScaleContext& context) noexcept;

}  // namespace tensorcast::block
