// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/quantizing.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "block/format/code_packing.hpp"
#include "block/format/gguf_block.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/hadamard.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t window_elements = std::uint64_t{1} << 21;
constexpr std::uint64_t most_kept_bytes = std::uint64_t{32} << 20;  // of scales and zero points

// The largest magnitude of some elements, which are read into `buffer`.
Result<float> part_maximum(const block::WeightLayout& layout, std::uint64_t first, std::uint64_t count,
                           const ReadNumbers& read, std::vector<std::byte>& buffer, const Execution& execution) {
  buffer.resize(layout.numbers.bytes(count));
  TRY(read(first, buffer));
  return counted_from(first, layout.numbers.maximum(buffer.data(), count, execution));
}

}  // namespace

Result<block::SharedLayout> layout_of(const Quantizing& quantizing, const Shape& shape,
                                      const ImportanceFile* importance) {
  QuantizeOptions options = quantizing.options;
  std::vector<float> weights;
  if (const ImportanceEntry& entry = quantizing.importance; !entry.file.empty()) {
    weights = TRY(importance != nullptr ? importance->read(entry) : TRY(ImportanceFile::open(entry.file)).read(entry));
  }
  options.importance = weights;
  return block::WeightLayout::make(
      quantizing.numbers, shape, quantizing.scheme, options,
      quantizing.gguf ? block::gguf_block_of(quantizing.scheme) : tensorcast::GgufBlock::none);
}

bool is_rotated(std::string_view scheme) noexcept { return scheme == "int8-channel"; }

bool can_rotate(std::int64_t size, const Quantizing& quantizing, const Shape& shape) noexcept {
  if (size == 0) return true;
  const bool holds = quantizing.numbers == DType::float32 || quantizing.compute() == quantizing.numbers;
  return holds && is_rotated(quantizing.scheme) && is_rotation_size(size) && size <= max_rotated_columns &&
         shape.size() != 0 && shape.back() % size == 0;
}

LayerContent content_of(const QuantizedTensor& layout, std::string name, bool zero_points) {
  LayerContent content;
  content.name = std::move(name);
  content.scheme = layout.recipe->scheme;
  content.shape.assign(layout.shape.begin(), layout.shape.end());
  content.coding = {.element = signed_element(layout.coding.element), .bits = layout.coding.bits};
  content.block_rows = layout.block_rows;
  content.block_columns = layout.block_columns;
  if (layout.coding.gguf != tensorcast::GgufBlock::none) {
    content.block_rows = 1;
    content.block_columns = block_size(layout.coding.gguf).elements;
    return content;
  }
  if (layout.block_rows != 0 && layout.block_columns == 0) content.block_columns = layout.shape.back();
  content.set_scales(layout.scales_dtype);
  // Recipes without a scale of the tensor have 1.
  if (layout.scales_dtype == DType::float8_e4m3fn) content.coding.global = global_kind(layout.coding);
  content.zero_points = zero_points;
  return content;
}

DType exact_scales_of(const QuantizedTensor& layout, DType weights) noexcept {
  const bool is_narrow = weights == DType::bfloat16 || weights == DType::float16;
  return is_narrow && block::recipe_of(*layout.recipe).narrow_scales ? weights : DType::undefined;
}

