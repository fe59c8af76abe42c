// SPDX-License-Identifier: Apache-2.0
#include "block/quantizer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "block/convert_numbers.hpp"
#include "block/float_steps.hpp"
#include "block/gguf_encode.hpp"
#include "block/quantizer_work.hpp"
#include "block/tuning.hpp"
#include "cast/conversion.hpp"
#include "cast/parallel.hpp"
#include "cast/tuning.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/lower_case.hpp"
#include "dtype/platform.hpp"
#include "dtype/prefetch.hpp"
#include "dtype/try.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {
namespace {

// Small weights stay on this thread.
bool uses_threads(std::size_t tasks, const Execution& execution) {
  return tasks > 1 && execution.threads != 1 && may_use_threads(execution);
}

template <class Task>
void for_each_task(std::size_t tasks, const Execution& execution, const Task& task) {
  if (uses_threads(tasks, execution)) return run_tasks(tasks, execution, task);
  for (std::size_t t = 0; t < tasks; ++t) task(t);
}

std::string known_recipes(std::string_view scheme) {
  std::string known;
  for (const QuantizeRecipe& row : quantize_recipes()) {
    if (!is_same_name(row.scheme, scheme)) continue;
    known += known.empty() ? "" : ", ";
    known += row.recipe;
  }
  return known;
}

}  // namespace

bool is_weights_type(DType dtype) noexcept {
  return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16;
}

Result<Quantizer> Quantizer::make(DType weights, const Shape& shape, std::string_view scheme,
                                  const QuantizeOptions& options, GgufBlock gguf) {
  Quantizer made;
  const bool is_gguf = gguf != GgufBlock::none;
  if (is_gguf && gguf_encoder(gguf) == nullptr) return invalid(formatted("{} of GGUF cannot be written", scheme));
  const QuantizeRecipe* words =
      find_quantize_recipe(scheme, is_gguf && options.recipe.empty() ? "ggml" : options.recipe);
  if (words != nullptr && is_gguf && words->recipe != "ggml") words = nullptr;
  if (words == nullptr) {
    const std::string known = is_gguf ? std::string("ggml") : known_recipes(scheme);
    if (known.empty()) return invalid(formatted("no scheme \"{}\"", scheme));
    return invalid(formatted("no recipe \"{}\" for {}; there are {}", options.recipe, scheme, known));
  }
  made.source_ = weights;
  made.context_.weights = options.compute_dtype == DType::undefined ? weights : options.compute_dtype;
  if (family(weights) != Family::floating || bit_width(weights) < 8 || !is_weights_type(made.context_.weights)) {
    const bool is_float = family(weights) == Family::floating;
    return invalid(formatted("weights of type {}", name(is_weights_type(weights) ? made.context_.weights : weights)),
                   is_float ? "set `compute_dtype` to float32, bfloat16 or float16" : "");
  }
  const Result<std::size_t> count = element_count(shape);
  if (!count) return count.error();
  if (*count > std::numeric_limits<std::size_t>::max() / 64) return invalid("the weight is too large");
  const std::size_t rank = shape.size();
  made.columns_ = rank == 0 ? 1 : static_cast<std::size_t>(shape.back());
  made.matrix_rows_ = rank < 2 ? 1 : static_cast<std::size_t>(shape[rank - 2]);
  made.rows_ = made.columns_ == 0 ? 0 : *count / made.columns_;
  made.layout_.recipe = words;
  made.layout_.shape = shape;
  made.recipe_ = is_gguf ? &recipe_of(gguf) : &recipe_of(*words);
  if (options.nonfinite == NonFiniteWeights::tool) made.refused_ = made.recipe_->undefined;
  made.is_default_ = options.recipe.empty() && made.recipe_->gguf == GgufBlock::none;
  if (Result<void> fits = made.lay_out(scheme, options); !fits) return std::move(fits).error();
  if (Result<void> fits = made.take_search(scheme, options); !fits) return std::move(fits).error();
  if (!made.needs_maximum()) made.set_steps();  // else set_maximum() does
  return made;
}

