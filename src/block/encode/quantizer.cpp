// SPDX-License-Identifier: Apache-2.0
#include "block/encode/quantizer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "block/gguf/gguf_encode.hpp"
#include "block/recipe/float_steps.hpp"
#include "block/recipe/run_encoder.hpp"
#include "block/tuning.hpp"
#include "cast/parallel.hpp"
#include "cast/tuning.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/error_places.hpp"
#include "dtype/platform.hpp"
#include "dtype/prefetch.hpp"
#include "dtype/try.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {

Result<Quantizer> Quantizer::make(SharedLayout layout, const WholeWeight& weight) {
  if (layout->needs_maximum()) {
    const float largest = TRY(weight.maximum());
    return Quantizer(std::move(layout), largest);
  }
  const bool is_zero = layout->is_default && weight.is_zero != nullptr && TRY(weight.is_zero());
  return Quantizer(std::move(layout), 0.0f, is_zero);
}

Quantizer::Quantizer(SharedLayout layout, float largest, bool is_zero)
    : layout_(std::move(layout)), is_zero_(is_zero), scales_(*layout_, largest), codes_(*layout_, scales_) {}

// Rows of one matrix that share scales.
Result<void> Quantizer::run_band(std::size_t first, std::size_t count, QuantizerWork& work) const {
  const WeightLayout& layout = *layout_;
  const std::size_t used = (layout.columns * static_cast<std::size_t>(layout.recipe->element.bits) + 7) / 8;
  const std::size_t padded = work.column_end == layout.columns ? count : 0;  // rows
  for (std::size_t row = first; row < first + padded; ++row) {
    std::byte* const codes = work.codes_of(row);
    std::fill(codes + used, codes + layout.codes_row_bytes, std::byte{0});
  }
  const std::size_t wanted = count > 1 ? band_columns : layout.numbers.piece();
  const std::size_t most = std::max(layout.block_columns, wanted / layout.block_columns * layout.block_columns);
  for (std::size_t column = work.column_begin; column < work.column_end; column += most) {
    const Stretch stretch{first, count, column, std::min(most, work.column_end - column)};
    if (layout.is_per_tensor()) {
      codes_.put(stretch, scales_.of_tensor().operand, work);
      continue;
    }
    if (Result<void> done = scales_.put(stretch, work); !done) return done;
    codes_.put(stretch, work);
  }
  return {};
}

Result<void> Quantizer::run_gguf(std::size_t first, std::size_t count, QuantizerWork& work) const {
  const WeightLayout& layout = *layout_;
  const GgufBlockSize size = block_size(layout.recipe->gguf);
  const GgufEncode encode = gguf_encoder(layout.recipe->gguf);
  const bool is_weighed = !layout.importance.empty() && weighs_importance(layout.recipe->gguf);
  const std::byte* const numbers = work.numbers + layout.numbers.bytes(work.number_at(first, 0));
  auto* to = reinterpret_cast<std::uint8_t*>(work.codes_of(first));
  // Numbers of 32 bits are copied as fast as memory gives them; those of 16 bits take longer to convert.
  const bool prefetches = layout.numbers.bytes(1) == sizeof(float);
  // Searches of large blocks take longer than memory, and four at a time are faster.
  const bool is_read_in_halves = prefetches && size.elements < gguf_numbers / 4;
  const std::size_t total = count * layout.columns, most = is_read_in_halves ? gguf_numbers / 2 : gguf_numbers;
  std::array<float, gguf_numbers> part, importance;
  for (std::size_t done = 0; done < total; done += most) {
    const std::size_t n = std::min(most, total - done), blocks = n / size.elements;
    layout.numbers.load(numbers, done, n, part.data());
    const std::size_t next = done + n;
    if (prefetches) prefetch(numbers + layout.numbers.bytes(next), layout.numbers.bytes(std::min(n, total - next)));
    const bool is_all_finite =
        largest_bits(reinterpret_cast<const std::byte*>(part.data()), DType::float32, n) < infinity_bits;
    const auto refused = [&](float x) { return layout.numbers.refuses(x); };
    if (!is_all_finite && std::any_of(part.data(), part.data() + n, refused)) {
      return Error{.code = ErrorCode::out_of_range};
    }
    for (std::size_t i = 0; is_weighed && i < n; i += size.elements) {
      const std::size_t at = done + i;
      const float* const of_block = layout.importance_of(first + at / layout.columns, at % layout.columns);
      std::copy_n(of_block, size.elements, importance.begin() + static_cast<std::ptrdiff_t>(i));
    }
    encode(part.data(), is_weighed ? importance.data() : nullptr, blocks, to);
    to += blocks * size.bytes;
  }
  return {};
}

Result<void> Quantizer::run_bands(std::size_t first, std::size_t count, QuantizerWork& work) const {
  if (layout_->is_gguf()) return run_gguf(first, count, work);
  const std::size_t matrix_rows = layout_->matrix_rows;
  for (std::size_t row = first; row < first + count;) {
    const std::size_t rows = std::min({layout_->band_rows, matrix_rows - row % matrix_rows, first + count - row});
    if (Result<void> done = run_band(row, rows, work); !done) return done;
    row += rows;
  }
  return {};
}

