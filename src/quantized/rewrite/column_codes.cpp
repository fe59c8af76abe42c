// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/column_codes.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "dtype/ceil_div.hpp"
#include "dtype/try.hpp"

namespace tensorcast::quantized {

Result<std::unique_ptr<LayerCodes>> ColumnCodes::create(PartReader reader, LayerContent content) {
  const BlockCoding& coding = reader.layer().coding;
  const bool is_known = content.shape.size() == 2 && content.block_rows == 1 && content.bits == coding.bits &&
                        coding.bits >= 2 && coding.bits <= 8 && is_in_columns(coding) &&
                        (coding.packing != BlockPacking::awq || coding.bits == 4);
  if (!is_known) return reader.wrong(0, "its codes do not lie in columns");
  auto codes = std::unique_ptr<ColumnCodes>(new ColumnCodes(std::move(reader), std::move(content)));
  TRY(codes->check());
  return std::unique_ptr<LayerCodes>(std::move(codes));
}

Result<void> ColumnCodes::check() {
  constexpr std::uint64_t window_words = std::uint64_t{4} << 20, unit = 32, word = ColumnWords::word_bits;
  const std::uint64_t outputs = content_.rows(), groups = content_.grid_columns();
  const auto bits = static_cast<std::uint64_t>(content_.bits);
  const std::optional<std::size_t> scales = reader_.find(PartRole::scales), zeros = reader_.find(PartRole::zero_points);
  if (!scales || !zeros) return reader_.wrong(0, "it has no scales or no zero points");
  scales_part_ = *scales, zeros_part_ = *zeros;
  const std::uint64_t scale_bytes = outputs * groups * static_cast<std::uint64_t>(bit_width(content_.scales)) / 8;
  if (outputs * bits % word != 0 || content_.columns() * bits % word != 0 ||
      reader_.info(0).bytes != columns_.code_rows() * columns_.code_words() * sizeof(std::uint32_t) ||
      reader_.info(*zeros).bytes != groups * columns_.zero_words() * sizeof(std::uint32_t) ||
      reader_.info(*scales).bytes != scale_bytes) {
    return reader_.wrong(0, "codes, zero points and scales do not have the sizes of their weight");
  }
  if (columns_.code_rows() == 0) return {};
  width_ = std::clamp<std::uint64_t>(window_words / columns_.code_rows() * columns_.outputs_of_word() / unit * unit,
                                     unit, ceil_div(std::max<std::uint64_t>(outputs, 1), unit) * unit);
  return {};
}

Result<void> ColumnCodes::load(std::uint64_t row) {
  const std::uint64_t per_word = columns_.outputs_of_word(), all = columns_.code_words(), rows = columns_.code_rows();
  const std::uint64_t begin = row / width_ * width_, end = std::min(begin + width_, content_.rows());
  const std::uint64_t words = (end - begin) / per_word;
  end_ = begin_;  // until it is loaded
  words_.resize(rows * words);
  const auto bytes = std::as_writable_bytes(std::span(words_));
  const std::uint64_t reads = words == all ? 1 : rows, each = bytes.size() / reads;
  for (std::uint64_t i = 0; i < reads; ++i) {
    const std::uint64_t offset = (i * all + begin / per_word) * sizeof(std::uint32_t);
    TRY(reader_.bytes(0, offset, bytes.subspan(i * each, each)));
  }
  begin_ = begin;
  end_ = end;
  return {};
}

Result<void> ColumnCodes::codes(std::uint64_t first_row, std::span<std::byte> out) {
  const std::uint64_t columns = content_.columns();
  for (std::uint64_t row = first_row; !out.empty();) {
    if (row < begin_ || row >= end_) TRY(load(row));
    const std::uint64_t count = std::min(end_ - row, out.size() / columns);
    columns_.unpack(words_, (end_ - begin_) / columns_.outputs_of_word(), begin_, row, out.first(count * columns));
    out = out.subspan(count * columns);
    row += count;
  }
  return {};
}

Result<void> ColumnCodes::scales(std::uint64_t first_row, std::span<std::byte> out) {
  if (scales_.empty()) {
    std::vector<std::byte> all(reader_.info(scales_part_).bytes);
    TRY(reader_.bytes(scales_part_, 0, all));
    scales_ = std::move(all);
  }
  const std::uint64_t groups = content_.grid_columns(), outputs = content_.rows();
  const auto item = static_cast<std::uint64_t>(bit_width(content_.scales) / 8);
  for (std::uint64_t i = 0; i < out.size() / item; ++i) {
    const std::uint64_t from = i % groups * outputs + first_row + i / groups;
    std::memcpy(out.data() + i * item, scales_.data() + from * item, item);
  }
  return {};
}

Result<void> ColumnCodes::zero_points(std::uint64_t first_row, std::span<std::byte> out) {
  const std::uint64_t groups = content_.grid_columns(), outputs = content_.rows();
  if (zeros_.empty()) {
    std::vector<std::uint32_t> words(groups * columns_.zero_words());
    TRY(reader_.bytes(zeros_part_, 0, std::as_writable_bytes(std::span(words))));
    std::vector<std::byte> of_group(outputs);
    zeros_.resize(groups * outputs);
    for (std::uint64_t group = 0; group < groups; ++group) {
      columns_.unpack_zeros(std::span(words).subspan(group * columns_.zero_words(), columns_.zero_words()), of_group);
      for (std::uint64_t output = 0; output < outputs; ++output) zeros_[output * groups + group] = of_group[output];
    }
  }
  std::memcpy(out.data(), zeros_.data() + first_row * groups, out.size());
  return {};
}

Result<bool> ColumnCodes::packed(const BlockCoding& coding, std::uint64_t offset, std::span<std::byte> out) {
  if (coding.packing != reader_.layer().coding.packing) return false;
  TRY(reader_.bytes(0, offset, out));
  return true;
}

}  // namespace tensorcast::quantized