Result<void> Quantizer::take_search(std::string_view scheme, const QuantizeOptions& options) {
  if (options.clip == Clip::mse) {
    if (recipe_->gguf != GgufBlock::none) {
      return invalid(formatted("{} of ggml has a search of its own, and no clipping", scheme));
    }
    if (is_per_tensor()) {
      return invalid(formatted("{} has one scale for the whole tensor, which is not searched", scheme));
    }
    clip_.emplace(*recipe_, scale_);
  }
  const std::size_t count = options.importance.size(), matrices = matrix_rows_ == 0 ? 0 : rows_ / matrix_rows_;
  if (count == 0) return {};
  if (count != columns_ && count != columns_ * matrices) {
    return invalid(formatted("importance of {} numbers, where the weight has {} columns", count, columns_));
  }
  const bool is_right = std::all_of(options.importance.begin(), options.importance.end(),
                                    [](float x) { return is_finite(x) && x >= 0.0f; });
  if (!is_right) return invalid("importance that is negative, NaN or infinite");
  importance_.assign(options.importance.begin(), options.importance.end());
  return {};
}

const float* Quantizer::importance_of(std::size_t row, std::size_t column) const noexcept {
  if (importance_.empty()) return nullptr;
  const std::size_t matrix = importance_.size() == columns_ ? 0 : row / matrix_rows_;
  return importance_.data() + matrix * columns_ + column;
}

Result<void> Quantizer::lay_out(std::string_view scheme, const QuantizeOptions& options) {
  const Recipe& recipe = *recipe_;
  QuantizedTensor& layout = layout_;
  const bool is_gguf = recipe.gguf != GgufBlock::none;
  const BlockFormat* format = find_block_format(scheme, is_gguf ? "gguf" : layout.recipe->spelling);
  if (format == nullptr) return invalid(formatted("no layout of {} for {}", scheme, layout.recipe->spelling));
  layout.coding = format->coding;
  layout.block_rows = format->block_rows;
  layout.block_columns = format->block_columns;
  std::vector<std::int64_t> dims(layout.shape.begin(), layout.shape.end());
  if (dims.empty()) dims.push_back(1);
  if (is_gguf) {
    const GgufBlockSize size = block_size(recipe.gguf);
    if (columns_ % size.elements != 0) {
      return invalid(formatted("{} columns are no whole blocks of {}", columns_, size.elements));
    }
    codes_row_bytes_ = columns_ / size.elements * size.bytes;
    dims.back() = static_cast<std::int64_t>(codes_row_bytes_);
    layout.codes_shape = dims;
    return {};
  }
  if (options.group_size != 0) {
    const bool has_groups = recipe.option == RecipeOption::group;
    if (!has_groups) return invalid(formatted("{} has no groups of a size of one's own", scheme));
    if (options.group_size != 32 && options.group_size != 64 && options.group_size != 128) {
      return invalid(formatted("groups of {}, which must be of 32, 64 or 128", options.group_size));
    }
    layout.block_columns = options.group_size;
  }
  const bool is_asymmetric = !options.symmetric;
  if (is_asymmetric && recipe.asymmetric == nullptr) return invalid(formatted("{} has no zero points", scheme));
  if (options.power_of_two_scales && recipe.option != RecipeOption::power_of_two) {
    return invalid(formatted("{} of {} has no scales that are powers of two", scheme, layout.recipe->recipe));
  }
  // One code after the other, low bits first, and scales by rows, whatever the tool's own files have.
  layout.coding.packing = BlockPacking::stream;
  layout.coding.swizzled = false;
  layout.coding.global = recipe.stored_global;
  if (recipe.option == RecipeOption::group && is_asymmetric) {
    layout.coding.offset = 0;
    layout.coding.zero_added = 8;
  }
  scale_ = is_asymmetric ? recipe.asymmetric : recipe.scale;
  context_.element = recipe.element.element;
  context_.is_power_of_two = options.power_of_two_scales;
  context_.scale_of_zero_block_is_one = is_default_;
  layout.scales_dtype = recipe.scales;
  band_rows_ = layout.block_rows <= 1 ? 1 : static_cast<std::size_t>(layout.block_rows);
  block_columns_ =
      layout.block_columns == 0 ? std::max<std::size_t>(columns_, 1) : static_cast<std::size_t>(layout.block_columns);
  grid_columns_ = ceil_div(columns_, block_columns_);
  run_shift_ =
      layout.block_columns == 0 ? kernels::shift_of_all : static_cast<unsigned>(std::countr_zero(block_columns_));
  const bool reads_source = source_ == DType::bfloat16 && context_.weights != DType::float16;
  read_ = reads_source && recipe.element.search == Search::none ? DType::bfloat16 : DType::float32;
  encoder_ = RunEncoder(recipe.element, context_.weights,
                        {.numbers = read_, .is_offset = layout.coding.element == DType::uint8});

  const auto width = static_cast<std::size_t>(recipe.element.bits);
  const bool is_words = layout.coding.element == DType::uint8;
  codes_row_bytes_ = is_words ? ceil_div(columns_ * width, 32) * 4 : ceil_div(columns_ * width, 8);
  layout.codes_dtype = is_words ? DType::int32 : width == 8 ? layout.coding.element : DType::uint8;
  std::vector<std::int64_t> grid = dims;
  dims.back() = static_cast<std::int64_t>(is_words ? codes_row_bytes_ / 4 : codes_row_bytes_);
  layout.codes_shape = dims;
  grid.back() = static_cast<std::int64_t>(grid_columns_);
  if (grid.size() > 1) {
    grid[grid.size() - 2] = static_cast<std::int64_t>(ceil_div(matrix_rows_, band_rows_));
  }
  if (is_per_tensor()) grid = {1};
  layout.scales_shape = grid;
  return {};
}

