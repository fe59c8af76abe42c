// SPDX-License-Identifier: Apache-2.0
#include "block/encode/scale_maker.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "block/encode/scale_steps.hpp"
#include "block/recipe/float_steps.hpp"
#include "block/recipe/run_encoder.hpp"
#include "block/tuning.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/prefetch.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {

ScaleMaker::ScaleMaker(const WeightLayout& layout, float largest) : layout_(&layout) {
  const Recipe& recipe = *layout.recipe;
  context_ = {.weights = layout.numbers.computed(),
              .element = limits_of(recipe.element.element),
              .largest = layout.needs_maximum() ? largest : 0.0f,
              .is_power_of_two = layout.is_power_of_two,
              .scale_of_zero_block_is_one = layout.is_default};
  if (recipe.global != nullptr) {
    context_.global = layout.is_default && largest == 0.0f ? 1.0f : recipe.global(largest, context_);
  }
  if (layout.is_gguf()) return;
  steps_ = steps_of(layout.scale, context_);
  if (layout.is_searched) clip_.emplace(recipe, layout.scale);
  const Extent whole{.largest = largest};
  if (layout.is_per_tensor()) layout.scale({&whole, 1}, context_, &tensor_scale_);
}

// Finds the largest magnitude of each run of a stretch, or its least and largest number where it has zero points.
void ScaleMaker::measure(const Stretch& stretch, std::size_t runs, QuantizerWork& work) const {
  const kernels::Ops& ops = kernels::ops_of(active_target());
  const DType read = layout_->numbers.read();
  const unsigned shift = layout_->run_shift;
  const std::size_t room = runs + kernels::run_step;  // for the zeros behind a row
  const bool needs_range = layout_->has_zero_points();
  work.largest.assign(room, 0);
  if (needs_range) {
    work.low.assign(room, 0.0f);
    work.high.assign(room, 0.0f);
  }
  const std::size_t ahead = work.bytes_to_next(stretch);
  work.for_each_part(stretch, [&](std::size_t, std::size_t column, const std::byte* numbers, std::size_t count) {
    // Half before and half after, as the CPU waits for few lines at a time.
    const std::size_t begun = work.begun_bytes(ahead, count) / 2;
    prefetch(numbers + ahead, begun);
    for_whole_steps(numbers, read, count, [&](const std::byte* step, std::size_t n, std::size_t done) {
      const std::size_t run = (column - stretch.column + done) >> shift;
      ops.largest_of_runs(step, read, n, shift, &work.largest[run]);
      if (needs_range) ops.range_of_runs(step, read, n, shift, &work.low[run], &work.high[run]);
    });
    prefetch(numbers + ahead + begun, begun);
  });
}

Result<void> ScaleMaker::put(const Stretch& stretch, QuantizerWork& work) const {
  const std::size_t runs = ceil_div(stretch.columns, layout_->block_columns);
  measure(stretch, runs, work);
  const std::size_t index = layout_->scales_before(stretch.row) - layout_->scales_before(work.first) +
                            stretch.column / layout_->block_columns;
  work.are_ordinary = put_ordinary(index, runs, work);
  if (work.are_ordinary) {
    work.has_nonzero = true;
    return {};
  }
  const auto end = work.largest.begin() + static_cast<std::ptrdiff_t>(runs);
  const std::uint32_t largest = *std::max_element(work.largest.begin(), end);
  if (layout_->numbers.refuses(float_of(largest))) return Error{.code = ErrorCode::out_of_range};
  work.has_nonzero = work.has_nonzero || largest != 0;
  work.extents.resize(runs);
  for (std::size_t i = 0; i < runs; ++i) work.extents[i] = {.largest = float_of(work.largest[i])};
  for (std::size_t i = 0; i < runs && !work.low.empty(); ++i) {
    work.extents[i].low = work.low[i], work.extents[i].high = work.high[i];
  }
  work.are_finite = largest < infinity_bits;
  if (!work.are_finite && !take_nonfinite(stretch, work)) return Error{.code = ErrorCode::out_of_range};
  work.scales.resize(runs);
  layout_->scale(work.extents, context_, work.scales.data());
  for (std::size_t i = 0; i < runs && clip_; ++i) work.scales[i] = searched(stretch, i, work);
  keep(index, work);
  return {};
}

// Returns false, and nothing counts, if the scales of a stretch need their rule: if a block is not finite, or zero.
bool ScaleMaker::put_ordinary(std::size_t index, std::size_t runs, QuantizerWork& work) const {
  const kernels::ScaleBlocksFn scale_blocks = kernels::ops_of(active_target()).scale_blocks;
  if (!steps_ || clip_ || runs < least_vector_scales) return false;
  const std::size_t room = ceil_div(runs, kernels::run_step) * kernels::run_step;
  std::fill(work.largest.begin() + static_cast<std::ptrdiff_t>(runs),
            work.largest.begin() + static_cast<std::ptrdiff_t>(room), work.largest.front());
  work.operands.resize(room);
  work.scale_codes.resize(room);
  work.cleared.clear();
  if (!scale_blocks(work.largest.data(), room, *steps_, work.scale_codes.data(), work.operands.data())) return false;
  std::memcpy(work.out.scales + index, work.scale_codes.data(), runs);
  return true;
}

// Looks at the blocks with NaN or infinity one number after the other. Returns false if one is refused.
bool ScaleMaker::take_nonfinite(const Stretch& stretch, QuantizerWork& work) const {
  const WeightNumbers& numbers = layout_->numbers;
  if (!layout_->recipe->skips_nan && numbers.refuses_none()) return true;
  for (std::size_t i = 0; i < work.extents.size(); ++i) {
    if (is_finite(work.extents[i].largest)) continue;
    float largest = 0.0f;
    for (const float x : work.block(stretch, i)) {
      if (numbers.refuses(x)) return false;
      if (!is_nan(x)) largest = std::max(largest, magnitude(x));
    }
    if (layout_->recipe->skips_nan) work.extents[i].largest = largest;
  }
  return true;
}

BlockScale ScaleMaker::searched(const Stretch& stretch, std::size_t i, const QuantizerWork& work) const {
  const std::vector<float> block = work.block(stretch, i);
  const float* const importance = layout_->importance_of(stretch.row, stretch.column + i * layout_->block_columns);
  return clip_->find(work.extents[i], context_,
                     {.numbers = block, .importance = importance, .width = block.size() / stretch.rows});
}

// Writes the scales of a stretch, the first of them to `index`, and keeps what its codes need.
void ScaleMaker::keep(std::size_t index, QuantizerWork& work) const {
  work.operands.resize(work.scales.size());
  work.cleared.clear();
  const bool are_floats = layout_->recipe->scales == DType::float32;
  for (std::size_t i = 0; i < work.scales.size(); ++i, ++index) {
    const BlockScale& scale = work.scales[i];
    if (are_floats) {
      std::memcpy(work.out.scales + index * sizeof(float), &scale.number, sizeof(float));
    } else {
      work.out.scales[index] = static_cast<std::byte>(scale.code);
    }
    work.operands[i] = scale.operand;
    if (scale.clears) work.cleared.push_back(i);
    if (work.out.zero_points != nullptr) work.out.zero_points[index] = scale.zero_point;
  }
}

}  // namespace tensorcast::block
