// SPDX-License-Identifier: Apache-2.0
// Rows of a weight into the caller's memory. Each thread keeps the quantizer of its last call, as an engine writes many
// rows of one format.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "block/disjoint.hpp"
#include "block/encode/quantizer.hpp"
#include "cast/conversion.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "options/quantize_options.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using block::Quantizer;
using block::SharedLayout;
using block::WeightLayout;

// What a format and its options are called, and the rows that it has: what a quantizer is made of.
struct Wanted {
  std::string_view scheme;
  const BlockFormat* format = nullptr;  // null: as the scheme
  const QuantizeOptions& options;

  [[nodiscard]] GgufBlock gguf() const noexcept { return format == nullptr ? GgufBlock::none : format->coding.gguf; }
};

Result<SharedLayout> make_layout(const Wanted& wanted, DType weights, const Shape& shape) {
  SharedLayout made = TRY(WeightLayout::make(weights, shape, wanted.scheme, wanted.options, wanted.gguf()));
  TRY(block::check_maximum(wanted.options));
  return made;
}

// A reader of the rows takes the format's coding, so it must be the one that is written.
Result<void> check_format(const Wanted& wanted, const WeightLayout& layout) {
  if (wanted.format == nullptr || layout.is_gguf() || wanted.format->coding == layout.tensor.coding) return {};
  return invalid(formatted("rows of {} by {} are not written in the layout {}", wanted.scheme,
                           layout.tensor.recipe->recipe, wanted.format->spelling),
                 "name the scheme instead of the format, and read the rows with QuantizedSizes::tensor()");
}

Result<Quantizer> make_quantizer(const Wanted& wanted, const SharedLayout& layout) {
  const auto maximum = [&]() -> Result<float> {
    if (wanted.options.maximum) return block::maximum_of(wanted.options);
    return invalid(formatted("{} has a scale for the whole weight, which some of its rows do not tell", wanted.scheme),
                   "set `maximum` to the largest magnitude of all rows, or call quantize()");
  };
  return Quantizer::make(layout, {.maximum = maximum});
}

// The quantizer of a thread's last call.
class Kept {
 public:
  // `rows`: of the weight, 0 for any. Those of other numbers of rows are equal, unless rows share scales.
  Result<const WeightLayout*> find(const Wanted& wanted, DType weights, std::int64_t rows, std::int64_t columns) {
    const bool is_same = layout_ != nullptr && scheme_ == wanted.scheme && gguf_ == wanted.gguf() &&
                         weights_ == weights && columns_ == columns &&
                         (rows == 0 || rows_ == rows || layout_->band_rows == 1) && has(wanted.options);
    if (is_same) return layout_.get();
    quantizer_.reset();
    layout_.reset();  // until all fields are set, as strings may find no memory
    SharedLayout made = TRY(make_layout(wanted, weights, {std::max<std::int64_t>(rows, 1), columns}));
    scheme_ = wanted.scheme;
    gguf_ = wanted.gguf();
    weights_ = weights;
    rows_ = rows;
    columns_ = columns;
    recipe_ = wanted.options.recipe;
    options_ = wanted.options;
    options_.recipe = {};
    options_.importance = {};
    is_weighed_ = !wanted.options.importance.empty();
    layout_ = std::move(made);
    return layout_.get();
  }
  // Of the layout that was found last.
  Result<const Quantizer*> quantizer(const Wanted& wanted) {
    if (!quantizer_) quantizer_ = TRY(make_quantizer(wanted, layout_));
    return &*quantizer_;
  }
  block::QuantizerWork& work() noexcept { return work_; }

 private:
  // Importance is the caller's memory, which may have changed.
  [[nodiscard]] bool has(const QuantizeOptions& wanted) const noexcept {
    if (is_weighed_ || !wanted.importance.empty() || recipe_ != wanted.recipe) return false;
    return options::all_of(options::quantize_options, [&](const auto& option) {
      using Value = std::remove_cvref_t<decltype(wanted.*option.member)>;
      if constexpr (std::is_same_v<Value, std::string_view> || std::is_same_v<Value, std::span<const float>>) {
        return true;
      } else {
        return options_.*option.member == wanted.*option.member;
      }
    });
  }

