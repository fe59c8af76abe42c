// SPDX-License-Identifier: Apache-2.0
// Codes of numbers whose scales are known, and what is prefetched meanwhile.
#include <algorithm>

#include <array>
#include <cstddef>

#include "block/float_steps.hpp"
#include "block/quantizer_work.hpp"
#include "block/scale_steps.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/prefetch.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {
namespace {

// Of weights with one scale, which are read once: how many numbers ahead.
constexpr std::size_t prefetched_numbers = 1024;

}  // namespace

// Tables that are worth their making.
void Quantizer::set_steps() {
  constexpr std::size_t least_numbers = std::size_t{1} << 18;  // fewer take as long as tables to make
  steps_ = steps_of(scale_, context_);
  code_steps_.reset();
  if (clip_ || rows_ * columns_ < least_numbers) return;
  if (steps_) {
    std::array<float, 256> factors{};
    for (std::uint8_t code = 0; code != 255; ++code) factors[code] = factor_of_code(*steps_, code);  // 255 is NaN
    code_steps_ = encoder_.make_steps(factors);
  } else if (encoder_.has_tables() && scales_before(rows_) > MantissaTables::count) {
    std::array<Extent, MantissaTables::count> extents{};
    for (std::uint32_t i = 0; i < extents.size(); ++i) extents[i].largest = float_of((127u << 7 | i) << 16);
    std::array<BlockScale, MantissaTables::count> scales;
    scale_(extents, context_, scales.data());
    std::array<Operand, MantissaTables::count> operands;
    for (std::size_t i = 0; i < operands.size(); ++i) operands[i] = scales[i].operand;
    tables_ = std::make_shared<const MantissaTables>(encoder_, operands);
  }
}

// How many numbers after its own the next stretch has those in the same place; 0: there is no next.
std::size_t Quantizer::steps_to_next(const Stretch& stretch, const Work& work) const {
  const std::size_t end = stretch.column + stretch.columns;
  if (end < work.column_end) return stretch.columns;
  return stretch.row + stretch.rows < work.end ? stretch.rows * columns_ - (stretch.column - work.column_begin) : 0;
}

// The same in bytes, for kernels that prefetch; 0: not known.
std::size_t Quantizer::bytes_to_next(const Stretch& stretch, const Work& work) const {
  return reads_in_place() ? storage_bytes(source_, steps_to_next(stretch, work)) : 0;
}

// What is prefetched of the next stretch while whole lines of the cache are measured: a quarter, as that takes a
// quarter of the time.
std::size_t Quantizer::begun_bytes(std::size_t ahead, std::size_t count) const {
  constexpr std::size_t quarters = 4, line = 64;
  const std::size_t bytes = storage_bytes(source_, count) / quarters;
  return ahead != 0 && bytes % line == 0 ? bytes : 0;
}

// Null if runs are so short that tables would take longer to make than they save, or if there are none.
const kernels::MantissaTable* Quantizer::tables_of(const Stretch& stretch, const Operand* operands, Work& work) const {
  constexpr std::size_t least_numbers = 1024;
  if (is_per_tensor() && !work.tables.empty()) return work.tables.data();
  const std::size_t width = is_per_tensor() ? columns_ : block_columns_;
  if (std::min(width, columns_) * stretch.rows < least_numbers || width < kernels::run_step) return nullptr;
  work.tables.resize(ceil_div(stretch.columns, width));
  for (std::size_t i = 0; i < work.tables.size(); ++i) {
    if (tables_ != nullptr && tables_->find(work.largest[i], operands[i], work.tables[i])) continue;
    if (encoder_.make_table(operands[i], work.tables[i])) continue;
    work.tables.clear();
    return nullptr;
  }
  return work.tables.data();
}

void Quantizer::put_codes(const Stretch& stretch, const Operand* operands, Work& work) const {
  const auto width = static_cast<std::size_t>(recipe_->element.bits);
  // Memory is idle while codes are computed, so what is read next is prefetched then.
  const bool is_measured = !is_per_tensor();
  const std::size_t next = is_measured ? steps_to_next(stretch, work) : prefetched_numbers;
  const std::size_t bytes = reads_in_place() ? storage_bytes(source_, next) : 0;
  const kernels::MantissaTable* const tables = tables_of(stretch, operands, work);
  for_each_part(stretch, work, [&](std::size_t row, std::size_t column, const std::byte* numbers, std::size_t count) {
    const std::size_t begun = is_measured ? begun_bytes(bytes, count) : 0;
    const kernels::Ahead ahead{bytes + begun, begun != 0};
    if (next != 0 && bytes == 0) {
      prefetch(work.numbers + storage_bytes(source_, (row - work.first) * columns_ + column + next),
               storage_bytes(source_, count));
    }
    const std::size_t run = (column - stretch.column) >> run_shift_;
    std::byte* const codes = work.out.codes + (row - work.first) * codes_row_bytes_ + column * width / 8;
    if (code_steps_ != nullptr && work.are_ordinary) {
      encoder_.run_steps(numbers, count, *code_steps_, work.scale_codes.data() + run, run_shift_, codes, ahead);
      return;
    }
    if (encoder_.has_integer_steps() && work.are_finite) {
      return encoder_.run_integer_steps(numbers, count, operands + run, run_shift_, codes, ahead);
    }
    encoder_.run(numbers, count, operands + run, run_shift_, codes, {ahead, work.out.bypasses_cache},
                 tables == nullptr ? nullptr : tables + run);
  });
  if (work.out.bypasses_cache && !work.cleared.empty()) kernels::ops_of(active_target()).stream_fence();
  for (const std::size_t run : work.cleared) {
    const std::size_t begin = stretch.column + run * block_columns_;
    const std::size_t end = std::min(begin + block_columns_, columns_);
    for (std::size_t row = stretch.row; row < stretch.row + stretch.rows; ++row) {
      std::byte* const codes = work.out.codes + (row - work.first) * codes_row_bytes_;
      std::fill(codes + begin * width / 8, codes + (end * width + 7) / 8, std::byte{0});
    }
  }
}

}  // namespace tensorcast::block