std::size_t Quantizer::scales_before(std::size_t row) const noexcept {
  if (recipe_->gguf != GgufBlock::none || is_per_tensor()) return 0;
  return band_of(row) * grid_columns_;
}

std::size_t Quantizer::scale_count(std::size_t first, std::size_t count) const noexcept {
  if (is_per_tensor()) return 1;
  return count == 0 ? 0 : scales_before(first + count) - scales_before(first);
}

// Rows that share scales, and the first of them: such bands begin anew with each matrix.
std::size_t Quantizer::band_of(std::size_t row) const noexcept {
  return row / matrix_rows_ * ceil_div(matrix_rows_, band_rows_) + ceil_div(row % matrix_rows_, band_rows_);
}

std::size_t Quantizer::row_of(std::size_t band) const noexcept {
  const std::size_t of_matrix = ceil_div(matrix_rows_, band_rows_);
  return band / of_matrix * matrix_rows_ + band % of_matrix * band_rows_;
}

// Numbers `first` and on of those at `numbers`, as the recipe sees them, in float32.
void Quantizer::load(const std::byte* numbers, std::size_t first, std::size_t count, float* out) const {
  auto* const floats = reinterpret_cast<std::byte*>(out);
  const std::byte* const from = numbers + storage_bytes(source_, first);
  if (context_.weights == source_ || context_.weights == DType::float32) {
    convert_numbers(source_, from, DType::float32, floats, count);
    return;
  }
  std::array<std::byte, piece_numbers * 2> rounded;
  for (std::size_t done = 0; done < count; done += piece_numbers) {
    const std::size_t n = std::min(piece_numbers, count - done);
    convert_numbers(source_, from + storage_bytes(source_, done), context_.weights, rounded.data(), n);
    convert_numbers(context_.weights, rounded.data(), DType::float32, floats + done * sizeof(float), n);
  }
}

// The same, in the type that the kernels read: where they are, if they are of it.
const std::byte* Quantizer::numbers_at(const std::byte* numbers, std::size_t first, std::size_t count,
                                       std::vector<float>& buffer) const {
  if (reads_in_place()) return numbers + storage_bytes(source_, first);
  buffer.resize(part_size());
  load(numbers, first, count, buffer.data());
  return reinterpret_cast<const std::byte*>(buffer.data());
}

