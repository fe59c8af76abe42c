#include "block/quantizer.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "block/code_packing.hpp"
#include "block/float_steps.hpp"
#include "block/gguf_encode.hpp"
#include "cast/conversion.hpp"
#include "cast/parallel.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t most_together = 512;  // codes that encode_quotients() makes at once
constexpr std::size_t chunk = 2048;         // numbers and codes that stay in the first-level cache
constexpr std::size_t task_elements = std::size_t{1} << 18;

void convert(DType from, const std::byte* src, DType to, std::byte* dst, std::size_t count) {
  if (from == to) {
    std::memcpy(dst, src, storage_bytes(from, count));
    return;
  }
  static const codec::Policy policy{};
  kernels::find_kernel(active_target(), from, to)->run(src, dst, count, policy);
}

// The largest magnitude as bits, so that NaN is above all.
std::uint32_t largest_bits(std::span<const float> numbers) noexcept {
  std::uint32_t largest = 0;
  for (const float number : numbers) largest = std::max(largest, bits_of(number) & magnitude_bits);
  return largest;
}

// Small weights stay on this thread.
template <class Task>
void for_each_task(std::size_t tasks, const Execution& execution, const Task& task) {
  if (tasks > 1 && execution.threads != 1 && may_use_threads(execution)) return run_tasks(tasks, execution, task);
  for (std::size_t t = 0; t < tasks; ++t) task(t);
}

std::string known_recipes(std::string_view scheme) {
  std::string known;
  for (const QuantizeRecipe& row : quantize_recipes()) {
    if (row.scheme != scheme) continue;
    known += known.empty() ? "" : ", ";
    known += row.recipe;
  }
  return known;
}

}  // namespace

bool is_weights_type(DType dtype) noexcept {
  return dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16;
}

// Of one task: where numbers come from and results go, and buffers.
struct Quantizer::Work {
  const std::byte* numbers = nullptr;  // of row `first`
  std::size_t first = 0;
  QuantizedRows out = {};
  bool has_nonzero = false;
  std::vector<float> buffer = {};
  std::vector<std::uint8_t> codes = {};
};

