// SPDX-License-Identifier: Apache-2.0
// Layers whose codes are in the order of the weight: scales become float32 here, and the engine of blocks does the
// rest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "block/format/code_packing.hpp"
#include "block/format/scale_tiles.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/code_layout.hpp"
#include "quantized/layer/hadamard.hpp"
#include "quantized/layer/piece_decoder.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t chunk_elements = std::uint64_t{1} << 18;
constexpr std::uint64_t bits_of_words = 32;

class RowDecoder final : public PieceDecoder {
 public:
  explicit RowDecoder(PartReader reader)
      : PieceDecoder(std::move(reader)),
        coding_(reader_.layer().coding),
        deviations_(reader_.layer().deviations),
        numbers_(code_numbers(coding_, reader_.layer().scheme)) {}

  // Checks that all parts have the sizes that decoding reads.
  Result<void> prepare() {
    const Layer& layer = reader_.layer();
    const std::vector<std::int64_t>& shape = layer.shape;
    const bool flat = coding_.packing == BlockPacking::flat;
    if (!flat && shape.empty()) return reader_.wrong(0, "a weight has at least one dimension");
    count_ = layer.rows() * layer.columns();
    columns_ = flat ? std::max<std::uint64_t>(count_, 1) : layer.columns();
    rows_ = flat ? 1 : shape.size() > 1 ? static_cast<std::uint64_t>(shape[shape.size() - 2]) : 1;
    if (count_ == 0) return {};
    experts_ = count_ / columns_ / rows_;
    TRY(check_codes());
    TRY(check_rotation());
    TRY(check_grid());
    TRY(load_more());
    set_bounds();
    return set_pieces();
  }

 private:
  // The smallest and the largest magnitude of an element that is not 0.
  void set_bounds() {
    double least = 1, most = 0;
    for (const float number : numbers_) {
      const double magnitude = std::fabs(number);
      if (!(magnitude > 0) || std::isinf(magnitude)) continue;
      least = std::min(least, magnitude);
      most = std::max(most, magnitude);
    }
    if (zeros_) most = 512;  // differences of bytes
    const auto size = static_cast<double>(std::max<std::int64_t>(deviations_.rotation, 1));
    constexpr double times_127 = 128;
    bounds_.set_elements(least / size / (coding_.factor == 1.0F ? 1 : times_127), most * size);
  }

  // Sets what is decoded together: rows, or parts of a row that is longer than a chunk.
  Result<void> set_pieces() {
    cuts_rows_ = flat() || columns_ > chunk_elements;
    if (!cuts_rows_) return {};
    one_scale_ = !flat() && block_columns_ >= columns_;
    // A part begins at a whole byte and at a block.
    const std::uint64_t step = one_scale_ ? 8 : std::lcm(block_columns_, std::uint64_t{8});
    if (step > chunk_elements)
      return reader_.wrong(0, fmt::format("blocks of {} columns are too long", block_columns_));
    part_columns_ = chunk_elements / step * step;
    return {};
  }

  Result<void> check_codes() {
    const formats::TensorInfo& codes = reader_.info(0);
    const bool is_stream = coding_.packing == BlockPacking::stream;
    const bool are_pairs = coding_.bits == 4 && (flat() || columns_ % 2 == 0);
    if (is_in_columns(coding_) || (!is_stream && !are_pairs)) {
      return reader_.wrong(0, "its codes are not pairs of 4 bits");
    }
    layout_ = code_layout(coding_, bit_width(codes.dtype), rows_ * experts_, columns_, deviations_.has_whole_codes);
    if (codes.bytes == layout_.matrix_bytes) return {};
    return reader_.wrong(0, fmt::format("it has {} bytes, and its weight needs {}", codes.bytes, layout_.matrix_bytes));
  }

