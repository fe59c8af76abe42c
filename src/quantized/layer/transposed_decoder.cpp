// SPDX-License-Identifier: Apache-2.0
// Layers whose codes are those of the transpose: GPTQ, AWQ, and gpt-oss as transformers holds it. Codes are read in
// windows of at most 16 MiB, or of 32 rows of the weight if those take more.

#include <algorithm>
#include <utility>

#include "dtype/ceil_div.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/piece_decoder.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t window_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t piece_rows = 256;  // of the weight: what the engine of blocks transposes at once

// GPTQ and AWQ: a weight [N, K], whose codes, zero points and scales have N as the last axis.
class ColumnDecoder final : public PieceDecoder {
 public:
  explicit ColumnDecoder(PartReader reader)
      : PieceDecoder(std::move(reader)), coding_(reader_.layer().coding), awq_(coding_.packing == BlockPacking::awq) {
    bounds_.set_elements(1, 512);  // differences of bytes
  }

  Result<void> prepare() {
    const Layer& layer = reader_.layer();
    if (layer.shape.size() != 2 || layer.block_columns < 1) return reader_.wrong(0, "its weight is not a matrix");
    outputs_ = static_cast<std::uint64_t>(layer.shape[0]);
    inputs_ = static_cast<std::uint64_t>(layer.shape[1]);
    if (outputs_ == 0 || inputs_ == 0) return {};
    group_ = static_cast<std::uint64_t>(layer.block_columns);
    groups_ = ceil_div(inputs_, group_);
    const auto bits = static_cast<std::uint64_t>(coding_.bits);
    code_rows_ = awq_ ? inputs_ : inputs_ * bits / word_bits;
    code_words_ = awq_ ? outputs_ / awq_columns : outputs_;
    zero_words_ = outputs_ * bits / word_bits;
    const std::optional<std::size_t> scales = reader_.find(PartRole::scales),
                                     zeros = reader_.find(PartRole::zero_points);
    if (!scales || !zeros) return reader_.wrong(0, "it has no scales or no zero points");
    scales_ = *scales, zeros_ = *zeros;
    const bool whole = inputs_ * bits % word_bits == 0 && outputs_ * bits % word_bits == 0 && (!awq_ || bits == 4);
    if (!whole || reader_.info(0).bytes != code_rows_ * code_words_ * 4 ||
        reader_.info(zeros_).bytes != groups_ * zero_words_ * 4 || reader_.info(scales_).count != groups_ * outputs_) {
      return reader_.wrong(0, "codes, zero points and scales do not have the sizes of their weight");
    }
    // Windows begin at whole words of zero points: 32 columns are whole words of every width.
    width_ = std::clamp<std::uint64_t>(window_bytes / (code_rows_ * 4) * (awq_ ? awq_columns : 1) / unit * unit, unit,
                                       ceil_div(outputs_, unit) * unit);
    return load_index(inputs_, groups_);
  }

 private:
  static constexpr std::uint64_t word_bits = 32, awq_columns = 8, unit = 32;

  // Rows of one window.
  Piece piece_at(std::uint64_t element, std::uint64_t /*limit*/) const override {
    const std::uint64_t row = element / inputs_, window = row / width_ * width_;
    const std::uint64_t begin = window + (row - window) / piece_rows * piece_rows;
    return {begin * inputs_, std::min({begin + piece_rows, window + width_, outputs_}) * inputs_};
  }

