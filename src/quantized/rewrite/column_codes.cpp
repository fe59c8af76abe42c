// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/column_codes.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "block/scale_grid.hpp"
#include "cast/transpose.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/code_layout.hpp"

namespace tensorcast::quantized {

Result<std::unique_ptr<LayerCodes>> ColumnCodes::create(PartReader reader, LayerContent content) {
  const Coding& coding = reader.layer().coding;
  const bool is_known = content.shape.size() == 2 && content.block_rows == 1 && content.bits == coding.bits &&
                        coding.bits >= 2 && coding.bits <= 8 && is_in_columns(coding.packing) &&
                        (coding.packing != Packing::awq || coding.bits == 4);
  if (!is_known) return reader.wrong(0, "its codes do not lie in columns");
  auto codes = std::unique_ptr<ColumnCodes>(new ColumnCodes(std::move(reader), std::move(content)));
  TRY(codes->check());
  return std::unique_ptr<LayerCodes>(std::move(codes));
}

Result<void> ColumnCodes::check() {
  constexpr std::uint64_t window_bytes = std::uint64_t{16} << 20, unit = 32, word = 32;
  const Coding& coding = reader_.layer().coding;
  const std::uint64_t outputs = content_.rows(), groups = content_.grid_columns();
  const auto bits = static_cast<std::uint64_t>(content_.bits);
  const std::optional<std::size_t> scales = reader_.find(PartRole::scales), zeros = reader_.find(PartRole::zero_points);
  if (!scales || !zeros) return reader_.wrong(0, "it has no scales or no zero points");
  scales_part_ = *scales, zeros_part_ = *zeros;
  all_ = code_layout(coding, word, content_.columns(), outputs);
  const std::uint64_t scale_bytes = outputs * groups * static_cast<std::uint64_t>(bit_width(content_.scales)) / 8;
  if (outputs * bits % word != 0 || content_.columns() * bits % word != 0 ||
      reader_.info(0).bytes != all_.matrix_bytes ||
      reader_.info(*zeros).bytes != zero_layout(coding, groups, outputs).matrix_bytes ||
      reader_.info(*scales).bytes != scale_bytes) {
    return reader_.wrong(0, "codes, zero points and scales do not have the sizes of their weight");
  }
  const std::uint64_t unit_bytes = code_layout(coding, word, content_.columns(), unit).matrix_bytes;
  if (unit_bytes == 0) return {};
  width_ = std::clamp<std::uint64_t>(window_bytes / unit_bytes * unit, unit,
                                     ceil_div(std::max<std::uint64_t>(outputs, 1), unit) * unit);
  return {};
}

Result<void> ColumnCodes::load(std::uint64_t row) {
  const std::uint64_t begin = row / width_ * width_, end = std::min(begin + width_, content_.rows());
  end_ = begin_;  // until it is loaded
  window_codes_ = code_layout(reader_.layer().coding, 32, content_.columns(), end - begin);
  window_.resize(window_codes_.matrix_bytes);
  window_codes_.data = window_.data();
  TRY(reader_.columns(0, all_.row_bytes, all_.row_bytes * begin / content_.rows(), window_codes_.row_bytes, window_));
  begin_ = begin;
  end_ = end;
  return {};
}

Result<void> ColumnCodes::codes(std::uint64_t first_row, std::span<std::byte> out) {
  constexpr std::uint64_t together = 256, unit = 8;
  const std::uint64_t inputs = content_.columns();
  const int middle = 1 << (content_.bits - 1);
  for (std::uint64_t row = first_row; !out.empty();) {
    if (row < begin_ || row >= end_) TRY(load(row));
    const std::uint64_t column = row - begin_, skipped = column % unit;  // AWQ has eight columns a word
    const std::uint64_t count = std::min({end_ - row, out.size() / inputs, together - skipped});
    columns_.resize(inputs * (skipped + count));
    for (std::uint64_t input = 0; input < inputs; ++input) {
      const auto to = std::span(columns_).subspan(input * (skipped + count), skipped + count);
      window_codes_.unpack(0, input, column - skipped, to);
    }
    Transposer<std::uint8_t>::run(columns_.data() + skipped, skipped + count, inputs, count, out.data(),
                                  static_cast<std::int64_t>(inputs));
    add_to_codes(content_.bits, -middle, out.first(count * inputs));
    out = out.subspan(count * inputs);
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
    const Coding& coding = reader_.layer().coding;
    std::vector<std::byte> words(reader_.info(zeros_part_).bytes);
    TRY(reader_.bytes(zeros_part_, 0, words));
    const block::CodeMatrices packed = zero_layout(coding, groups, outputs);
    BlockCoding meaning{.element = DType::uint8, .bits = content_.bits, .packing = all_.packing};
    meaning.zero_added = coding.zero_added;
    meaning.zeros = packed.packing;
    const block::ScaleGrid grid = TRY(block::zero_grid({DType::int32, {}, words}, {1, groups, outputs}, meaning));
    std::vector<float> of_group(outputs);
    zeros_.resize(groups * outputs);
    for (std::uint64_t group = 0; group < groups; ++group) {
      grid.read(0, group, 0, of_group);
      for (std::uint64_t output = 0; output < outputs; ++output) {
        const int zero = static_cast<int>(of_group[output]) - (1 << (content_.bits - 1));
        zeros_[output * groups + group] = static_cast<std::byte>(zero);
      }
    }
  }
  std::memcpy(out.data(), zeros_.data() + first_row * groups, out.size());
  return {};
}

Result<bool> ColumnCodes::packed(const Coding& coding, std::uint64_t offset, std::span<std::byte> out) {
  if (coding.packing != reader_.layer().coding.packing) return false;
  TRY(reader_.bytes(0, offset, out));
  return true;
}

}  // namespace tensorcast::quantized