Result<float> Quantizer::maximum(const std::byte* numbers, std::size_t count, const Execution& execution) const {
  const std::size_t tasks = ceil_div(count, task_elements);
  std::vector<std::uint32_t> largest(tasks);
  for_each_task(tasks, execution, [&](std::size_t task) {
    std::vector<float> buffer;
    const std::size_t end = std::min((task + 1) * task_elements, count);
    for (std::size_t at = task * task_elements; at < end; at += part_size()) {
      const std::size_t n = std::min(part_size(), end - at);
      largest[task] = std::max(largest[task], largest_bits(numbers_at(numbers, at, n, buffer), read_, n));
    }
  });
  const std::uint32_t bits = tasks == 0 ? 0 : *std::max_element(largest.begin(), largest.end());
  if (refuses(float_of(bits))) return nonfinite(numbers, 0, count);
  return float_of(bits);
}

void Quantizer::set_maximum(float largest) {
  is_zero_ = largest == 0.0f;
  if (!needs_maximum()) return;
  context_.largest = largest;
  if (recipe_->global != nullptr) {
    context_.global = is_default_ && largest == 0.0f ? 1.0f : recipe_->global(largest, context_);
    layout_.global_scale = context_.global;
  }
  set_steps();
  const Extent whole{.largest = largest};
  if (is_per_tensor()) scale_({&whole, 1}, context_, &tensor_scale_);
}

// Finds the largest magnitude of each run of a stretch, or its least and largest number where it has zero points.
void Quantizer::measure(const Stretch& stretch, std::size_t runs, Work& work) const {
  const kernels::Ops& ops = kernels::ops_of(active_target());
  const std::size_t room = runs + kernels::run_step;  // for the zeros behind a row
  const bool needs_range = has_zero_points();
  work.largest.assign(room, 0);
  if (needs_range) {
    work.low.assign(room, 0.0f);
    work.high.assign(room, 0.0f);
  }
  const std::size_t ahead = bytes_to_next(stretch, work);
  for_each_part(stretch, work, [&](std::size_t, std::size_t column, const std::byte* numbers, std::size_t count) {
    // Half before and half after, as the CPU waits for few lines at a time.
    const std::size_t begun = begun_bytes(ahead, count) / 2;
    prefetch(numbers + ahead, begun);
    for_whole_steps(numbers, read_, count, [&](const std::byte* step, std::size_t n, std::size_t done) {
      const std::size_t run = (column - stretch.column + done) >> run_shift_;
      ops.largest_of_runs(step, read_, n, run_shift_, &work.largest[run]);
      if (needs_range) ops.range_of_runs(step, read_, n, run_shift_, &work.low[run], &work.high[run]);
    });
    prefetch(numbers + ahead + begun, begun);
  });
}

// Finds the scales of a stretch.
Result<void> Quantizer::put_scales(const Stretch& stretch, Work& work) const {
  const std::size_t runs = ceil_div(stretch.columns, block_columns_);
  measure(stretch, runs, work);
  const std::size_t index = scales_before(stretch.row) - scales_before(work.first) + stretch.column / block_columns_;
  work.are_ordinary = put_ordinary_scales(index, runs, work);
  if (work.are_ordinary) {
    work.has_nonzero = true;
    return {};
  }
  const auto end = work.largest.begin() + static_cast<std::ptrdiff_t>(runs);
  const std::uint32_t largest = *std::max_element(work.largest.begin(), end);
  if (refuses(float_of(largest))) return Error{.code = ErrorCode::out_of_range};  // the caller names it
  work.has_nonzero = work.has_nonzero || largest != 0;
  work.extents.resize(runs);
  for (std::size_t i = 0; i < runs; ++i) work.extents[i] = {.largest = float_of(work.largest[i])};
  for (std::size_t i = 0; i < runs && !work.low.empty(); ++i) {
    work.extents[i].low = work.low[i], work.extents[i].high = work.high[i];
  }
  work.are_finite = largest < infinity_bits;
  if (!work.are_finite && !take_nonfinite(stretch, work)) return Error{.code = ErrorCode::out_of_range};
  work.scales.resize(runs);
  scale_(work.extents, context_, work.scales.data());
  for (std::size_t i = 0; i < runs && clip_; ++i) work.scales[i] = searched_scale(work.extents[i], stretch, i, work);
  keep_scales(index, work);
  return {};
}