  Result<void> decode(const Piece& piece, DType to, std::span<std::byte> out) override {
    const std::uint64_t first = piece.begin / inputs_, rows = piece.end / inputs_ - first;
    if (first < window_begin_ || first >= window_end_) TRY(load(first / width_ * width_));
    const auto size = [](const auto& values) { return static_cast<std::int64_t>(values.size()); };
    const std::int64_t shape[] = {static_cast<std::int64_t>(window_end_ - window_begin_),
                                  static_cast<std::int64_t>(inputs_)};
    const std::int64_t codes[] = {size(codes_)}, zeros[] = {size(zero_codes_)}, scales[] = {size(scale_values_)};
    const std::int64_t index[] = {size(index_)};
    const BlockPacking packing = awq_ ? BlockPacking::awq : BlockPacking::words_down;
    BlockTensor tensor;
    tensor.coding = {.element = DType::uint8,
                     .bits = coding_.bits,
                     .packing = packing,
                     .zero_added = coding_.zero_added,
                     .zeros = awq_ ? BlockPacking::awq : BlockPacking::stream};
    tensor.shape = shape;
    tensor.block_rows = static_cast<std::int64_t>(group_);
    tensor.block_columns = 1;
    tensor.codes = {DType::int32, codes, std::as_bytes(std::span(codes_))};
    tensor.scales = {DType::float32, scales, std::as_bytes(std::span(scale_values_))};
    tensor.zero_points = {DType::int32, zeros, std::as_bytes(std::span(zero_codes_))};
    if (!index_.empty()) tensor.group_index = {DType::int32, index, std::as_bytes(std::span(index_))};
    return decode_blocks(tensor, first - window_begin_, rows, to, out);
  }

  // Loads columns [begin, begin + width_) of all parts.
  Result<void> load(std::uint64_t begin) {
    const std::uint64_t end = std::min(begin + width_, outputs_);
    const auto bits = static_cast<std::uint64_t>(coding_.bits);
    const std::uint64_t per_word = awq_ ? awq_columns : 1;
    TRY(load_words(0, code_rows_, code_words_, begin / per_word, end / per_word, codes_));
    const std::uint64_t zero_begin = begin * bits / word_bits, zero_end = end * bits / word_bits;
    TRY(load_words(zeros_, groups_, zero_words_, zero_begin, zero_end, zero_codes_));
    scale_values_.resize(groups_ * (end - begin));
    for (std::uint64_t group = 0; group < groups_; ++group) {
      const auto row = std::span(scale_values_).subspan(group * (end - begin), end - begin);
      TRY(reader_.numbers(scales_, reader_.info(scales_).dtype, group * outputs_ + begin, row));
    }
    bounds_.add_scales(scale_values_);
    window_begin_ = begin;
    window_end_ = end;
    return {};
  }

  Result<void> load_words(std::size_t part, std::uint64_t rows, std::uint64_t row_words, std::uint64_t begin,
                          std::uint64_t end, std::vector<std::uint32_t>& words) const {
    words.resize(rows * (end - begin));
    const auto bytes = std::as_writable_bytes(std::span(words));
    if (end - begin == row_words) return reader_.bytes(part, 0, bytes);
    for (std::uint64_t row = 0; row < rows; ++row) {
      const auto one = bytes.subspan(row * (end - begin) * 4, (end - begin) * 4);
      TRY(reader_.bytes(part, (row * row_words + begin) * 4, one));
    }
    return {};
  }

  const BlockCoding coding_;
  const bool awq_;
  std::uint64_t outputs_ = 0, inputs_ = 0, group_ = 1, groups_ = 0, code_rows_ = 0, code_words_ = 0, zero_words_ = 0;
  std::size_t scales_ = 0, zeros_ = 0;
  std::uint64_t width_ = unit, window_begin_ = 0, window_end_ = 0;
  std::vector<std::uint32_t> codes_, zero_codes_;
  std::vector<float> scale_values_;
};

// gpt-oss: a weight [E, K, N], whose codes are [E, N, K / 32, 16].
class ExpertDecoder final : public PieceDecoder {
 public:
  explicit ExpertDecoder(PartReader reader) : PieceDecoder(std::move(reader)) {
    constexpr double least_code = 0.5, most_code = 6;
    bounds_.set_elements(least_code, most_code);
  }

  Result<void> prepare() {
    const Layer& layer = reader_.layer();
    const std::size_t rank = layer.shape.size();
    if (rank < 2 || layer.coding.bits != 4) return reader_.wrong(0, "its weight has no rows");
    inputs_ = static_cast<std::uint64_t>(layer.shape[rank - 2]);
    outputs_ = static_cast<std::uint64_t>(layer.shape[rank - 1]);
    experts_ = 1;
    for (std::size_t i = 0; i + 2 < rank; ++i) experts_ *= static_cast<std::uint64_t>(layer.shape[i]);
    const std::optional<std::size_t> scales = reader_.find(PartRole::scales);
    const std::uint64_t count = experts_ * inputs_ * outputs_;
    if (!scales || inputs_ % block != 0 || reader_.info(0).bytes != count / 2 ||
        reader_.info(*scales).bytes != count / block) {
      return reader_.wrong(0, "codes and scales do not have the sizes of their weight");
    }
    scales_ = *scales;
    if (count == 0) return {};
    blocks_ = inputs_ / block;
    width_ = std::clamp<std::uint64_t>(window_bytes / (outputs_ * block_bytes), 1, blocks_);
    return {};
  }