  // Sums of a group's codes must be exact, so only integers with one scale a row are rotated back.
  Result<void> check_rotation() {
    const auto size = static_cast<std::uint64_t>(deviations_.rotation);
    if (size == 0) return {};
    const Layer& layer = reader_.layer();
    const bool one_scale = layer.block_columns == 0 || static_cast<std::uint64_t>(layer.block_columns) >= columns_;
    if (is_rotation_size(deviations_.rotation) && deviations_.rotation <= largest_rotation_undone &&
        columns_ % size == 0 && one_scale && is_integer(coding_.element) && coding_.bits == 8 &&
        !reader_.find(PartRole::zero_points)) {
      return {};
    }
    return reader_.wrong(0, "its inputs were rotated in a way that is not known");
  }

  Result<void> check_grid() {
    const Layer& layer = reader_.layer();
    const std::optional<std::size_t> scales = reader_.find(PartRole::scales);
    if (!scales) return reader_.wrong(0, "it has no scales");
    scales_ = *scales;
    const bool whole = layer.block_rows == 0 && layer.block_columns == 0;
    block_rows_ = layer.block_rows == 0 ? rows_ * experts_ : static_cast<std::uint64_t>(layer.block_rows);
    block_columns_ = layer.block_columns == 0 ? columns_ : static_cast<std::uint64_t>(layer.block_columns);
    if (layer.block_rows < 0 || layer.block_columns < 0) return reader_.wrong(scales_, "its blocks have no size");
    grid_columns_ = ceil_div(columns_, block_columns_);
    grid_rows_ = whole ? 1 : ceil_div(rows_, block_rows_);
    const std::uint64_t experts = whole ? 1 : experts_;
    if (whole) block_rows_ = rows_ * experts_, rows_of_expert_ = rows_ * experts_;
    if (!whole) rows_of_expert_ = rows_;
    const std::uint64_t wanted =
        coding_.swizzled ? block::scales_in_tiles(grid_rows_, grid_columns_) : grid_rows_ * grid_columns_ * experts;
    if (coding_.swizzled && experts != 1) return reader_.wrong(scales_, "tiles of several experts are not known");
    if (reader_.info(scales_).count != wanted) {
      return reader_.wrong(
          scales_, fmt::format("it has {} elements, and its weight needs {}", reader_.info(scales_).count, wanted));
    }
    if (bit_width(reader_.scale_type(scales_)) != bit_width(reader_.info(scales_).dtype)) {
      return reader_.wrong(scales_, "its elements have another size than scales");
    }
    return {};
  }

  // Loads what is small, and checks what is read beside the scales.
  Result<void> load_more() {
    if (const std::optional<std::size_t> part = reader_.find(PartRole::global_scale)) {
      globals_ = TRY(reader_.all_numbers(*part, std::max<std::uint64_t>(experts_, 1)));
      const bool each = globals_.size() == experts_ && rows_of_expert_ == rows_;
      if (globals_.size() != 1 && !each) return reader_.wrong(*part, "it is not one scale a tensor");
    } else if (coding_.global != GlobalScale::none) {
      return reader_.wrong(0, "it has no scale of the whole tensor");
    }
    zeros_ = reader_.find(PartRole::zero_points);
    if (zeros_) {
      const formats::TensorInfo& info = reader_.info(*zeros_);
      packed_zeros_ = info.dtype != DType::int8;
      const std::uint64_t wanted =
          packed_zeros_ ? zero_layout(coding_, grid_rows_, grid_columns_, deviations_.has_whole_codes).matrix_bytes / 4
                        : reader_.info(scales_).count;
      const bool fits = info.count == wanted &&
                        (!packed_zeros_ || (bit_width(info.dtype) == 32 && experts_ == 1 && block_rows_ == 1));
      if (!fits) return reader_.wrong(*zeros_, "its elements are not one zero point for each scale");
    }
    biases_ = reader_.find(PartRole::biases);
    if (biases_ && reader_.info(*biases_).count != reader_.info(scales_).count) {
      return reader_.wrong(*biases_, "its elements are not one for each scale");
    }
    const bool has_more = zeros_ || biases_;
    if (deviations_.is_grid_transposed && (coding_.swizzled || zeros_ || flat())) {
      return reader_.wrong(scales_, "a transposed grid with tiles or zero points is not known");
    }
    if (coding_.swizzled && has_more) return reader_.wrong(scales_, "tiles with zero points or biases are not known");
    if (flat() && (has_more || reader_.find(PartRole::group_index))) {
      return reader_.wrong(scales_, "blocks over the whole tensor have scales alone");
    }
    TRY(load_index(columns_, grid_columns_));
    return load_nested();
  }