// Returns false, and nothing counts, if the scales of a stretch need their rule: if a block is not finite, or zero.
bool Quantizer::put_ordinary_scales(std::size_t index, std::size_t runs, Work& work) const {
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

// Writes the scales of a stretch, the first of them to `index`, and keeps what its codes need.
void Quantizer::keep_scales(std::size_t index, Work& work) const {
  work.operands.resize(work.scales.size());
  work.cleared.clear();
  const bool are_floats = recipe_->scales == DType::float32;
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

// Of the i-th block of a stretch, row by row.
std::vector<float> Quantizer::numbers_of_block(const Stretch& stretch, std::size_t i, const Work& work) const {
  const std::size_t column = stretch.column + i * block_columns_;
  const std::size_t width = std::min(block_columns_, columns_ - column);
  std::vector<float> block(stretch.rows * width);
  for (std::size_t row = 0; row < stretch.rows; ++row) {
    load(work.numbers, (stretch.row + row - work.first) * columns_ + column, width, &block[row * width]);
  }
  return block;
}

BlockScale Quantizer::searched_scale(const Extent& extent, const Stretch& stretch, std::size_t i,
                                     const Work& work) const {
  const std::vector<float> block = numbers_of_block(stretch, i, work);
  return clip_->find(extent, context_,
                     {.numbers = block,
                      .importance = importance_of(stretch.row, stretch.column + i * block_columns_),
                      .width = block.size() / stretch.rows});
}

// Rows of one matrix that share scales.
Result<void> Quantizer::run_band(std::size_t first, std::size_t count, Work& work) const {
  const std::size_t used = (columns_ * static_cast<std::size_t>(recipe_->element.bits) + 7) / 8;
  const std::size_t padded = work.column_end == columns_ ? count : 0;  // rows
  for (std::size_t row = first; row < first + padded; ++row) {
    std::byte* const codes = work.out.codes + (row - work.first) * codes_row_bytes_;
    std::fill(codes + used, codes + codes_row_bytes_, std::byte{0});
  }
  const std::size_t wanted = count > 1 ? band_columns : part_size();
  const std::size_t most = std::max(block_columns_, wanted / block_columns_ * block_columns_);
  for (std::size_t column = work.column_begin; column < work.column_end; column += most) {
    const Stretch stretch{first, count, column, std::min(most, work.column_end - column)};
    if (is_per_tensor()) {
      put_codes(stretch, &tensor_scale_.operand, work);
      continue;
    }
    if (Result<void> done = put_scales(stretch, work); !done) return done;
    put_codes(stretch, work.operands.data(), work);
    if (!work.are_ordinary) put_nan_codes(stretch, work);
  }
  return {};
}

Result<void> Quantizer::run_gguf(std::size_t first, std::size_t count, Work& work) const {
  const GgufBlockSize size = block_size(recipe_->gguf);
  const GgufEncode encode = gguf_encoder(recipe_->gguf);
  const bool is_weighed = !importance_.empty() && weighs_importance(recipe_->gguf);
  const std::byte* const numbers = work.numbers + storage_bytes(source_, (first - work.first) * columns_);
  auto* to = reinterpret_cast<std::uint8_t*>(work.out.codes + (first - work.first) * codes_row_bytes_);
  // Numbers of 32 bits are copied as fast as memory gives them; those of 16 bits take longer to convert.
  const bool prefetches = source_ == DType::float32;
  const std::size_t total = count * columns_, most = prefetches ? gguf_numbers / 2 : gguf_numbers;
  std::array<float, gguf_numbers> part, importance;
  for (std::size_t done = 0; done < total; done += most) {
    const std::size_t n = std::min(most, total - done), blocks = n / size.elements;
    load(numbers, done, n, part.data());
    const std::size_t next = done + n;
    if (prefetches) {
      prefetch(numbers + storage_bytes(source_, next), storage_bytes(source_, std::min(n, total - next)));
    }
    const bool is_all_finite =
        largest_bits(reinterpret_cast<const std::byte*>(part.data()), DType::float32, n) < infinity_bits;
    const auto refused = [&] { return std::any_of(part.data(), part.data() + n, [&](float x) { return refuses(x); }); };
    if (!is_all_finite && refused()) return Error{.code = ErrorCode::out_of_range};
    for (std::size_t i = 0; is_weighed && i < n; i += size.elements) {
      const float* const of_block = importance_of(first + (done + i) / columns_, (done + i) % columns_);
      std::copy_n(of_block, size.elements, importance.begin() + static_cast<std::ptrdiff_t>(i));
    }
    encode(part.data(), is_weighed ? importance.data() : nullptr, blocks, to);
    to += blocks * size.bytes;
  }
  return {};
}

Result<void> Quantizer::run_bands(std::size_t first, std::size_t count, Work& work) const {
  if (recipe_->gguf != GgufBlock::none) return run_gguf(first, count, work);
  for (std::size_t row = first; row < first + count;) {
    const std::size_t in_matrix = row % matrix_rows_;
    const std::size_t rows = std::min({band_rows_, matrix_rows_ - in_matrix, first + count - row});
    if (Result<void> done = run_band(row, rows, work); !done) return done;
    row += rows;
  }
  return {};
}

// Scales that do not come from blocks: the one of the weight, and those of a weight of zeros.
void Quantizer::put_shared_scales(std::size_t first, std::size_t count, const QuantizedRows& out,
                                  bool has_nonzero) const {
  if (is_per_tensor()) std::memcpy(out.scales, &tensor_scale_.number, sizeof(float));
  const bool is_zero = is_zero_ || (out.are_all && !needs_maximum() && !has_nonzero);
  if (!is_zero || !marks_zeros()) return;
  set_unit_scales({out.scales, storage_bytes(recipe_->scales, scale_count(first, count))});
}

Result<bool> Quantizer::run(std::size_t first, std::size_t count, const std::byte* numbers, const QuantizedRows& out,
                            const Execution& execution) const {
  const bool has_numbers = count != 0 && columns_ != 0;
  const bool has_nonzero = has_numbers && TRY(run_rows(first, count, numbers, out, execution));
  put_shared_scales(first, count, out, has_nonzero);
  return has_nonzero;
}

Result<bool> Quantizer::run_rows(std::size_t first, std::size_t count, const std::byte* numbers,
                                 const QuantizedRows& out, const Execution& execution) const {
  const std::size_t begin = band_of(first), bands = band_of(first + count) - begin;
  const std::size_t each = std::max<std::size_t>(1, task_elements / band_rows_ / columns_);
  const std::size_t parts = ceil_div(bands, each);
  // Few blocks of many rows are not enough for many threads, which share their columns then.
  const std::size_t width = std::max<std::size_t>(1, task_elements / band_rows_ / block_columns_) * block_columns_;
  const bool shares_columns = TENSORCAST_HAS_THREADS && band_rows_ > 1 && execution.threads != 1;
  const auto wanted = static_cast<std::size_t>(shares_columns ? thread_count(execution) : 1);
  const std::size_t slices = std::clamp<std::size_t>(ceil_div(wanted, parts), 1, ceil_div(columns_, width));
  const std::size_t slice = ceil_div(ceil_div(columns_, slices), block_columns_) * block_columns_;
  const std::size_t tasks = parts * slices;
  const bool is_split = uses_threads(tasks, execution);
  std::vector<Result<void>> results(tasks);
  std::vector<std::uint8_t> nonzero(tasks);
  const auto task = [&](std::size_t t) {
    const std::size_t part = t / slices, row = row_of(begin + part * each);
    const std::size_t end = std::min(row_of(begin + (part + 1) * each), first + count);
    const std::size_t column = std::min(t % slices * slice, columns_);
    Work work{.numbers = numbers,
              .first = first,
              .end = is_split ? end : first + count,
              .column_begin = column,
              .column_end = std::min(column + slice, columns_),
              .out = out};
    results[t] = run_bands(row, end - row, work);
    nonzero[t] = work.has_nonzero ? 1 : 0;
    if (out.bypasses_cache) kernels::ops_of(active_target()).stream_fence();  // other threads may read the codes then
  };
  for_each_task(tasks, execution, task);
  for (const Result<void>& result : results) {
    if (result) continue;
    Error error = nonfinite(numbers, 0, count * columns_);
    if (error.element) *error.element += first * columns_;
    return error;
  }
  return std::find(nonzero.begin(), nonzero.end(), 1) != nonzero.end();
}

QuantizedRows Quantizer::room_in(QuantizedTensor& out, std::size_t first, std::size_t count) const {
  const std::size_t scales = scale_count(first, count);
  out.codes.resize(count * codes_row_bytes_);
  out.scales.resize(scales == 0 ? 0 : storage_bytes(recipe_->scales, scales));
  out.zero_points.resize(has_zero_points() ? scales : 0);
  return {out.codes.data(), out.scales.data(), has_zero_points() ? out.zero_points.data() : nullptr};
}

Result<bool> Quantizer::run(std::size_t first, std::size_t count, const std::byte* numbers, QuantizedTensor& out,
                            const Execution& execution) const {
  const auto size = [](std::size_t length) { return static_cast<std::int64_t>(length); };
  out.recipe = layout_.recipe;
  out.coding = layout_.coding;
  out.shape = {size(count), size(columns_)};
  out.block_rows = layout_.block_rows;
  out.block_columns = layout_.block_columns;
  out.codes_dtype = layout_.codes_dtype;
  out.codes_shape = {size(count), size(codes_row_bytes_ / storage_bytes(layout_.codes_dtype, 1))};
  out.scales_dtype = layout_.scales_dtype;
  out.scales_shape = {size(scale_count(first, count))};
  out.global_scale = layout_.global_scale;
  return run(first, count, numbers, room_in(out, first, count), execution);
}

Result<bool> Quantizer::run_here(std::size_t first, std::size_t count, const std::byte* numbers,
                                 const QuantizedRows& out, Work& work) const {
  work.numbers = numbers;
  work.first = first;
  work.end = first + count;
  work.column_begin = 0;
  work.column_end = columns_;
  work.out = out;
  work.has_nonzero = work.are_ordinary = work.are_finite = false;
  // Others are set before they are read; these tell by being empty.
  work.low.clear();
  work.high.clear();
  work.cleared.clear();
  work.tables.clear();
  if (count != 0 && columns_ != 0 && !run_bands(first, count, work)) return nonfinite(numbers, 0, count * columns_);
  put_shared_scales(first, count, out, work.has_nonzero);
  return work.has_nonzero;
}

bool Quantizer::results_bypass_cache() const noexcept {
  const std::size_t bytes = rows_ * (storage_bytes(source_, columns_) + codes_row_bytes_);
  const bool are_whole_lines = recipe_->element.bits == 8 && columns_ % kernels::run_step == 0;
  // Codes of what only tools take are stored twice.
  return are_whole_lines && refused_ == UnspecifiedInputs::both && bytes >= bypass_cache_min_bytes &&
         stores_bypass_buffer(active_target());
}

void Quantizer::set_unit_scales(std::span<std::byte> scales) const noexcept {
  if (recipe_->scales == DType::float32) {
    constexpr float one = 1.0f;
    for (std::size_t i = 0; i < scales.size(); i += sizeof(one)) std::memcpy(&scales[i], &one, sizeof(one));
    return;
  }
  const auto one = std::byte{recipe_->scales == DType::float8_e8m0fnu ? std::uint8_t{127} : std::uint8_t{0x38}};
  std::fill(scales.begin(), scales.end(), one);
}

}  // namespace tensorcast::block
