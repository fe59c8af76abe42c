// SPDX-License-Identifier: Apache-2.0
// Layers whose codes are those of the transpose: GPTQ, AWQ, and gpt-oss as transformers holds it. Codes are read in
// windows of at most 16 MiB, or of 32 rows of the weight if those take more.
#include <algorithm>
#include <utility>

#include "dtype/ceil_div.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/code_layout.hpp"
#include "quantized/layer/piece_decoder.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t window_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t piece_rows = 256;  // of the weight: what the engine of blocks transposes at once
constexpr std::uint64_t unit = 32;         // rows of the weight whose codes and zero points are whole words or bytes

// A weight [..., rows, columns]. Rows of the weight are columns of the codes' matrices, and of the other parts.
class TransposedDecoder final : public PieceDecoder {
 public:
  explicit TransposedDecoder(PartReader reader)
      : PieceDecoder(std::move(reader)), coding_(reader_.layer().coding), has_words_(is_in_columns(coding_)) {}

  Result<void> prepare() {
    const Layer& layer = reader_.layer();
    const std::size_t rank = layer.shape.size();
    if (has_words_ && (rank != 2 || layer.block_columns < 1)) return reader_.wrong(0, "its weight is not a matrix");
    const bool are_nibbles = coding_.packing == BlockPacking::stream && coding_.bits == 4;
    if (!has_words_ && (rank < 2 || !are_nibbles)) return reader_.wrong(0, "its weight has no rows");
    rows_ = static_cast<std::uint64_t>(layer.shape[rank - 2]);
    columns_ = static_cast<std::uint64_t>(layer.shape[rank - 1]);
    const std::uint64_t matrices = layer.matrices();
    const bool is_empty = matrices * rows_ * columns_ == 0;
    if (has_words_ && is_empty) return {};
    const bool fits = has_words_ ? lay_out_words() : lay_out_experts();
    if (has_words_ && (!scales_.part || !zeros_.part)) return reader_.wrong(0, "it has no scales or no zero points");
    if (!fits || !std::ranges::all_of(bands(), [&](const Band* band) {
          return reader_.info(*band->part).bytes == matrices * band->rows * band->row_bytes;
        })) {
      return reader_.wrong(0, has_words_ ? "codes, zero points and scales do not have the sizes of their weight"
                                         : "codes and scales do not have the sizes of their weight");
    }
    if (is_empty) return {};
    const std::uint64_t unit_bytes = code_layout(coding_, 32, columns_, unit).matrix_bytes;
    width_ = std::clamp(window_bytes / unit_bytes * unit, unit, ceil_div(rows_, unit) * unit);
    return has_words_ ? load_index(columns_, scales_.rows) : Result<void>();
  }

 private:
  // A part has rows of bytes, of which a window has some columns.
  struct Band {
    std::optional<std::size_t> part;
    std::uint64_t rows = 0, row_bytes = 0;  // of one matrix
    std::vector<std::byte> bytes = {};      // of the window
  };

  [[nodiscard]] std::vector<Band*> bands() {
    return has_words_ ? std::vector{&codes_, &zeros_, &scales_} : std::vector{&codes_, &scales_};
  }

  static Band band_of(std::optional<std::size_t> part, const block::CodeMatrices& codes) {
    return {.part = part,
            .rows = codes.row_bytes == 0 ? 0 : codes.matrix_bytes / codes.row_bytes,
            .row_bytes = codes.row_bytes};
  }

  // GPTQ and AWQ: a weight [N, K], whose codes, zero points and scales have N as the last axis.
  bool lay_out_words() {
    const std::uint64_t groups = ceil_div(columns_, static_cast<std::uint64_t>(reader_.layer().block_columns));
    const auto bits = static_cast<std::uint64_t>(coding_.bits);
    codes_ = band_of(0, code_layout(coding_, 32, columns_, rows_));
    zeros_ = band_of(reader_.find(PartRole::zero_points), zero_layout(coding_, groups, rows_));
    scales_ = {.part = reader_.find(PartRole::scales), .rows = groups};
    if (scales_.part) scale_type_ = reader_.info(*scales_.part).dtype;
    scales_.row_bytes = storage_bytes(scale_type_, rows_);
    bounds_.set_elements(1, 512);  // differences of bytes
    return columns_ * bits % 32 == 0 && rows_ * bits % 32 == 0 && (coding_.packing != BlockPacking::awq || bits == 4);
  }