  // Loads the table of scales that are codes themselves.
  Result<void> load_nested() {
    if (const std::optional<std::size_t> table = reader_.find(PartRole::nested_table)) {
      nested_table_ = TRY(reader_.all_numbers(*table, 256));
      if (nested_table_.size() != 256) return reader_.wrong(*table, "it is not a table of 256 numbers");
      nested_ = reader_.find(PartRole::nested_scales);
      const std::uint64_t block =
          reader_.layer().nested_block < 1 ? 0 : static_cast<std::uint64_t>(reader_.layer().nested_block);
      if (!nested_ || block == 0 || bit_width(reader_.info(scales_).dtype) != 8 ||
          reader_.info(*nested_).count != ceil_div(reader_.info(scales_).count, block)) {
        return reader_.wrong(*table, "its scales have no scales of their own");
      }
    }
    return {};
  }

  Piece piece_at(std::uint64_t element, std::uint64_t limit) const override {
    const std::uint64_t row = element / columns_, column = element % columns_;
    if (cuts_rows_) {
      const std::uint64_t begin = column / part_columns_ * part_columns_;
      return {row * columns_ + begin, row * columns_ + std::min(begin + part_columns_, columns_)};
    }
    const std::uint64_t left = rows_of_expert_ - row % rows_of_expert_;
    const std::uint64_t fit = column == 0 ? std::min(limit - element, chunk_elements) / columns_ : 1;
    return {row * columns_, (row + std::clamp<std::uint64_t>(fit, 1, left)) * columns_};
  }

  Result<void> decode(const Piece& piece, DType to, std::span<std::byte> out) override {
    const std::uint64_t first = piece.begin / columns_, column = piece.begin % columns_;
    const std::uint64_t count = piece.end - piece.begin;
    const std::uint64_t rows = cuts_rows_ ? 1 : count / columns_, width = count / rows;
    const auto bits = static_cast<std::uint64_t>(coding_.bits);
    if (deviations_.has_whole_codes) {
      TRY(load_words(first, rows, column, width));
    } else {
      codes_.resize(cuts_rows_ ? ceil_div(width * bits, 8) : rows * layout_.row_bytes);
      TRY(reader_.bytes(0, first * layout_.row_bytes + column * bits / 8, codes_));
    }
    TRY(flat() ? load_flat(column, width) : load_scales(grid_row(first), grid_row(first + rows - 1)));
    if (deviations_.rotation != 0) return decode_rotated(first, rows, width, to, out);
    return decode_scaled(first, rows, column, width, to, out);
  }

  // Makes codes that are whole in their words dense.
  Result<void> load_words(std::uint64_t first, std::uint64_t rows, std::uint64_t column, std::uint64_t width) {
    const auto bits = static_cast<std::uint64_t>(coding_.bits);
    const std::uint64_t skipped = column % (bits_of_words / bits), begin = layout_.words_of(column - skipped);
    const std::uint64_t dense = ceil_div(width * bits, 8);
    words_.resize((layout_.words_of(column + width) - begin) * 4);
    codes_.resize(rows * dense);
    std::vector<std::uint8_t> row_codes(skipped + width);
    block::CodeMatrices row_words = layout_;
    row_words.data = words_.data();
    for (std::uint64_t row = 0; row < rows; ++row) {
      TRY(reader_.bytes(0, (first + row) * layout_.row_bytes + begin * 4, words_));
      row_words.unpack(0, 0, 0, std::as_writable_bytes(std::span(row_codes)));
      block::pack_stream(coding_.bits, std::span(row_codes).subspan(skipped), codes_.data() + row * dense);
    }
    return {};
  }

