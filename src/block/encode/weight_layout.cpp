// SPDX-License-Identifier: Apache-2.0
#include "block/encode/weight_layout.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "block/format/codings.hpp"
#include "block/gguf/gguf_encode.hpp"
#include "block/recipe/float_steps.hpp"
#include "cast/conversion.hpp"
#include "cast/tuning.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/try.hpp"
#include "kernels/runs.hpp"

namespace tensorcast::block {
namespace {

Result<const QuantizeRecipe*> find_words(std::string_view scheme, std::string_view recipe, GgufBlock gguf) {
  const bool is_gguf = gguf != GgufBlock::none;
  if (is_gguf && gguf_encoder(gguf) == nullptr) return invalid(formatted("{} of GGUF cannot be written", scheme));
  const QuantizeRecipe* words = find_quantize_recipe(scheme, is_gguf && recipe.empty() ? "ggml" : recipe);
  if (words != nullptr && (!is_gguf || words->recipe == "ggml")) return words;
  const std::string known = is_gguf ? std::string("ggml") : known_recipes(scheme);
  if (known.empty()) return invalid(formatted("no scheme \"{}\"", scheme), "there are " + known_schemes());
  return invalid(formatted("no recipe \"{}\" for {}; there are {}", recipe, scheme, known));
}

Result<DType> computed_type(DType weights, const QuantizeOptions& options) {
  const DType computed = options.compute_dtype == DType::undefined ? weights : options.compute_dtype;
  if (computed != DType::undefined) TRY(check_numeric(computed, computed));
  const bool is_float = family(weights) == Family::floating;
  if (is_float && bit_width(weights) >= 8 && is_plain_float(computed)) return computed;
  return invalid(formatted("weights of type {} are not quantized", name(is_plain_float(weights) ? computed : weights)),
                 is_float ? "set `compute_dtype` to float32, bfloat16 or float16" : "convert them to float32 first");
}

}  // namespace

Result<SharedLayout> WeightLayout::make(DType weights, const Shape& shape, std::string_view scheme,
                                        const QuantizeOptions& options, GgufBlock gguf) {
  auto made = std::make_shared<WeightLayout>();
  WeightLayout& layout = *made;
  const QuantizeRecipe* const words = TRY(find_words(scheme, options.recipe, gguf));
  const DType computed = TRY(computed_type(weights, options));
  const std::size_t count = TRY(element_count(shape));
  if (count > std::numeric_limits<std::size_t>::max() / 64) return invalid("the weight is too large");
  const std::size_t rank = shape.size();
  layout.columns = rank == 0 ? 1 : static_cast<std::size_t>(shape.back());
  layout.matrix_rows = rank < 2 ? 1 : static_cast<std::size_t>(shape[rank - 2]);
  layout.rows = layout.columns == 0 ? 0 : count / layout.columns;
  layout.recipe = gguf == GgufBlock::none ? &recipe_of(*words) : &recipe_of(gguf);
  layout.is_default = options.recipe.empty() && !layout.is_gguf();
  layout.numbers = WeightNumbers(weights, computed, *words, *layout.recipe, options.nonfinite);
  layout.tensor.recipe = words;
  layout.tensor.shape = shape;
  const std::string_view spelling = layout.is_gguf() ? "gguf" : words->spelling;
  const BlockFormat* const format = find_block_format(scheme, spelling);
  if (format == nullptr) return invalid(formatted("no layout of {} for {}", scheme, words->spelling));
  layout.tensor.coding = format->coding;
  layout.tensor.block_rows = format->block_rows;
  layout.tensor.block_columns = format->block_columns;
  if (layout.is_gguf()) {
    TRY(layout.lay_out_gguf());
  } else {
    TRY(layout.take_blocks(scheme, options));
    layout.lay_out_codes();
  }
  TRY(layout.take_search(scheme, options));
  return SharedLayout(std::move(made));
}

Result<void> WeightLayout::lay_out_gguf() {
  const GgufBlockSize size = block_size(recipe->gguf);
  if (columns % size.elements != 0) {
    return invalid(formatted("{} columns are no whole blocks of {}", columns, size.elements));
  }
  codes_row_bytes = columns / size.elements * size.bytes;
  std::vector<std::int64_t> dims(tensor.shape.begin(), tensor.shape.end());
  if (dims.empty()) dims.push_back(1);
  dims.back() = static_cast<std::int64_t>(codes_row_bytes);
  tensor.codes_shape = dims;
  return {};
}

Result<void> WeightLayout::take_blocks(std::string_view scheme, const QuantizeOptions& options) {
  if (options.group_size != 0) {
    const bool has_groups = recipe->option == RecipeOption::group;
    if (!has_groups) return invalid(formatted("{} has no groups of a size of one's own", scheme));
    if (options.group_size != 32 && options.group_size != 64 && options.group_size != 128) {
      return invalid(formatted("groups of {}, which must be of 32, 64 or 128", options.group_size));
    }
    tensor.block_columns = options.group_size;
  }
  const bool is_asymmetric = !options.symmetric;
  if (is_asymmetric && recipe->asymmetric == nullptr) return invalid(formatted("{} has no zero points", scheme));
  if (options.power_of_two_scales && recipe->option != RecipeOption::power_of_two) {
    return invalid(formatted("{} of {} has no scales that are powers of two", scheme, tensor.recipe->recipe));
  }
  // One code after the other, low bits first, and scales by rows, whatever the tool's own files have.
  tensor.coding.packing = BlockPacking::stream;
  tensor.coding.swizzled = false;
  tensor.coding.global = recipe->stored_global;
  scale = is_asymmetric ? recipe->asymmetric : recipe->scale;
  is_power_of_two = options.power_of_two_scales;
  return {};
}

void WeightLayout::lay_out_codes() {
  band_rows = tensor.block_rows <= 1 ? 1 : static_cast<std::size_t>(tensor.block_rows);
  const bool is_whole_row = tensor.block_columns == 0;
  block_columns = is_whole_row ? std::max<std::size_t>(columns, 1) : static_cast<std::size_t>(tensor.block_columns);
  grid_columns = ceil_div(columns, block_columns);
  run_shift = is_whole_row ? kernels::shift_of_all : static_cast<unsigned>(std::countr_zero(block_columns));
  const auto width = static_cast<std::size_t>(recipe->element.bits);
  const bool is_words = tensor.coding.element == DType::uint8;
  codes_row_bytes = is_words ? ceil_div(columns * width, 32) * 4 : ceil_div(columns * width, 8);
  tensor.codes_dtype = is_words ? DType::int32 : width == 8 ? tensor.coding.element : DType::uint8;
  tensor.scales_dtype = recipe->scales;
  std::vector<std::int64_t> dims(tensor.shape.begin(), tensor.shape.end());
  if (dims.empty()) dims.push_back(1);
  dims.back() = static_cast<std::int64_t>(codes_row_bytes / storage_bytes(tensor.codes_dtype, 1));
  tensor.codes_shape = dims;
  dims.back() = static_cast<std::int64_t>(grid_columns);
  if (dims.size() > 1) dims[dims.size() - 2] = static_cast<std::int64_t>(ceil_div(matrix_rows, band_rows));
  if (is_per_tensor()) dims = {1};
  tensor.scales_shape = dims;
}

Result<void> WeightLayout::take_search(std::string_view scheme, const QuantizeOptions& options) {
  is_searched = options.clip == Clip::mse;
  if (is_searched && is_gguf()) {
    return invalid(formatted("{} of ggml has a search of its own, and no clipping", scheme));
  }
  if (is_searched && is_per_tensor()) {
    return invalid(formatted("{} has one scale for the whole tensor, which is not searched", scheme));
  }
  const std::size_t count = options.importance.size(), matrices = matrix_rows == 0 ? 0 : rows / matrix_rows;
  if (count == 0) return {};
  if (count != columns && count != columns * matrices) {
    return invalid(formatted("importance of {} numbers, where the weight has {} columns", count, columns));
  }
  const bool is_right = std::all_of(options.importance.begin(), options.importance.end(),
                                    [](float x) { return is_finite(x) && x >= 0.0f; });
  if (!is_right) return invalid("importance that is negative, NaN or infinite");
  importance.assign(options.importance.begin(), options.importance.end());
  return {};
}

const float* WeightLayout::importance_of(std::size_t row, std::size_t column) const noexcept {
  if (importance.empty()) return nullptr;
  const std::size_t matrix = importance.size() == columns ? 0 : row / matrix_rows;
  return importance.data() + matrix * columns + column;
}

std::size_t WeightLayout::scales_before(std::size_t row) const noexcept {
  return is_gguf() || is_per_tensor() ? 0 : band_of(row) * grid_columns;
}

std::size_t WeightLayout::scale_count(std::size_t first, std::size_t count) const noexcept {
  if (is_per_tensor()) return 1;
  return count == 0 ? 0 : scales_before(first + count) - scales_before(first);
}

std::size_t WeightLayout::band_of(std::size_t row) const noexcept {
  return row / matrix_rows * ceil_div(matrix_rows, band_rows) + ceil_div(row % matrix_rows, band_rows);
}

std::size_t WeightLayout::row_of(std::size_t band) const noexcept {
  const std::size_t of_matrix = ceil_div(matrix_rows, band_rows);
  return band / of_matrix * matrix_rows + band % of_matrix * band_rows;
}

QuantizedRows WeightLayout::room_in(QuantizedTensor& out, std::size_t first, std::size_t count) const {
  const std::size_t scales = scale_count(first, count);
  out.codes.resize(count * codes_row_bytes);
  out.scales.resize(scales == 0 ? 0 : storage_bytes(recipe->scales, scales));
  out.zero_points.resize(has_zero_points() ? scales : 0);
  return {out.codes.data(), out.scales.data(), has_zero_points() ? out.zero_points.data() : nullptr};
}

bool WeightLayout::results_bypass_cache() const noexcept {
  const std::size_t bytes = rows * (numbers.bytes(columns) + codes_row_bytes);
  const bool are_whole_lines = recipe->element.bits == 8 && columns % kernels::run_step == 0;
  // Codes of what only tools take are stored twice.
  return are_whole_lines && numbers.refuses_all() && bytes >= bypass_cache_min_bytes &&
         stores_bypass_buffer(active_target());
}

Result<void> check_maximum(const QuantizeOptions& options) {
  if (!options.maximum || (is_finite(*options.maximum) && *options.maximum >= 0.0f)) return {};
  return invalid(formatted("`maximum` is {}, which is not finite and at least 0", *options.maximum));
}

float maximum_of(const QuantizeOptions& options) noexcept { return round_to(options.compute_dtype, *options.maximum); }

void set_unit_scales(DType type, std::span<std::byte> scales) noexcept {
  if (type == DType::float32) {
    constexpr float one = 1.0f;
    for (std::size_t i = 0; i < scales.size(); i += sizeof(one)) std::memcpy(&scales[i], &one, sizeof(one));
    return;
  }
  const auto one = std::byte{type == DType::float8_e8m0fnu ? std::uint8_t{127} : std::uint8_t{0x38}};
  std::fill(scales.begin(), scales.end(), one);
}

}  // namespace tensorcast::block