// Scales that do not come from blocks: the one of the weight, and those of a weight of zeros.
void Quantizer::put_shared_scales(std::size_t first, std::size_t count, const QuantizedRows& out,
                                  bool has_nonzero) const {
  if (layout_->is_per_tensor()) std::memcpy(out.scales, &scales_.of_tensor().number, sizeof(float));
  const bool is_zero = is_zero_ || (out.are_all && !layout_->needs_maximum() && !has_nonzero);
  if (!is_zero || !layout_->is_default) return;
  const DType type = layout_->recipe->scales;
  set_unit_scales(type, {out.scales, storage_bytes(type, layout_->scale_count(first, count))});
}

Result<void> Quantizer::run(std::size_t first, std::size_t count, const std::byte* numbers, const QuantizedRows& out,
                            const Execution& execution) const {
  const bool has_numbers = count != 0 && layout_->columns != 0;
  const bool has_nonzero = has_numbers && TRY(run_rows(first, count, numbers, out, execution));
  put_shared_scales(first, count, out, has_nonzero);
  return {};
}

// Returns whether a number was not zero.
Result<bool> Quantizer::run_rows(std::size_t first, std::size_t count, const std::byte* numbers,
                                 const QuantizedRows& out, const Execution& execution) const {
  const std::size_t columns = layout_->columns, band_rows = layout_->band_rows, block = layout_->block_columns;
  const std::size_t begin = layout_->band_of(first), bands = layout_->band_of(first + count) - begin;
  const std::size_t each = std::max<std::size_t>(1, task_elements / band_rows / columns);
  const std::size_t parts = ceil_div(bands, each);
  // Few blocks of many rows are not enough for many threads, which share their columns then.
  const std::size_t width = std::max<std::size_t>(1, task_elements / band_rows / block) * block;
  const bool shares_columns = TENSORCAST_HAS_THREADS && band_rows > 1 && execution.threads != 1;
  const auto wanted = static_cast<std::size_t>(shares_columns ? thread_count(execution) : 1);
  const std::size_t slices = std::clamp<std::size_t>(ceil_div(wanted, parts), 1, ceil_div(columns, width));
  const std::size_t slice = ceil_div(ceil_div(columns, slices), block) * block;
  const std::size_t tasks = parts * slices;
  const bool is_split = tasks > 1 && may_use_threads(execution);
  std::vector<Result<void>> results(tasks);
  std::vector<std::uint8_t> nonzero(tasks);
  run_tasks(tasks, execution, [&](std::size_t t) {
    const std::size_t part = t / slices, row = layout_->row_of(begin + part * each);
    const std::size_t end = std::min(layout_->row_of(begin + (part + 1) * each), first + count);
    const std::size_t column = std::min(t % slices * slice, columns);
    QuantizerWork work{.layout = layout_.get(),
                       .numbers = numbers,
                       .first = first,
                       .end = is_split ? end : first + count,
                       .column_begin = column,
                       .column_end = std::min(column + slice, columns),
                       .out = out};
    results[t] = run_bands(row, end - row, work);
    nonzero[t] = work.has_nonzero ? 1 : 0;
    if (out.bypasses_cache) kernels::ops_of(active_target()).stream_fence();  // other threads may read the codes then
  });
  for (const Result<void>& result : results) {
    if (result) continue;
    return counted_from(first * columns, layout_->numbers.refusal(numbers, count * columns));
  }
  return std::find(nonzero.begin(), nonzero.end(), 1) != nonzero.end();
}

Result<void> Quantizer::run(std::size_t first, std::size_t count, const std::byte* numbers, QuantizedTensor& out,
                            const Execution& execution) const {
  const auto size = [](std::size_t length) { return static_cast<std::int64_t>(length); };
  const QuantizedTensor& whole = layout_->tensor;
  out.recipe = whole.recipe;
  out.coding = whole.coding;
  out.shape = {size(count), size(layout_->columns)};
  out.block_rows = whole.block_rows;
  out.block_columns = whole.block_columns;
  out.codes_dtype = whole.codes_dtype;
  out.codes_shape = {size(count), size(layout_->codes_row_bytes / storage_bytes(whole.codes_dtype, 1))};
  out.scales_dtype = whole.scales_dtype;
  out.scales_shape = {size(layout_->scale_count(first, count))};
  out.global_scale = global_scale();
  return run(first, count, numbers, layout_->room_in(out, first, count), execution);
}

Result<void> Quantizer::run_here(std::size_t first, std::size_t count, const std::byte* numbers,
                                 const QuantizedRows& out, QuantizerWork& work) const {
  const std::size_t columns = layout_->columns;
  work.layout = layout_.get();
  work.numbers = numbers;
  work.first = first;
  work.end = first + count;
  work.column_begin = 0;
  work.column_end = columns;
  work.out = out;
  work.has_nonzero = work.are_ordinary = work.are_finite = false;
  // Others are set before they are read; these tell by being empty.
  work.low.clear();
  work.high.clear();
  work.cleared.clear();
  work.tables.clear();
  if (count != 0 && columns != 0 && !run_bands(first, count, work)) {
    return layout_->numbers.refusal(numbers, count * columns);
  }
  put_shared_scales(first, count, out, work.has_nonzero);
  return {};
}

}  // namespace tensorcast::block