  SharedLayout layout_;
  std::optional<Quantizer> quantizer_;
  block::QuantizerWork work_;
  std::string scheme_, recipe_;
  GgufBlock gguf_ = GgufBlock::none;
  DType weights_ = DType::undefined;
  std::int64_t rows_ = 0, columns_ = 0;
  QuantizeOptions options_;  // without its borrowed parts
  bool is_weighed_ = false;
};

Result<QuantizedSizes> sizes_of(const Wanted& wanted, const Shape& shape) {
  const SharedLayout layout = TRY(make_layout(wanted, DType::float32, shape));
  TRY(check_format(wanted, *layout));
  const std::size_t scales = layout->scale_count(0, layout->rows);
  QuantizedSizes sizes{.rows = static_cast<std::int64_t>(layout->rows),
                       .codes = layout->rows * layout->codes_row_bytes,
                       .row_codes = layout->codes_row_bytes,
                       .block_rows = static_cast<std::int64_t>(layout->band_rows),
                       .codes_dtype = layout->tensor.codes_dtype,
                       .scales_dtype = layout->tensor.scales_dtype,
                       .recipe = layout->tensor.recipe,
                       .layout = layout->tensor.tensor()};
  if (wanted.options.maximum) {
    const QuantizeRecipe& recipe = *layout->tensor.recipe;
    const bool is_known = !recipe.uses_weights_dtype || wanted.options.compute_dtype != DType::undefined;
    if (layout->recipe->global != nullptr && !is_known) {
      return invalid(
          formatted("the global scale of {} by {} depends on the type of the weights", recipe.scheme, recipe.recipe),
          "set `compute_dtype` to it");
    }
    sizes.global_scale = TRY(make_quantizer(wanted, layout)).global_scale();
  }
  if (scales != 0) sizes.scales = storage_bytes(sizes.scales_dtype, scales);
  if (layout->has_zero_points()) {
    sizes.zero_points = scales;
    sizes.layout.zero_points = {DType::int8, layout->tensor.scales_shape, {}};
  }
  return sizes;
}

Error wrong_buffer(const char* which, std::size_t bytes, std::size_t expected, std::size_t rows) {
  return invalid(formatted("the buffer of {} has {} bytes, but those of {} rows take {}", which, bytes, rows, expected),
                 "give quantized_sizes() of the whole weight; of several matrices, one at a time");
}

Result<void> check_memory(std::span<const std::byte> rows, const QuantizedBuffers& out, bool has_zeros) {
  const block::NamedBytes weights{"the rows", rows}, codes{"the codes", out.codes}, scales{"the scales", out.scales},
      zeros{"the zero points", has_zeros ? std::as_bytes(out.zero_points) : std::span<const std::byte>()};
  TRY(block::check_disjoint(codes, weights, scales, zeros));
  TRY(block::check_disjoint(scales, weights, zeros));
  return block::check_disjoint(zeros, weights);
}