 private:
  static constexpr std::uint64_t block = 32, block_bytes = 16;

  // Rows of one window.
  Piece piece_at(std::uint64_t element, std::uint64_t /*limit*/) const override {
    const std::uint64_t row = element / outputs_, expert = row / inputs_, input = row % inputs_;
    const std::uint64_t window = input / (width_ * block) * width_ * block;
    const std::uint64_t begin = window + (input - window) / piece_rows * piece_rows;
    const std::uint64_t end = std::min({begin + piece_rows, window + width_ * block, inputs_});
    return {(expert * inputs_ + begin) * outputs_, (expert * inputs_ + end) * outputs_};
  }

  Result<void> decode(const Piece& piece, DType to, std::span<std::byte> out) override {
    const std::uint64_t row = piece.begin / outputs_, rows = piece.end / outputs_ - row, input = row % inputs_;
    TRY(load(row / inputs_, input / block));
    const auto size = [](const auto& values) { return static_cast<std::int64_t>(values.size()); };
    const std::int64_t shape[] = {static_cast<std::int64_t>(codes_.size() / block_bytes * block / outputs_),
                                  static_cast<std::int64_t>(outputs_)};
    const std::int64_t codes[] = {size(codes_)}, scales[] = {size(scales_bytes_)};
    BlockTensor tensor;
    tensor.coding = {.element = DType::float4_e2m1fn, .bits = 4, .scale = DType::float8_e8m0fnu, .transposed = true};
    tensor.shape = shape;
    tensor.block_columns = static_cast<std::int64_t>(block);
    tensor.codes = {DType::uint8, codes, codes_};
    tensor.scales = {DType::uint8, scales, scales_bytes_};
    return decode_blocks(tensor, input - begin_ * block, rows, to, out);
  }

  // Loads the window of blocks that has `wanted`.
  Result<void> load(std::uint64_t expert, std::uint64_t wanted) {
    const std::uint64_t begin = wanted / width_ * width_, end = std::min(begin + width_, blocks_);
    if (expert == expert_ && begin == begin_) return {};
    expert_ = UINT64_MAX;  // until it is loaded
    codes_.resize(outputs_ * (end - begin) * block_bytes);
    scales_bytes_.resize(outputs_ * (end - begin));
    const std::uint64_t rows = end - begin == blocks_ ? 1 : outputs_;  // of the reads
    const std::uint64_t each = outputs_ * (end - begin) / rows;
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t at = (expert * outputs_ + row) * blocks_ + begin;
      const auto codes = std::span(codes_).subspan(row * each * block_bytes, each * block_bytes);
      TRY(reader_.bytes(0, at * block_bytes, codes));
      const auto scales = std::span(scales_bytes_).subspan(row * each, each);
      TRY(reader_.bytes(scales_, at, scales));
    }
    for (const std::byte exponent : scales_bytes_) {
      constexpr int bias = 127;
      const float scale = std::ldexp(1.0F, std::to_integer<int>(exponent) - bias);
      bounds_.add_scales({&scale, 1});
    }
    expert_ = expert;
    begin_ = begin;
    return {};
  }

  std::uint64_t inputs_ = 0, outputs_ = 0, experts_ = 0, blocks_ = 0, width_ = 1;
  std::size_t scales_ = 0;
  std::uint64_t expert_ = UINT64_MAX, begin_ = 0;
  std::vector<std::byte> codes_, scales_bytes_;
};

}  // namespace

Result<std::unique_ptr<LayerDecoder>> create_transposed_decoder(PartReader reader) {
  if (is_in_columns(reader.layer().coding)) return prepared<ColumnDecoder>(std::move(reader));
  return prepared<ExpertDecoder>(std::move(reader));
}

}  // namespace tensorcast::quantized