  // Numbers that rows of codes mean, without scales. `shape` outlives it.
  [[nodiscard]] BlockTensor tensor_of(const std::int64_t (&shape)[2], const std::int64_t (&bytes)[1]) const {
    BlockTensor tensor;
    tensor.coding = {.element = coding_.element, .bits = coding_.bits};
    if (coding_.packing == BlockPacking::high_nibble_first) tensor.coding.packing = BlockPacking::high_nibble_first;
    if (flat()) tensor.coding.packing = BlockPacking::flat;
    if (coding_.element == DType::uint8 && !zeros_) tensor.coding.offset = coding_.offset;
    tensor.coding.positive_zero = coding_.positive_zero;
    tensor.shape = shape;
    tensor.codes = {DType::uint8, bytes, codes_};
    if (coding_.element == DType::undefined) tensor.table = numbers_;
    return tensor;
  }

  Result<void> decode_scaled(std::uint64_t first, std::uint64_t rows, std::uint64_t column, std::uint64_t width,
                             DType to, std::span<std::byte> out) {
    const bool whole_rows = !cuts_rows_, indexed = !index_.empty();
    const std::uint64_t grid_first = flat() ? 0 : grid_row(first);
    const std::uint64_t grid_rows = flat() ? 1 : grid_row(first + rows - 1) - grid_first + 1;
    const std::uint64_t skipped = flat() || indexed ? 0 : first % rows_of_expert_ % block_rows_;
    const std::uint64_t blocks = whole_rows ? grid_columns_ : one_scale_ ? 1 : ceil_div(width, block_columns_);
    const std::uint64_t begin = flat() ? 0
                                       : (grid_first - loaded_first_) * grid_columns_ +
                                             (whole_rows || one_scale_ ? 0 : column / block_columns_);
    Values values{.scales = std::span(scale_values_).subspan(begin, grid_rows * blocks)};
    if (zeros_) values.zeros = std::span(zero_values_).subspan(begin, values.scales.size());
    if (biases_) values.biases = std::span(bias_values_).subspan(begin, values.scales.size());
    if (indexed) values = expanded(first, rows, column, width);
    const std::int64_t shape[] = {static_cast<std::int64_t>(skipped + rows), static_cast<std::int64_t>(width)};
    const std::int64_t bytes[] = {static_cast<std::int64_t>(codes_.size() / rows * (skipped + rows))};
    BlockTensor tensor = tensor_of(shape, bytes);
    tensor.coding.factor = coding_.factor;
    tensor.block_rows = indexed ? 1 : static_cast<std::int64_t>(std::min(block_rows_, skipped + rows));
    tensor.block_columns = indexed ? 1 : static_cast<std::int64_t>(std::min(block_columns_, width));
    const std::int64_t grid[] = {static_cast<std::int64_t>(values.scales.size())};
    const auto view = [&](std::span<const float> numbers) {
      return numbers.empty() ? TensorView{} : TensorView{DType::float32, grid, std::as_bytes(numbers)};
    };
    tensor.scales = view(values.scales);
    tensor.zero_points = view(values.zeros);
    tensor.biases = view(values.biases);
    return decode_blocks(tensor, skipped, rows, to, out);
  }

  struct Values {
    std::span<const float> scales = {}, zeros = {}, biases = {};
  };

