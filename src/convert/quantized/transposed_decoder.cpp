// Layers whose codes are those of the transpose: GPTQ, AWQ, and gpt-oss as transformers holds it. Codes are read in
// windows of at most 16 MiB, or of 32 rows of the weight if those take more.
#include <fmt/format.h>
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "convert/quantized/part_reader.hpp"
#include "dtype/ceil_div.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t window_bytes = std::uint64_t{16} << 20;

// GPTQ and AWQ: a weight [N, K], whose codes, zero points and scales have N as the last axis.
class ColumnDecoder final : public LayerDecoder {
 public:
  explicit ColumnDecoder(PartReader reader) : reader_(std::move(reader)), coding_(reader_.layer().coding) {}

  Result<void> prepare() {
    const Layer& layer = reader_.layer();
    if (layer.shape.size() != 2 || layer.block_columns < 1) return reader_.wrong(0, "its weight is not a matrix");
    outputs_ = static_cast<std::uint64_t>(layer.shape[0]);
    inputs_ = static_cast<std::uint64_t>(layer.shape[1]);
    if (outputs_ == 0 || inputs_ == 0) return {};
    group_ = static_cast<std::uint64_t>(layer.block_columns);
    groups_ = ceil_div(inputs_, group_);
    const auto bits = static_cast<std::uint64_t>(coding_.bits);
    awq_ = coding_.packing == Packing::awq;
    code_rows_ = awq_ ? inputs_ : inputs_ * bits / word_bits;
    code_words_ = awq_ ? outputs_ / awq_columns : outputs_;
    zero_words_ = outputs_ * bits / word_bits;
    scales_ = reader_.find(PartRole::scales);
    zeros_ = reader_.find(PartRole::zero_points);
    if (scales_ == no_part || zeros_ == no_part) return reader_.wrong(0, "it has no scales or no zero points");
    const bool whole = inputs_ * bits % word_bits == 0 && outputs_ * bits % word_bits == 0 && (!awq_ || bits == 4);
    if (!whole || reader_.info(0).bytes != code_rows_ * code_words_ * 4 ||
        reader_.info(zeros_).bytes != groups_ * zero_words_ * 4 || reader_.info(scales_).count != groups_ * outputs_) {
      return reader_.wrong(0, "codes, zero points and scales do not have the sizes of their weight");
    }
    // Windows begin at whole words of zero points: 32 columns are whole words of every width.
    width_ = std::clamp<std::uint64_t>(window_bytes / (code_rows_ * 4) * (awq_ ? awq_columns : 1) / unit * unit, unit,
                                       ceil_div(outputs_, unit) * unit);
    return load_index();
  }

  Result<void> read(std::uint64_t first, std::span<float> out) override {
    for (std::uint64_t done = 0; done < out.size();) {
      const std::uint64_t row = (first + done) / inputs_, begin = (first + done) % inputs_;
      const std::uint64_t length = std::min<std::uint64_t>(inputs_ - begin, out.size() - done);
      if (row < window_begin_ || row >= window_end_) {
        if (Result<void> loaded = load(row / width_ * width_); !loaded) return loaded;
      }
      decode(row - window_begin_, begin, out.subspan(done, length));
      done += length;
    }
    return {};
  }

 private:
  static constexpr std::uint64_t word_bits = 32, awq_columns = 8, unit = 32;

  Result<void> load_index() {
    const std::size_t part = reader_.find(PartRole::group_index);
    if (part == no_part) return {};
    if (reader_.info(part).dtype != DType::int32 || reader_.info(part).count != inputs_) {
      return reader_.wrong(part, "it is not one group an input");
    }
    index_.resize(inputs_);
    if (Result<void> got = reader_.bytes(part, 0, std::as_writable_bytes(std::span(index_))); !got) return got;
    for (std::uint64_t k = 0; k < inputs_; ++k) {
      if (index_[k] >= 0 && static_cast<std::uint64_t>(index_[k]) < groups_) continue;
      Error error = reader_.wrong(part, fmt::format("there is no group {}", index_[k]));
      error.element = k;
      return error;
    }
    return {};
  }

