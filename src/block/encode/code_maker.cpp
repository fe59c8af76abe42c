// SPDX-License-Identifier: Apache-2.0
#include "block/encode/code_maker.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "block/encode/scale_steps.hpp"
#include "block/format/code_packing.hpp"
#include "block/recipe/element_rule.hpp"
#include "block/recipe/float_steps.hpp"
#include "block/tuning.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/prefetch.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {

CodeMaker::CodeMaker(const WeightLayout& layout, const ScaleMaker& scales) : layout_(&layout) {
  if (layout.is_gguf()) return;
  encoder_ = RunEncoder(layout.recipe->element, layout.numbers.computed(),
                        {.numbers = layout.numbers.read(), .is_offset = layout.tensor.coding.element == DType::uint8});
  if (layout.is_searched || layout.rows * layout.columns < least_tabled_weight) return;
  if (const std::optional<kernels::ScaleSteps>& steps = scales.steps()) {
    std::array<float, 256> factors{};
    for (std::uint8_t code = 0; code != 255; ++code) factors[code] = factor_of_code(*steps, code);  // 255 is NaN
    steps_ = encoder_.make_steps(factors);
  } else if (encoder_.has_tables() && layout.scales_before(layout.rows) > MantissaTables::count) {
    std::array<Extent, MantissaTables::count> extents{};
    for (std::uint32_t i = 0; i < extents.size(); ++i) extents[i].largest = float_of((127u << 7 | i) << 16);
    std::array<BlockScale, MantissaTables::count> made;
    layout.scale(extents, scales.context(), made.data());
    std::array<Operand, MantissaTables::count> operands;
    for (std::size_t i = 0; i < operands.size(); ++i) operands[i] = made[i].operand;
    tables_ = std::make_shared<const MantissaTables>(encoder_, operands);
  }
}

void CodeMaker::put(const Stretch& stretch, QuantizerWork& work) const {
  put_codes(stretch, work.operands.data(), work);
  if (!work.are_ordinary) put_nan_codes(stretch, work);
}

// Null if runs are so short that tables would take longer to make than they save, or if there are none.
const kernels::MantissaTable* CodeMaker::tables_of(const Stretch& stretch, const Operand* operands,
                                                   QuantizerWork& work) const {
  const bool is_per_tensor = layout_->is_per_tensor();
  if (is_per_tensor && !work.tables.empty()) return work.tables.data();
  const std::size_t width = is_per_tensor ? layout_->columns : layout_->block_columns;
  const bool pays = std::min(width, layout_->columns) * stretch.rows >= least_tabled_block;
  if (!pays || width < kernels::run_step) return nullptr;
  work.tables.resize(ceil_div(stretch.columns, width));
  for (std::size_t i = 0; i < work.tables.size(); ++i) {
    if (tables_ != nullptr && tables_->find(work.largest[i], operands[i], work.tables[i])) continue;
    if (encoder_.make_table(operands[i], work.tables[i])) continue;
    work.tables.clear();
    return nullptr;
  }
  return work.tables.data();
}

void CodeMaker::put_codes(const Stretch& stretch, const Operand* operands, QuantizerWork& work) const {
  const WeightNumbers& numbers_of = layout_->numbers;
  const auto width = static_cast<std::size_t>(layout_->recipe->element.bits);
  const unsigned shift = layout_->run_shift;
  // Memory is idle while codes are computed, so what is read next is prefetched then.
  const bool is_measured = !layout_->is_per_tensor();
  const std::size_t next = is_measured ? work.steps_to_next(stretch) : prefetched_numbers;
  const std::size_t bytes = numbers_of.are_in_place() ? numbers_of.bytes(next) : 0;
  const kernels::MantissaTable* const tables = tables_of(stretch, operands, work);
  work.for_each_part(stretch, [&](std::size_t row, std::size_t column, const std::byte* numbers, std::size_t count) {
    const std::size_t begun = is_measured ? work.begun_bytes(bytes, count) : 0;
    const kernels::Ahead ahead{bytes + begun, begun != 0};
    if (next != 0 && bytes == 0) {
      prefetch(work.numbers + numbers_of.bytes(work.number_at(row, column) + next), numbers_of.bytes(count));
    }
    const std::size_t run = (column - stretch.column) >> shift;
    std::byte* const codes = work.codes_of(row) + column * width / 8;
    if (steps_ != nullptr && work.are_ordinary) {
      encoder_.run_steps(numbers, count, *steps_, work.scale_codes.data() + run, shift, codes, ahead);
      return;
    }
    if (encoder_.has_integer_steps() && work.are_finite) {
      return encoder_.run_integer_steps(numbers, count, operands + run, shift, codes, ahead);
    }
    encoder_.run(numbers, count, operands + run, shift, codes, {ahead, work.out.bypasses_cache},
                 tables == nullptr ? nullptr : tables + run);
  });
  if (work.out.bypasses_cache && !work.cleared.empty()) kernels::ops_of(active_target()).stream_fence();
  for (const std::size_t run : work.cleared) {
    const std::size_t begin = stretch.column + run * layout_->block_columns;
    const std::size_t end = std::min(begin + layout_->block_columns, layout_->columns);
    for (std::size_t row = stretch.row; row < stretch.row + stretch.rows; ++row) {
      std::byte* const codes = work.codes_of(row);
      std::fill(codes + begin * width / 8, codes + (end * width + 7) / 8, std::byte{0});
    }
  }
}

// Writes the codes of blocks whose scale is NaN or infinite, or that have NaN, again: as the tool has NaN.
void CodeMaker::put_nan_codes(const Stretch& stretch, QuantizerWork& work) const {
  const ElementRule& rule = layout_->recipe->element;
  if (rule.nan_code < 0) return;
  for (std::size_t i = 0; i < work.operands.size(); ++i) {
    if (is_finite(work.operands[i].factor) && !is_nan(work.extents[i].largest)) continue;
    const std::vector<float> block = work.block(stretch, i);
    const std::size_t width = block.size() / stretch.rows, column = stretch.column + i * layout_->block_columns;
    std::vector<std::uint8_t> codes(width);
    for (std::size_t row = 0; row < stretch.rows; ++row) {
      define_codes(rule, layout_->numbers.computed(), work.operands[i], {&block[row * width], width}, codes);
      pack_stream(rule.bits, codes,
                  work.codes_of(stretch.row + row) + column * static_cast<std::size_t>(rule.bits) / 8);
    }
  }
}

}  // namespace tensorcast::block