  // The scale and the zero point of each element, as the index of groups has them.
  Values expanded(std::uint64_t first, std::uint64_t rows, std::uint64_t column, std::uint64_t width) {
    each_scale_.resize(rows * width);
    each_zero_.resize(!zeros_ ? 0 : rows * width);
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t offset = (grid_row(first + row) - loaded_first_) * grid_columns_;
      for (std::uint64_t k = 0; k < width; ++k) {
        const std::uint64_t place = offset + static_cast<std::uint64_t>(index_[column + k]);
        each_scale_[row * width + k] = scale_values_[place];
        if (!each_zero_.empty()) each_zero_[row * width + k] = zero_values_[place];
      }
    }
    return {.scales = each_scale_, .zeros = each_zero_, .biases = {}};
  }

  // Rotates whole groups back. The sums are integers under 2^24, so the product with the scale is the one rounding.
  Result<void> decode_rotated(std::uint64_t first, std::uint64_t rows, std::uint64_t width, DType to,
                              std::span<std::byte> out) {
    constexpr float one = 1.0F;
    const std::int64_t shape[] = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)};
    const std::int64_t bytes[] = {static_cast<std::int64_t>(codes_.size())};
    BlockTensor tensor = tensor_of(shape, bytes);
    tensor.block_rows = tensor.block_columns = 0;
    tensor.scales = {DType::float32, {}, std::as_bytes(std::span(&one, 1))};
    rotated_.resize(rows * width);
    const auto rotated = std::as_writable_bytes(std::span(rotated_));
    TRY(decode_blocks(tensor, 0, rows, DType::float32, rotated));
    sum_groups(std::span(rotated_), static_cast<std::size_t>(deviations_.rotation));
    const auto norm = static_cast<float>(group_norm(deviations_.rotation));
    for (std::uint64_t row = 0; row < rows; ++row) {
      const float scale = scale_values_[grid_row(first + row) - loaded_first_];
      for (float& number : std::span(rotated_).subspan(row * width, width)) number = number * norm * scale;
    }
    return cast({DType::float32, shape, rotated}, {to, shape, out}, {}, {.threads = 1});
  }

  // The row of scales of a row of the weight, counted over all experts.
  [[nodiscard]] std::uint64_t grid_row(std::uint64_t row) const {
    return row / rows_of_expert_ * grid_rows_ + row % rows_of_expert_ / block_rows_;
  }

  // Loads the rows [first, last] of scales, unless they are there; whole rows of tiles.
  Result<void> load_scales(std::uint64_t first, std::uint64_t last) {
    if (first >= loaded_first_ && last < loaded_end_) return {};
    if (coding_.swizzled) {
      first = first / block::tile_rows * block::tile_rows;
      last = std::min<std::uint64_t>(last / block::tile_rows * block::tile_rows + block::tile_rows, grid_rows_) - 1;
    }
    loaded_first_ = first;
    loaded_end_ = last + 1;
    scale_values_.resize((last + 1 - first) * grid_columns_);
    TRY(load_grid(scales_, reader_.scale_type(scales_), first, scale_values_));
    apply_global(first);
    if (biases_) {
      bias_values_.resize(scale_values_.size());
      TRY(load_grid(*biases_, reader_.info(*biases_).dtype, first, bias_values_));
      bounds_.add_biases(bias_values_);
    }
    bounds_.add_scales(scale_values_);
    return load_zeros(first, last);
  }

  // Loads the numbers of a grid from its row `first` on, which are rows of one expert where the grid is transposed.
  Result<void> load_grid(std::size_t part, DType type, std::uint64_t first, std::span<float> out) {
    const std::uint64_t rows = out.size() / grid_columns_, before = first / grid_rows_ * grid_rows_ * grid_columns_;
    if (!deviations_.is_grid_transposed) {
      const block::ScaleGrid grid =
          TRY(reader_.grid(part, type, {.rows = rows, .columns = grid_columns_}, first, coding_.swizzled));
      const std::uint64_t together = grid.is_swizzled() ? grid_columns_ : out.size();
      for (std::uint64_t i = 0; i < out.size(); i += together) {
        grid.read(0, i / grid_columns_, 0, out.subspan(i, together));
      }
      return {};
    }
    column_values_.resize(rows);
    for (std::uint64_t column = 0; column < grid_columns_; ++column) {
      TRY(reader_.numbers(part, type, before + column * grid_rows_ + first % grid_rows_, column_values_));
      for (std::uint64_t row = 0; row < rows; ++row) out[row * grid_columns_ + column] = column_values_[row];
    }
    return {};
  }

  void apply_global(std::uint64_t first_row) {
    if (globals_.empty()) return;
    for (std::size_t i = 0; i < scale_values_.size(); ++i) {
      const float global = globals_.size() == 1 ? globals_[0] : globals_[(first_row + i / grid_columns_) / grid_rows_];
      scale_values_[i] = coding_.global == GlobalScale::divisor ? scale_values_[i] / global : scale_values_[i] * global;
    }
  }

  Result<void> load_zeros(std::uint64_t first, std::uint64_t last) {
    if (!zeros_) return {};
    zero_values_.resize(scale_values_.size());
    if (!packed_zeros_) {
      TRY(reader_.numbers(*zeros_, DType::int8, first * grid_columns_, zero_values_));
      for (float& zero : zero_values_) zero += static_cast<float>(coding_.offset);
      return {};
    }
    // Words go down the rows.
    block::CodeMatrices zeros = zero_layout(coding_, grid_rows_, grid_columns_, deviations_.has_whole_codes);
    const std::uint64_t skipped =
        first % (zeros.has_gaps ? bits_of_words / static_cast<std::uint64_t>(coding_.bits) : 32);
    const std::uint64_t begin = zeros.words_of(first - skipped), end = zeros.words_of(last + 1);
    words_.resize((end - begin) * zeros.row_bytes);
    TRY(reader_.bytes(*zeros_, begin * zeros.row_bytes, words_));
    zeros.data = words_.data();
    for (std::uint64_t row = 0; row <= last - first; ++row) {
      zeros.read(0, skipped + row, 0, std::span(zero_values_).subspan(row * grid_columns_, grid_columns_));
    }
    return {};
  }

  [[nodiscard]] bool flat() const noexcept { return coding_.packing == BlockPacking::flat; }

  // Loads the scales of elements [first, first + count), in blocks that run over the whole tensor.
  Result<void> load_flat(std::uint64_t first, std::uint64_t count) {
    const std::uint64_t begin = first / block_columns_, end = (first + count - 1) / block_columns_ + 1;
    scale_values_.resize(end - begin);
    if (!nested_) {
      TRY(reader_.numbers(scales_, reader_.info(scales_).dtype, begin, scale_values_));
      bounds_.add_scales(scale_values_);
      return {};
    }
    const auto block = static_cast<std::uint64_t>(reader_.layer().nested_block);
    nested_codes_.resize(end - begin);
    TRY(reader_.bytes(scales_, begin, nested_codes_));
    nested_values_.resize((end - 1) / block - begin / block + 1);
    TRY(reader_.numbers(*nested_, DType::float32, begin / block, nested_values_));
    for (std::size_t i = 0; i < scale_values_.size(); ++i) {
      const float outer = nested_values_[(begin + i) / block - begin / block];
      const float product = nested_table_[std::to_integer<std::size_t>(nested_codes_[i])] * outer;
      scale_values_[i] = product + reader_.layer().nested_offset;
    }
    bounds_.add_scales(scale_values_);
    return {};
  }

  const BlockCoding coding_;
  const Deviations deviations_;
  std::vector<float> numbers_;  // of codes
  std::uint64_t count_ = 0, columns_ = 0, rows_ = 0, experts_ = 0;
  block::CodeMatrices layout_;  // of the codes
  std::uint64_t block_rows_ = 1, block_columns_ = 1, grid_rows_ = 0, grid_columns_ = 0, rows_of_expert_ = 1;
  bool cuts_rows_ = false;  // pieces are parts of a row, of part_columns_
  bool one_scale_ = false;  // all parts of a row have one scale
  std::uint64_t part_columns_ = 0;
  std::size_t scales_ = 0;
  std::optional<std::size_t> zeros_, biases_, nested_;
  bool packed_zeros_ = false;
  std::vector<float> globals_, nested_table_;
  std::uint64_t loaded_first_ = 0, loaded_end_ = 0;  // rows of scales
  std::vector<float> rotated_;
  std::vector<float> scale_values_, zero_values_, bias_values_, column_values_, nested_values_, each_scale_, each_zero_;
  std::vector<std::byte> codes_, words_, nested_codes_;
};

}  // namespace

Result<std::unique_ptr<LayerDecoder>> create_row_decoder(PartReader reader) {
  return prepared<RowDecoder>(std::move(reader));
}

}  // namespace tensorcast::quantized