  // Loads columns [begin, begin + width_) of all parts.
  Result<void> load(std::uint64_t begin) {
    const std::uint64_t end = std::min(begin + width_, outputs_);
    const auto bits = static_cast<std::uint64_t>(coding_.bits);
    const std::uint64_t per_word = awq_ ? awq_columns : 1;
    if (auto got = load_words(0, code_rows_, code_words_, begin / per_word, end / per_word, codes_); !got) return got;
    const std::uint64_t zero_begin = begin * bits / word_bits, zero_end = end * bits / word_bits;
    if (auto got = load_words(zeros_, groups_, zero_words_, zero_begin, zero_end, zero_codes_); !got) return got;
    scale_values_.resize(groups_ * (end - begin));
    for (std::uint64_t group = 0; group < groups_; ++group) {
      const auto row = std::span(scale_values_).subspan(group * (end - begin), end - begin);
      if (auto got = reader_.numbers(scales_, reader_.info(scales_).dtype, group * outputs_ + begin, row); !got)
        return got;
    }
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
      if (auto got = reader_.bytes(part, (row * row_words + begin) * 4, one); !got) return got;
    }
    return {};
  }

  // The code at `bit` of words that lie `stride` apart.
  [[nodiscard]] unsigned code(const std::uint32_t* words, std::uint64_t stride, std::uint64_t bit) const noexcept {
    const std::uint64_t word = bit / word_bits, shift = bit % word_bits;
    std::uint64_t value = words[word * stride];
    if (shift + static_cast<std::uint64_t>(coding_.bits) > word_bits) {
      value |= std::uint64_t{words[(word + 1) * stride]} << word_bits;
    }
    return static_cast<unsigned>(value >> shift) & ((1u << coding_.bits) - 1);
  }

  // The place of a column among the codes of a word of AWQ.
  static std::uint64_t awq_bit(std::uint64_t column) {
    constexpr std::array<std::uint64_t, awq_columns> place = {0, 4, 1, 5, 2, 6, 3, 7};
    return (column / awq_columns * awq_columns + place[column % awq_columns]) * 4;
  }

  // Decodes inputs [begin, begin + out.size()) of the output `column` of the window.
  void decode(std::uint64_t column, std::uint64_t begin, std::span<float> out) {
    const std::uint64_t width = window_end_ - window_begin_;
    const auto bits = static_cast<std::uint64_t>(coding_.bits);
    const std::uint64_t zero_bit = awq_ ? awq_bit(column) : column * bits;
    zero_values_.resize(groups_);
    for (std::uint64_t group = 0; group < groups_; ++group) {
      const std::uint32_t* row = zero_codes_.data() + group * (width * bits / word_bits);
      zero_values_[group] = static_cast<float>(code(row, 1, zero_bit) + static_cast<unsigned>(coding_.zero_added));
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t k = begin + i;
      const std::uint64_t group = index_.empty() ? k / group_ : static_cast<std::uint64_t>(index_[k]);
      const unsigned value = awq_ ? code(codes_.data() + k * (width / awq_columns), 1, zero_bit)
                                  : code(codes_.data() + column, width, k * bits);
      out[i] = (static_cast<float>(value) - zero_values_[group]) * scale_values_[group * width + column];
    }
  }

  PartReader reader_;
  const Coding coding_;
  bool awq_ = false;
  std::uint64_t outputs_ = 0, inputs_ = 0, group_ = 1, groups_ = 0, code_rows_ = 0, code_words_ = 0, zero_words_ = 0;
  std::size_t scales_ = no_part, zeros_ = no_part;
  std::vector<std::int32_t> index_;
  std::uint64_t width_ = unit, window_begin_ = 0, window_end_ = 0;
  std::vector<std::uint32_t> codes_, zero_codes_;
  std::vector<float> scale_values_, zero_values_;
};

// gpt-oss: a weight [E, K, N], whose codes are [E, N, K / 32, 16].
class ExpertDecoder final : public LayerDecoder {
 public:
  explicit ExpertDecoder(PartReader reader)
      : reader_(std::move(reader)), numbers_(code_numbers(reader_.layer().coding, reader_.layer().scheme)) {}

  Result<void> prepare() {
    const Layer& layer = reader_.layer();
    const std::size_t rank = layer.shape.size();
    if (rank < 2 || layer.coding.bits != 4) return reader_.wrong(0, "its weight has no rows");
    inputs_ = static_cast<std::uint64_t>(layer.shape[rank - 2]);
    outputs_ = static_cast<std::uint64_t>(layer.shape[rank - 1]);
    experts_ = 1;
    for (std::size_t i = 0; i + 2 < rank; ++i) experts_ *= static_cast<std::uint64_t>(layer.shape[i]);
    scales_ = reader_.find(PartRole::scales);
    const std::uint64_t count = experts_ * inputs_ * outputs_;
    if (scales_ == no_part || inputs_ % block != 0 || reader_.info(0).bytes != count / 2 ||
        reader_.info(scales_).bytes != count / block) {
      return reader_.wrong(0, "codes and scales do not have the sizes of their weight");
    }
    if (count == 0) return {};
    blocks_ = inputs_ / block;
    width_ = std::clamp<std::uint64_t>(window_bytes / (outputs_ * block_bytes), 1, blocks_);
    return {};
  }