std::vector<std::int64_t> shape_to_quantize(const Layer& layer) {
  std::vector<std::int64_t> shape = layer.shape;
  if (layer.is_transposed()) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

ReadNumbers transposed_numbers(DType type, const Layer& layer, ReadNumbers read) {
  const auto columns = static_cast<std::uint64_t>(layer.shape[layer.shape.size() - 2]);
  return [item = storage_bytes(type, 1), columns, rows = OriginalRows(type, layer, columns, std::move(read)),
          buffer = std::vector<std::byte>()](std::uint64_t first, std::span<std::byte> out) mutable -> Result<void> {
    if (out.empty()) return {};
    const std::uint64_t row = first / columns, end = (first + out.size() / item + columns - 1) / columns;
    TRY(rows.read(row, end - row, buffer));
    std::memcpy(out.data(), buffer.data() + (first - row * columns) * item, out.size());
    return {};
  };
}

std::uint64_t transposed_element(const Layer& layer, std::uint64_t element) noexcept {
  const auto inputs = static_cast<std::uint64_t>(layer.shape[layer.shape.size() - 2]);
  const auto outputs = static_cast<std::uint64_t>(layer.shape.back());
  const std::uint64_t size = inputs * outputs, matrix = size == 0 ? 0 : element / size;
  if (size == 0) return element;
  return matrix * size + element % size % inputs * outputs + element % size / inputs;
}

Result<float> largest_magnitude(const block::WeightLayout& layout, const ReadNumbers& read,
                                const Execution& execution) {
  std::vector<std::byte> buffer;
  float largest = 0.0F;
  const std::uint64_t count = layout.rows * layout.columns;
  for (std::uint64_t first = 0; first < count; first += window_elements) {
    largest = std::max(
        largest, TRY(part_maximum(layout, first, std::min(window_elements, count - first), read, buffer, execution)));
  }
  return largest;
}

NumberCodes::NumberCodes(block::SharedLayout layout, const Quantizing& quantizing, const LayerContent& content,
                         ReadNumbers read, std::function<Result<float>()> maximum, const Execution& execution)
    : layout_(std::move(layout)),
      numbers_(quantizing.numbers),
      compute_(quantizing.compute()),
      content_(content),
      read_(std::move(read)),
      maximum_(std::move(maximum)),
      execution_(execution),
      rows_(content_.rows()),
      matrix_rows_(std::max<std::uint64_t>(rows_ / std::max<std::uint64_t>(content_.matrices(), 1), 1)),
      band_(layout_->band_rows),
      scale_bytes_(static_cast<std::uint64_t>(bit_width(content_.scales())) / 8) {
  const std::uint64_t scales = content_.grid_rows() * content_.grid_columns();
  if (layout_->tensor.scales_dtype == DType::undefined) return;
  if (scales > most_kept_bytes / (scale_bytes_ + 1)) return;
  all_scales_.resize(scales * scale_bytes_);
  if (layout_->has_zero_points()) all_zeros_.resize(scales);
}

Result<std::unique_ptr<NumberCodes>> NumberCodes::create(const Quantizing& quantizing, const LayerContent& content,
                                                         ReadNumbers read, std::function<Result<float>()> maximum,
                                                         const Execution& execution) {
  block::SharedLayout layout = TRY(layout_of(quantizing, Shape(content.shape)));
  return std::unique_ptr<NumberCodes>(
      new NumberCodes(std::move(layout), quantizing, content, std::move(read), std::move(maximum), execution));
}

Result<bool> NumberCodes::all_zero() const {
  std::vector<std::byte> buffer;
  const std::uint64_t count = rows_ * content_.columns();
  std::uint64_t step = std::uint64_t{1} << 12;  // nearly always, the first numbers tell
  for (std::uint64_t first = 0; first < count; first += std::exchange(step, window_elements)) {
    const std::uint64_t elements = std::min(step, count - first);
    if (TRY(part_maximum(*layout_, first, elements, read_, buffer, execution_)) != 0.0F) return false;
  }
  return true;
}

Result<const block::Quantizer*> NumberCodes::quantizer() {
  if (!quantizer_) {
    quantizer_ = TRY(block::Quantizer::make(layout_, {.maximum = maximum_, .is_zero = [this] { return all_zero(); }}));
  }
  return &*quantizer_;
}

Result<void> NumberCodes::read_rows(std::uint64_t first, std::uint64_t count) {
  const std::uint64_t before = first * content_.columns(), elements = count * content_.columns();
  source_.resize(layout_->numbers.bytes(elements));
  if (content_.deviations.rotation == 0) return read_(before, source_);
  TRY(part_maximum(*layout_, before, elements, read_, source_, execution_));  // NaN, before groups share it
  return rotate_groups(numbers_, compute_, content_.deviations.rotation, source_);
}

Result<void> NumberCodes::quantize_around(std::uint64_t row) {
  if (row >= window_begin_ && row < window_end_) return {};
  const block::Quantizer& quantizer = *TRY(this->quantizer());
  const std::uint64_t columns = content_.columns();
  const std::uint64_t matrix = row / matrix_rows_ * matrix_rows_;
  const std::uint64_t begin = matrix + (row - matrix) / band_ * band_;
  const std::uint64_t most = std::max(band_, window_elements / std::max<std::uint64_t>(columns, 1) / band_ * band_);
  // Whole blocks of rows: within a matrix if its last block is shorter.
  const std::uint64_t last = matrix_rows_ % band_ == 0 ? rows_ : matrix + matrix_rows_;
  const std::uint64_t count = std::min(most, last - begin);
  TRY(read_rows(begin, count));
  TRY(quantizer.run(begin, count, source_.data(), window_, execution_));
  window_begin_ = begin;
  window_end_ = begin + count;
  if (begin == kept_rows_ && content_.block_rows != 0 && !all_scales_.empty()) {
    const auto at = static_cast<std::ptrdiff_t>(layout_->scales_before(begin));
    std::ranges::copy(window_.scales, all_scales_.begin() + at * static_cast<std::ptrdiff_t>(scale_bytes_));
    if (!all_zeros_.empty()) std::ranges::copy(window_.zero_points, all_zeros_.begin() + at);
    kept_rows_ = window_end_;
  }
  return meter_ ? meter_->add(begin, count, source_, window_.tensor(), execution_) : Result<void>();
}

std::optional<QuantizedLoss> NumberCodes::loss() const {
  return meter_ && meter_->is_complete() ? std::optional(meter_->loss()) : std::nullopt;
}

Result<void> NumberCodes::codes(std::uint64_t first_row, std::span<std::byte> out) {
  const std::uint64_t columns = content_.columns(), row_bytes = layout_->codes_row_bytes;
  for (std::uint64_t done = 0; done < out.size(); done += columns) {
    const std::uint64_t row = first_row + done / columns;
    TRY(quantize_around(row));
    block::unpack_codes(window_.coding, window_.codes.data() + (row - window_begin_) * row_bytes,
                        {reinterpret_cast<std::uint8_t*>(out.data() + done), columns});
  }
  return {};
}

Result<bool> NumberCodes::packed(const BlockCoding& coding, std::uint64_t offset, std::span<std::byte> out) {
  const bool is_float = !is_integer(content_.coding.element);
  const bool is_in_bytes = coding.packing == BlockPacking::stream &&
                           (content_.coding.bits == 8 || (content_.coding.bits == 4 && content_.columns() % 2 == 0));
  if (coding.packing != BlockPacking::gguf && !(is_float && is_in_bytes)) return false;
  const std::uint64_t row_bytes = layout_->codes_row_bytes;
  while (!out.empty()) {
    TRY(quantize_around(offset / row_bytes));
    const std::uint64_t at = offset - window_begin_ * row_bytes;
    const std::uint64_t bytes = std::min<std::uint64_t>(out.size(), window_.codes.size() - at);
    std::memcpy(out.data(), window_.codes.data() + at, bytes);
    out = out.subspan(bytes);
    offset += bytes;
  }
  return true;
}

Result<void> NumberCodes::copy_grid(std::uint64_t first_row, std::uint64_t item, bool are_zero_points,
                                    std::span<std::byte> out) {
  const std::uint64_t columns = content_.grid_columns(), bytes = columns * item;
  for (std::uint64_t done = 0; done < out.size(); done += bytes) {
    const std::uint64_t grid_row = first_row + done / bytes, row = layout_->row_of(grid_row);
    if (row < kept_rows_) {
      const std::byte* const all = are_zero_points ? std::as_bytes(std::span(all_zeros_)).data() : all_scales_.data();
      std::memcpy(out.data() + done, all + grid_row * bytes, bytes);
      continue;
    }
    TRY(quantize_around(row));
    const std::byte* const window =
        are_zero_points ? std::as_bytes(std::span(window_.zero_points)).data() : window_.scales.data();
    std::memcpy(out.data() + done, window + (grid_row * bytes - layout_->scales_before(window_begin_) * item), bytes);
  }
  return {};
}

Result<void> NumberCodes::scales(std::uint64_t first_row, std::span<std::byte> out) {
  // A row without columns has a scale in files, and the quantizer makes none.
  if (content_.block_rows != 0 && content_.columns() == 0) {
    block::set_unit_scales(content_.scales(), out);
    return {};
  }
  if (content_.block_rows != 0) return copy_grid(first_row, scale_bytes_, false, out);
  return TRY(quantizer())->run(0, 0, nullptr, block::QuantizedRows{.scales = out.data()}, execution_);
}

Result<void> NumberCodes::zero_points(std::uint64_t first_row, std::span<std::byte> out) {
  if (content_.columns() != 0) return copy_grid(first_row, 1, true, out);
  std::ranges::fill(out, std::byte{0});
  return {};
}

Result<std::vector<float>> NumberCodes::global_scales() {
  return std::vector<float>{TRY(quantizer())->global_scale().value_or(1.0F)};
}

}  // namespace tensorcast::quantized