Result<Quantizer> Quantizer::make(DType weights, const Shape& shape, std::string_view scheme,
                                  const QuantizeOptions& options, GgufBlock gguf) {
  Quantizer made;
  const bool is_gguf = gguf != GgufBlock::none;
  if (is_gguf && gguf_encoder(gguf) == nullptr) return invalid(formatted("{} of GGUF cannot be written", scheme));
  const QuantizeRecipe* words =
      find_quantize_recipe(scheme, is_gguf && options.recipe.empty() ? "ggml" : options.recipe);
  if (words != nullptr && is_gguf && words->recipe != "ggml") words = nullptr;
  if (words == nullptr) {
    const std::string known = known_recipes(scheme);
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
  made.allows_nonfinite_ = options.nonfinite == NonFiniteWeights::tool;
  made.is_default_ = options.recipe.empty() && made.recipe_->gguf == GgufBlock::none;
  if (Result<void> fits = made.lay_out(scheme, options); !fits) return std::move(fits).error();
  if (Result<void> fits = made.take_search(scheme, options); !fits) return std::move(fits).error();
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

BlockScale Quantizer::scale_of(const Extent& extent, std::span<const float> numbers, std::size_t row,
                               std::size_t column, std::size_t width) const {
  if (!clip_) return scale_(extent, context_);
  return clip_->find(extent, context_, {.numbers = numbers, .importance = importance_of(row, column), .width = width});
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
  context_.zeros_have_scale_one = is_default_;
  layout.scales_dtype = recipe.scales;
  band_rows_ = layout.block_rows <= 1 ? 1 : static_cast<std::size_t>(layout.block_rows);
  block_columns_ =
      layout.block_columns == 0 ? std::max<std::size_t>(columns_, 1) : static_cast<std::size_t>(layout.block_columns);
  grid_columns_ = ceil_div(columns_, block_columns_);

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
  const std::size_t matrix_bands = ceil_div(matrix_rows_, band_rows_);
  return (row / matrix_rows_ * matrix_bands + row % matrix_rows_ / band_rows_) * grid_columns_;
}

// Numbers `first` and on of those at `numbers`, as the recipe sees them, in float32.
void Quantizer::load(const std::byte* numbers, std::size_t first, std::size_t count, float* out) const {
  auto* const floats = reinterpret_cast<std::byte*>(out);
  const std::byte* const from = numbers + storage_bytes(source_, first);
  if (context_.weights == source_ || context_.weights == DType::float32) {
    convert(source_, from, DType::float32, floats, count);
    return;
  }
  std::array<std::byte, chunk * 2> rounded;
  for (std::size_t done = 0; done < count; done += chunk) {
    const std::size_t n = std::min(chunk, count - done);
    convert(source_, from + storage_bytes(source_, done), context_.weights, rounded.data(), n);
    convert(context_.weights, rounded.data(), DType::float32, floats + done * sizeof(float), n);
  }
}

// The error of the first number that is NaN or infinite, among those from `first` on.
Error Quantizer::nonfinite(const std::byte* numbers, std::size_t first, std::size_t count) const {
  std::array<float, chunk> floats;
  for (std::size_t done = 0; done < count; done += chunk) {
    const std::size_t n = std::min(chunk, count - done);
    load(numbers, first + done, n, floats.data());
    for (std::size_t i = 0; i < n; ++i) {
      if (is_finite(floats[i])) continue;
      return Error{.code = ErrorCode::out_of_range,
                   .message = formatted("{} has no block scale", is_nan(floats[i]) ? "NaN" : "infinity"),
                   .hint = "set `nonfinite` to tool to quantize it as the recipe's tool does",
                   .element = first + done + i};
    }
  }
  return Error{.message = "no number is NaN or infinite"};
}

Result<float> Quantizer::maximum(const std::byte* numbers, std::size_t count, const Execution& execution) const {
  const std::size_t tasks = ceil_div(count, task_elements);
  std::vector<std::uint32_t> largest(tasks);
  for_each_task(tasks, execution, [&](std::size_t task) {
    std::array<float, chunk> floats;
    const std::size_t end = std::min((task + 1) * task_elements, count);
    for (std::size_t at = task * task_elements; at < end; at += chunk) {
      const std::size_t n = std::min(chunk, end - at);
      load(numbers, at, n, floats.data());
      largest[task] = std::max(largest[task], largest_bits({floats.data(), n}));
    }
  });
  const std::uint32_t bits = tasks == 0 ? 0 : *std::max_element(largest.begin(), largest.end());
  if (bits >= infinity_bits && !allows_nonfinite_) return nonfinite(numbers, 0, count);
  return float_of(bits);
}

void Quantizer::set_maximum(float largest) noexcept {
  context_.largest = largest;
  if (recipe_->global != nullptr) {
    context_.global = is_default_ && largest == 0.0f ? 1.0f : recipe_->global(largest, context_);
    layout_.global_scale = context_.global;
  }
  if (is_per_tensor()) tensor_scale_ = scale_({.largest = largest}, context_);
}

Result<Extent> Quantizer::measure(std::span<const float> numbers, Work& work) const {
  Extent extent{.largest = float_of(largest_bits(numbers))};
  if (!is_finite(extent.largest) && !allows_nonfinite_) {
    return Error{.code = ErrorCode::out_of_range};  // the caller names the element
  }
  work.has_nonzero = work.has_nonzero || extent.largest != 0.0f;
  if (scale_ == recipe_->asymmetric) {
    for (const float number : numbers) {
      extent.low = std::min(extent.low, number);
      extent.high = std::max(extent.high, number);
    }
  }
  return extent;
}

void Quantizer::put_scale(const BlockScale& scale, std::size_t index, const Work& work) const noexcept {
  if (recipe_->scales == DType::float32) {
    std::memcpy(work.out.scales + index * sizeof(float), &scale.number, sizeof(float));
  } else {
    work.out.scales[index] = static_cast<std::byte>(scale.code);
  }
  if (work.out.zero_points != nullptr) work.out.zero_points[index] = scale.zero_point;
}

void Quantizer::put_codes(const BlockScale& scale, std::span<const float> numbers, std::size_t row, std::size_t column,
                          Work& work) const {
  const ElementRule& rule = recipe_->element;
  work.codes.resize(numbers.size());
  if (scale.clears) {
    std::fill(work.codes.begin(), work.codes.end(), std::uint8_t{0});
  } else {
    encode(rule, context_.weights, scale.operand, numbers, work.codes);
  }
  if (layout_.coding.element == DType::uint8) {
    for (std::uint8_t& code : work.codes) code ^= 8;  // two's complement to an offset of 8
  }
  std::byte* const packed =
      work.out.codes + (row - work.first) * codes_row_bytes_ + column * static_cast<std::size_t>(rule.bits) / 8;
  pack_stream(rule.bits, work.codes, packed);
}

// Blocks of a row side by side, of at most `most_together` numbers.
Result<void> Quantizer::put_blocks(std::span<const float> numbers, std::size_t row, std::size_t column,
                                   Work& work) const {
  const ElementRule& rule = recipe_->element;
  const std::size_t first_scale = scales_before(row) - scales_before(work.first) + column / block_columns_;
  std::array<float, most_together> quotients;
  std::array<std::uint8_t, most_together> codes;
  std::array<std::size_t, most_together> clears;  // where blocks begin whose codes are 0
  std::size_t cleared = 0;
  for (std::size_t done = 0; done < numbers.size(); done += block_columns_) {
    const std::span<const float> block = numbers.subspan(done, std::min(block_columns_, numbers.size() - done));
    const Result<Extent> extent = measure(block, work);
    if (!extent) return extent.error();
    const BlockScale scale = scale_of(*extent, block, row, column + done, block.size());
    put_scale(scale, first_scale + done / block_columns_, work);
    divide_block(rule, context_.weights, scale.operand, block, quotients.data() + done);
    if (scale.clears) clears[cleared++] = done;
  }
  encode_quotients(rule, {quotients.data(), numbers.size()}, codes.data());
  for (std::size_t i = 0; i < cleared; ++i) {
    std::fill_n(codes.data() + clears[i], std::min(block_columns_, numbers.size() - clears[i]), std::uint8_t{0});
  }
  std::byte* const packed =
      work.out.codes + (row - work.first) * codes_row_bytes_ + column * static_cast<std::size_t>(rule.bits) / 8;
  pack_stream(rule.bits, {codes.data(), numbers.size()}, packed);
  return {};
}

Result<void> Quantizer::run_row(std::size_t row, Work& work) const {
  const std::byte* const numbers = work.numbers + storage_bytes(source_, (row - work.first) * columns_);
  std::byte* const packed = work.out.codes + (row - work.first) * codes_row_bytes_;
  std::fill(packed + (columns_ * static_cast<std::size_t>(recipe_->element.bits) + 7) / 8, packed + codes_row_bytes_,
            std::byte{0});
  const std::size_t first_scale = scales_before(row) - scales_before(work.first);
  const bool is_one_block = is_per_tensor() || grid_columns_ == 1;
  const std::size_t step = is_one_block ? chunk : chunk / block_columns_ * block_columns_;
  work.buffer.resize(chunk);
  BlockScale scale = tensor_scale_;
  if (is_one_block && !is_per_tensor()) {
    Extent whole;
    std::uint32_t largest = 0;
    for (std::size_t column = 0; column < columns_; column += step) {
      const std::span<float> part(work.buffer.data(), std::min(step, columns_ - column));
      load(numbers, column, part.size(), part.data());
      const Result<Extent> extent = measure(part, work);
      if (!extent) return extent.error();
      largest = std::max(largest, bits_of(extent->largest));
      whole = {float_of(largest), std::min(whole.low, extent->low), std::max(whole.high, extent->high)};
    }
    std::vector<float> all;
    if (clip_) {
      all.resize(columns_);
      load(numbers, 0, columns_, all.data());
    }
    scale = scale_of(whole, all, row, 0, columns_);
    put_scale(scale, first_scale, work);
  }
  for (std::size_t column = 0; column < columns_; column += step) {
    const std::span<float> part(work.buffer.data(), std::min(step, columns_ - column));
    load(numbers, column, part.size(), part.data());
    if (is_one_block) {
      put_codes(scale, part, row, column, work);
      continue;
    }
    if (is_of_quotients(recipe_->element) && block_columns_ <= most_together) {
      const std::size_t together = most_together / block_columns_ * block_columns_;
      for (std::size_t first = 0; first < part.size(); first += together) {
        const std::span<const float> blocks = part.subspan(first, std::min(together, part.size() - first));
        if (Result<void> done = put_blocks(blocks, row, column + first, work); !done) return done;
      }
      continue;
    }
    for (std::size_t done = 0; done < part.size(); done += block_columns_) {
      const std::span<const float> block = part.subspan(done, std::min(block_columns_, part.size() - done));
      const Result<Extent> extent = measure(block, work);
      if (!extent) return extent.error();
      scale = scale_of(*extent, block, row, column + done, block.size());
      put_scale(scale, first_scale + (column + done) / block_columns_, work);
      put_codes(scale, block, row, column + done, work);
    }
  }
  return {};
}

// Rows of one matrix that share scales.
Result<void> Quantizer::run_block_rows(std::size_t first, std::size_t count, Work& work) const {
  const std::byte* const numbers = work.numbers + storage_bytes(source_, (first - work.first) * columns_);
  const std::size_t first_scale = scales_before(first) - scales_before(work.first);
  work.buffer.resize(count * block_columns_);
  for (std::size_t column = 0; column < columns_; column += block_columns_) {
    const std::size_t width = std::min(block_columns_, columns_ - column);
    for (std::size_t i = 0; i < count; ++i) load(numbers, i * columns_ + column, width, &work.buffer[i * width]);
    const Result<Extent> extent = measure({work.buffer.data(), count * width}, work);
    if (!extent) return extent.error();
    const BlockScale scale = scale_of(*extent, {work.buffer.data(), count * width}, first, column, width);
    put_scale(scale, first_scale + column / block_columns_, work);
    for (std::size_t i = 0; i < count; ++i) {
      put_codes(scale, {&work.buffer[i * width], width}, first + i, column, work);
    }
  }
  return {};
}

Result<void> Quantizer::run_gguf(std::size_t first, std::size_t count, Work& work) const {
  const GgufBlockSize size = block_size(recipe_->gguf);
  const GgufEncode encode = gguf_encoder(recipe_->gguf);
  const GgufWeighedEncode weighed = gguf_weighed_encoder(recipe_->gguf);
  const std::byte* const numbers = work.numbers + storage_bytes(source_, (first - work.first) * columns_);
  auto* to = reinterpret_cast<std::uint8_t*>(work.out.codes + (first - work.first) * codes_row_bytes_);
  work.buffer.resize(chunk);
  for (std::size_t done = 0; done < count * columns_; done += chunk) {
    const std::span<float> part(work.buffer.data(), std::min(chunk, count * columns_ - done));
    load(numbers, done, part.size(), part.data());
    if (largest_bits(part) >= infinity_bits && !allows_nonfinite_) return Error{.code = ErrorCode::out_of_range};
    for (std::size_t i = 0; i < part.size(); i += size.elements, to += size.bytes) {
      if (weighed == nullptr) {
        encode(&part[i], to);
      } else {
        weighed(&part[i], importance_of(first + (done + i) / columns_, (done + i) % columns_), to);
      }
    }
  }
  return {};
}

Result<void> Quantizer::run_bands(std::size_t first, std::size_t count, Work& work) const {
  if (recipe_->gguf != GgufBlock::none) return run_gguf(first, count, work);
  for (std::size_t row = first; row < first + count;) {
    if (band_rows_ == 1) {
      if (Result<void> done = run_row(row, work); !done) return done;
      ++row;
      continue;
    }
    const std::size_t in_matrix = row % matrix_rows_;
    const std::size_t rows = std::min({band_rows_, matrix_rows_ - in_matrix, first + count - row});
    if (Result<void> done = run_block_rows(row, rows, work); !done) return done;
    row += rows;
  }
  return {};
}

Result<bool> Quantizer::run(std::size_t first, std::size_t count, const std::byte* numbers, const QuantizedRows& out,
                            const Execution& execution) const {
  if (count == 0 || columns_ == 0) return false;
  // Tasks begin where blocks of rows do: at multiples of band_rows_ from the beginning of a matrix.
  const std::size_t unit = band_rows_ == 1 ? 1 : matrix_rows_ % band_rows_ == 0 ? band_rows_ : matrix_rows_;
  const std::size_t each = std::max(unit, task_elements / columns_ / unit * unit);
  const std::size_t tasks = ceil_div(count, each);
  std::vector<Result<void>> results(tasks);
  std::vector<std::uint8_t> nonzero(tasks);
  const auto task = [&](std::size_t t) {
    Work work{.numbers = numbers, .first = first, .out = out};
    const std::size_t begin = first + t * each;
    results[t] = run_bands(begin, std::min(each, first + count - begin), work);
    nonzero[t] = work.has_nonzero ? 1 : 0;
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

void Quantizer::put_tensor_scale(std::span<std::byte> scales) const noexcept {
  std::memcpy(scales.data(), &tensor_scale_.number, sizeof(float));
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