  Result<void> read(std::uint64_t first, std::span<float> out) override {
    for (std::uint64_t done = 0; done < out.size();) {
      const std::uint64_t row = (first + done) / outputs_, begin = (first + done) % outputs_;
      const std::uint64_t length = std::min<std::uint64_t>(outputs_ - begin, out.size() - done);
      const std::uint64_t expert = row / inputs_, input = row % inputs_;
      if (Result<void> loaded = load(expert, input / block); !loaded) return loaded;
      decode(input, begin, out.subspan(done, length));
      done += length;
    }
    return {};
  }

 private:
  static constexpr std::uint64_t block = 32, block_bytes = 16;

  // Loads the window of blocks that has `wanted`, and turns the block itself.
  Result<void> load(std::uint64_t expert, std::uint64_t wanted) {
    const std::uint64_t begin = wanted / width_ * width_, end = std::min(begin + width_, blocks_);
    if (expert != expert_ || begin != begin_ || codes_.empty()) {
      codes_.resize(outputs_ * (end - begin) * block_bytes);
      scale_values_.resize(outputs_ * (end - begin));
      const std::uint64_t rows = end - begin == blocks_ ? 1 : outputs_;  // of the reads
      const std::uint64_t each = outputs_ * (end - begin) / rows;
      for (std::uint64_t row = 0; row < rows; ++row) {
        const std::uint64_t at = (expert * outputs_ + row) * blocks_ + begin;
        const auto codes = std::span(codes_).subspan(row * each * block_bytes, each * block_bytes);
        if (Result<void> got = reader_.bytes(0, at * block_bytes, codes); !got) return got;
        const auto scales = std::span(scale_values_).subspan(row * each, each);
        if (auto got = reader_.numbers(scales_, DType::float8_e8m0fnu, at, scales); !got) return got;
      }
      expert_ = expert;
      begin_ = begin;
      turned_ = UINT64_MAX;
    }
    if (turned_ == wanted) return {};
    turned_ = wanted;
    values_.resize(block * outputs_);
    const std::uint64_t width = end - begin;
    for (std::uint64_t output = 0; output < outputs_; ++output) {
      const std::uint64_t place = output * width + wanted - begin;
      const std::byte* codes = codes_.data() + place * block_bytes;
      const float scale = scale_values_[place];
      for (std::uint64_t i = 0; i < block_bytes; ++i) {
        const auto byte = std::to_integer<unsigned>(codes[i]);
        values_[2 * i * outputs_ + output] = numbers_[byte & 15] * scale;
        values_[(2 * i + 1) * outputs_ + output] = numbers_[byte >> 4] * scale;
      }
    }
    return {};
  }

  void decode(std::uint64_t input, std::uint64_t begin, std::span<float> out) const {
    const auto row = std::span(values_).subspan(input % block * outputs_ + begin, out.size());
    std::ranges::copy(row, out.begin());
  }

  PartReader reader_;
  std::vector<float> numbers_;
  std::uint64_t inputs_ = 0, outputs_ = 0, experts_ = 0, blocks_ = 0, width_ = 1;
  std::size_t scales_ = no_part;
  std::uint64_t expert_ = 0, begin_ = 0, turned_ = UINT64_MAX;
  std::vector<std::byte> codes_;
  std::vector<float> scale_values_, values_;
};

template <class Decoder>
Result<std::unique_ptr<LayerDecoder>> prepared(PartReader reader) {
  auto decoder = std::make_unique<Decoder>(std::move(reader));
  if (Result<void> done = decoder->prepare(); !done) return std::move(done).error();
  return std::unique_ptr<LayerDecoder>(std::move(decoder));
}

}  // namespace

Result<std::unique_ptr<LayerDecoder>> create_transposed_decoder(PartReader reader) {
  const Packing packing = reader.layer().coding.packing;
  if (packing == Packing::low_nibble_first) return prepared<ExpertDecoder>(std::move(reader));
  return prepared<ColumnDecoder>(std::move(reader));
}

}  // namespace tensorcast::quantized