Result<void> write_rows(const Wanted& wanted, const TensorView& src, std::int64_t first_row,
                        const QuantizedBuffers& out) {
  const std::size_t count = TRY(element_count(src.shape));
  const std::int64_t columns = src.shape.empty() ? 1 : src.shape.back();
  TRY(check_numeric(src.dtype, src.dtype));
  TRY(check_size("source", src.dtype, count, src.bytes.size()));
  if (count == 0) return check_format(wanted, *TRY(make_layout(wanted, src.dtype, src.shape)));
  if (src.bytes.data() == nullptr) return invalid("the source buffer is null");

  thread_local Kept kept;
  // How many rows the weight has only matters where rows share scales: the buffer of codes tells it.
  constexpr std::int64_t any_rows = 0;
  const WeightLayout* layout = TRY(kept.find(wanted, src.dtype, any_rows, columns));
  TRY(check_format(wanted, *layout));
  const std::size_t row_bytes = layout->codes_row_bytes;
  if (out.codes.data() == nullptr || out.codes.empty() || out.codes.size() % row_bytes != 0) {
    return invalid(formatted("{} bytes of codes are no rows of {}", out.codes.size(), row_bytes));
  }
  const std::size_t rows = count / static_cast<std::size_t>(columns), all_rows = out.codes.size() / row_bytes;
  if (layout->band_rows > 1) {
    layout = TRY(kept.find(wanted, src.dtype, static_cast<std::int64_t>(all_rows), columns));
  }
  if (first_row < 0 || static_cast<std::uint64_t>(first_row) > all_rows ||
      rows > all_rows - static_cast<std::size_t>(first_row)) {
    return invalid(formatted("{} rows from row {} on, but the buffer of codes has {}", rows, first_row, all_rows));
  }
  const auto first = static_cast<std::size_t>(first_row);
  const std::size_t band = layout->band_rows;
  if (first % band != 0 || (rows % band != 0 && first + rows != all_rows)) {
    return invalid(formatted("rows {} to {} are no whole blocks of {} rows", first, first + rows, band),
                   "quantize the rows that share scales in one call");
  }
  const Quantizer* const quantizer = TRY(kept.quantizer(wanted));
  const DType scales_dtype = layout->tensor.scales_dtype;
  const std::size_t scales = layout->scale_count(0, all_rows), scales_bytes = storage_bytes(scales_dtype, scales);
  if (out.scales.size() != scales_bytes) return wrong_buffer("scales", out.scales.size(), scales_bytes, all_rows);
  const bool has_zeros = !wanted.options.symmetric;
  if (has_zeros && out.zero_points.size() != scales) {
    return wrong_buffer("zero points", out.zero_points.size(), scales, all_rows);
  }
  if (scales != 0 && (out.scales.data() == nullptr || (has_zeros && out.zero_points.data() == nullptr))) {
    return invalid("a target buffer is null");
  }
  TRY(check_memory(src.bytes, out, has_zeros));
  const std::size_t before = layout->scales_before(first);
  const block::QuantizedRows to{
      .codes = out.codes.data() + first * row_bytes,
      .scales = scales == 0 ? nullptr : out.scales.data() + storage_bytes(scales_dtype, before),
      .zero_points = has_zeros ? out.zero_points.data() + before : nullptr,
      .are_all = rows == all_rows};
  TRY(quantizer->run_here(first, rows, src.bytes.data(), to, kept.work()));
  return {};
}

}  // namespace

BlockTensor QuantizedSizes::tensor(const QuantizedBuffers& buffers) const& {
  BlockTensor borrowed = layout;
  borrowed.codes.bytes = buffers.codes;
  borrowed.scales.bytes = buffers.scales;
  borrowed.zero_points.bytes = std::as_bytes(buffers.zero_points);
  if (global_scale) borrowed.global_scale = {DType::float32, {}, std::as_bytes(std::span(&*global_scale, 1))};
  return borrowed;
}

Result<QuantizedSizes> quantized_sizes(const BlockFormat& format, const Shape& shape, const QuantizeOptions& options) {
  return guarded([&] { return sizes_of({format.scheme, &format, options}, shape); });
}
Result<QuantizedSizes> quantized_sizes(std::string_view scheme, const Shape& shape, const QuantizeOptions& options) {
  return guarded([&] { return sizes_of({scheme, nullptr, options}, shape); });
}

Result<void> quantize_rows(const BlockFormat& format, const TensorView& src, std::int64_t first_row,
                           const QuantizedBuffers& out, const QuantizeOptions& options) {
  return guarded([&] { return write_rows({format.scheme, &format, options}, src, first_row, out); });
}
Result<void> quantize_rows(std::string_view scheme, const TensorView& src, std::int64_t first_row,
                           const QuantizedBuffers& out, const QuantizeOptions& options) {
  return guarded([&] { return write_rows({scheme, nullptr, options}, src, first_row, out); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