  // gpt-oss: a weight [E, K, N], whose codes are [E, N, K / 32, 16].
  bool lay_out_experts() {
    codes_ = band_of(0, code_layout(coding_, 8, columns_, rows_));
    scales_ = {.part = reader_.find(PartRole::scales), .rows = columns_, .row_bytes = rows_ / unit};
    scale_type_ = DType::float8_e8m0fnu;
    constexpr double least_code = 0.5, most_code = 6;
    bounds_.set_elements(least_code, most_code);
    return scales_.part && rows_ % unit == 0;
  }

  // Rows of one window.
  Piece piece_at(std::uint64_t element, std::uint64_t /*limit*/) const override {
    const std::uint64_t row = element / columns_, in_matrix = row % rows_, window = in_matrix / width_ * width_;
    const std::uint64_t begin = window + (in_matrix - window) / piece_rows * piece_rows;
    const std::uint64_t end = std::min({begin + piece_rows, window + width_, rows_});
    return {(row - in_matrix + begin) * columns_, (row - in_matrix + end) * columns_};
  }

  Result<void> decode(const Piece& piece, DType to, std::span<std::byte> out) override {
    const std::uint64_t row = piece.begin / columns_, rows = piece.end / columns_ - row;
    if (row < window_begin_ || row >= window_end_) TRY(load(row / rows_, row % rows_ / width_ * width_));
    const auto size = [](const auto& values) { return static_cast<std::int64_t>(values.size()); };
    const std::int64_t shape[] = {static_cast<std::int64_t>(window_end_ - window_begin_),
                                  static_cast<std::int64_t>(columns_)};
    const std::int64_t codes[] = {size(codes_.bytes) / (has_words_ ? 4 : 1)}, zeros[] = {size(zeros_.bytes) / 4};
    const std::int64_t scales[] = {size(scale_values_)}, index[] = {size(index_)};
    BlockTensor tensor;
    tensor.shape = shape;
    if (has_words_) {
      tensor.coding = {.element = DType::uint8,
                       .bits = coding_.bits,
                       .packing = coding_.packing,
                       .zero_added = coding_.zero_added,
                       .zeros = coding_.packing == BlockPacking::awq ? BlockPacking::awq : BlockPacking::stream};
      tensor.block_rows = reader_.layer().block_columns;
      tensor.block_columns = 1;
      tensor.codes = {DType::int32, codes, codes_.bytes};
      tensor.scales = {DType::float32, scales, std::as_bytes(std::span(scale_values_))};
      tensor.zero_points = {DType::int32, zeros, zeros_.bytes};
      if (!index_.empty()) tensor.group_index = {DType::int32, index, std::as_bytes(std::span(index_))};
    } else {
      tensor.coding = {.element = DType::float4_e2m1fn, .bits = 4, .scale = scale_type_, .transposed = true};
      tensor.block_columns = static_cast<std::int64_t>(unit);
      tensor.codes = {DType::uint8, codes, codes_.bytes};
      tensor.scales = {DType::uint8, scales, scales_.bytes};
    }
    return decode_blocks(tensor, row - window_begin_, rows, to, out);
  }

  // Loads rows [begin, begin + width_) of a matrix of the weight.
  Result<void> load(std::uint64_t matrix, std::uint64_t begin) {
    const std::uint64_t end = std::min(begin + width_, rows_);
    window_end_ = window_begin_;  // until it is loaded
    for (Band* const band : bands()) {
      const auto bytes_of = [&](std::uint64_t rows) { return band->row_bytes * rows / rows_; };
      band->bytes.resize(band->rows * bytes_of(end - begin));
      TRY(reader_.columns(*band->part, band->row_bytes, bytes_of(begin), bytes_of(end - begin), band->bytes,
                          matrix * band->rows));
    }
    scale_values_.resize(scales_.bytes.size() / storage_bytes(scale_type_, 1));
    TRY(to_float(scale_type_, scales_.bytes, scale_values_));
    bounds_.add_scales(scale_values_);
    window_begin_ = matrix * rows_ + begin;
    window_end_ = matrix * rows_ + end;
    return {};
  }

  const BlockCoding coding_;
  const bool has_words_;  // GPTQ and AWQ
  std::uint64_t rows_ = 0, columns_ = 0;
  Band codes_, zeros_, scales_;
  DType scale_type_ = DType::undefined;
  std::uint64_t width_ = unit, window_begin_ = 0, window_end_ = 0;  // rows of the weight, over all matrices
  std::vector<float> scale_values_;
};

}  // namespace

Result<std::unique_ptr<LayerDecoder>> create_transposed_decoder(PartReader reader) {
  return prepared<TransposedDecoder>(std::move(reader));
}

}  // namespace tensorcast::quantized
