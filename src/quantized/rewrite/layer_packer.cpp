// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/layer_packer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "block/code_packing.hpp"
#include "block/gguf_block.hpp"
#include "block/scale_tiles.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/try.hpp"
#include "quantized/rewrite/column_words.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;        // of codes that are packed at a time
constexpr std::uint64_t most_band_bytes = std::uint64_t{64} << 20;  // of packed codes in columns

unsigned added_to_codes(const BlockCoding& coding) noexcept {
  return coding.element == DType::uint8 ? static_cast<unsigned>(coding.offset) : 0;
}

void swap_nibbles(std::span<const std::byte> from, std::byte* to) {
  std::ranges::transform(from, to, [](std::byte pair) { return pair >> 4 | pair << 4; });
}

// Copies the part of `whole`, which begins at `begin`, that is in `out`, which begins at `offset`.
void copy_part(std::span<const std::byte> whole, std::uint64_t begin, std::uint64_t offset, std::span<std::byte> out) {
  const std::uint64_t from = std::max(begin, offset);
  const std::uint64_t to = std::min(begin + whole.size(), offset + out.size());
  if (from < to) std::memcpy(out.data() + (from - offset), whole.data() + (from - begin), to - from);
}

}  // namespace

Result<void> LayerCodes::zero_points(std::uint64_t /*first_row*/, std::span<std::byte> /*out*/) {
  return Error{.code = ErrorCode::internal, .message = "the layer has no zero points"};
}

std::uint64_t packed_row_bytes(const BlockCoding& coding, int word_bits, std::uint64_t columns) {
  const auto bits = static_cast<std::uint64_t>(coding.bits);
  const std::uint64_t word = word_bits == 32 ? 32 : 8;
  return ceil_div(columns * bits, word) * (word / 8);
}

void pack_rows(const BlockCoding& coding, int word_bits, std::uint64_t columns, std::span<const std::byte> codes,
               std::span<std::byte> out) {
  const unsigned added = added_to_codes(coding), mask = (1u << coding.bits) - 1;
  if (coding.bits == 8 && added == 0 && word_bits == 8) {
    std::ranges::copy(codes, out.begin());
    return;
  }
  const std::uint64_t row_bytes = packed_row_bytes(coding, word_bits, columns);
  std::vector<std::uint8_t> row(columns);
  for (std::uint64_t i = 0; i * columns < codes.size(); ++i) {
    std::ranges::transform(codes.subspan(i * columns, columns), row.begin(), [=](std::byte code) {
      return static_cast<std::uint8_t>((std::to_integer<unsigned>(code) + added) & mask);
    });
    const auto to = out.subspan(i * row_bytes, row_bytes);
    std::fill_n(to.rbegin(), std::min<std::size_t>(to.size(), 4), std::byte{0});  // the end of a word may have no code
    block::pack_stream(coding.bits, row, to.data());
    if (coding.packing == BlockPacking::high_nibble_first) swap_nibbles(to, to.data());
  }
}

void unpack_rows(const BlockCoding& coding, int word_bits, std::uint64_t columns, std::span<const std::byte> packed,
                 std::span<std::byte> codes) {
  const unsigned added = added_to_codes(coding), mask = (1u << coding.bits) - 1;
  if (coding.bits == 8 && added == 0 && word_bits == 8) {
    std::ranges::copy(packed, codes.begin());
    return;
  }
  const std::uint64_t row_bytes = packed_row_bytes(coding, word_bits, columns);
  std::vector<std::byte> swapped(coding.packing == BlockPacking::high_nibble_first ? row_bytes : 0);
  for (std::uint64_t i = 0; i * columns < codes.size(); ++i) {
    auto from = packed.subspan(i * row_bytes, row_bytes);
    if (!swapped.empty()) {
      swap_nibbles(from, swapped.data());
      from = swapped;
    }
    const std::span<std::uint8_t> row(reinterpret_cast<std::uint8_t*>(codes.data() + i * columns), columns);
    block::unpack_stream(coding.bits, from.data(), row);
    if (added == 0) continue;
    for (std::uint8_t& code : row) code = static_cast<std::uint8_t>((code - added) & mask);
  }
}

Result<void> LayerPacker::read(std::size_t tensor, std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) return {};
  const WrittenTensor& written = written_.tensors[tensor];
  if (!written.constant.empty()) {
    std::memcpy(out.data(), written.constant.data() + offset, out.size());
    return {};
  }
  if (is_in_columns(written_.layer.coding)) {
    if (written.role == PartRole::codes) return read_column_codes(offset, out);
    if (written.role == PartRole::scales) return read_column_scales(written.info.dtype, offset, out);
    if (written.role == PartRole::zero_points) return read_column_zeros(offset, out);
  }
  switch (written.role) {
    case PartRole::codes:
      return written_.layer.coding.packing == BlockPacking::gguf ? read_gguf(offset, out) : read_codes(offset, out);
    case PartRole::scales:
      return written_.layer.coding.swizzled ? read_tiles(offset, out) : read_scales(written.info.dtype, offset, out);
    case PartRole::zero_points:
      return read_zero_points(offset, out);
    case PartRole::global_scale: {
      std::vector<float> numbers = TRY(codes_.global_scales());
      if (written_.layer.coding.global != content_.global) {  // one has factors, the other divisors
        for (float& number : numbers) number = 1.0F / number;
      }
      copy_part(std::as_bytes(std::span(numbers)), 0, offset, out);
      return {};
    }
    default:
      return Error{.code = ErrorCode::internal, .message = "the tensor has no contents", .tensor = written.info.name};
  }
}

Result<void> LayerPacker::read_codes(std::uint64_t offset, std::span<std::byte> out) {
  const bool done = TRY(codes_.packed(written_.layer.coding, offset, out));
  if (done) return {};
  const int word_bits = bit_width(written_.tensors[0].info.dtype);
  const std::uint64_t columns = content_.columns();
  const std::uint64_t row_bytes = packed_row_bytes(written_.layer.coding, word_bits, columns);
  const std::uint64_t most_rows = std::max<std::uint64_t>(most_bytes / columns, 1);
  const std::uint64_t end_row = ceil_div(offset + out.size(), row_bytes);
  for (std::uint64_t row = offset / row_bytes; row < end_row;) {
    const std::uint64_t count = std::min(most_rows, end_row - row);
    rows_.resize(count * columns);
    packed_.resize(count * row_bytes);
    TRY(codes_.codes(row, rows_));
    pack_rows(written_.layer.coding, word_bits, columns, rows_, packed_);
    copy_part(packed_, row * row_bytes, offset, out);
    row += count;
  }
  return {};
}

Result<void> LayerPacker::read_scales(DType stored, std::uint64_t offset, std::span<std::byte> out) {
  if (content_.scales == DType::float32 && bit_width(stored) == 16) return read_narrow_scales(stored, offset, out);
  const std::uint64_t row_bytes = content_.grid_columns() * static_cast<std::uint64_t>(bit_width(content_.scales) / 8);
  const std::uint64_t row = offset / row_bytes, end = ceil_div(offset + out.size(), row_bytes);
  if (offset % row_bytes == 0 && out.size() % row_bytes == 0) return codes_.scales(row, out);
  scales_.resize((end - row) * row_bytes);
  TRY(codes_.scales(row, scales_));
  copy_part(scales_, row * row_bytes, offset, out);
  return {};
}

Result<void> LayerPacker::read_narrow_scales(DType stored, std::uint64_t offset, std::span<std::byte> out) {
  const std::uint64_t columns = content_.grid_columns(), row_bytes = storage_bytes(stored, columns);
  const std::uint64_t row = offset / row_bytes, end = ceil_div(offset + out.size(), row_bytes);
  scales_.resize(storage_bytes(DType::float32, (end - row) * columns));
  tiles_.resize((end - row) * row_bytes);
  TRY(codes_.scales(row, scales_));
  const std::int64_t shape[] = {static_cast<std::int64_t>((end - row) * columns)};
  TRY(cast({DType::float32, shape, scales_}, {stored, shape, tiles_}, {}, {.threads = 1}));
  copy_part(tiles_, row * row_bytes, offset, out);
  return {};
}

Result<void> LayerPacker::read_tiles(std::uint64_t offset, std::span<std::byte> out) {
  const std::uint64_t columns = content_.grid_columns(), rows = content_.grid_rows();
  const std::uint64_t band_bytes = block::scales_in_tiles(block::tile_rows, columns);
  for (std::uint64_t band = offset / band_bytes; band * band_bytes < offset + out.size(); ++band) {
    const std::uint64_t first = band * block::tile_rows;
    const std::uint64_t count = std::min<std::uint64_t>(block::tile_rows, rows - first);
    scales_.resize(count * columns);
    TRY(codes_.scales(first, scales_));
    tiles_.assign(band_bytes, std::byte{0});
    for (std::uint64_t row = 0; row < count; ++row) {
      for (std::uint64_t column = 0; column < columns; ++column) {
        tiles_[block::place_in_tiles(row, column, columns)] = scales_[row * columns + column];
      }
    }
    copy_part(tiles_, band * band_bytes, offset, out);
  }
  return {};
}

Result<void> LayerPacker::read_gguf(std::uint64_t offset, std::span<std::byte> out) {
  const bool done = TRY(codes_.packed(written_.layer.coding, offset, out));
  if (done) return {};
  const block::GgufRow& format = block::row(find_block_format(content_.scheme, "gguf")->coding.gguf);
  const std::uint64_t columns = content_.columns(), blocks = columns / format.size.elements;
  const std::uint64_t row_bytes = blocks * format.size.bytes, end_row = ceil_div(offset + out.size(), row_bytes);
  const std::uint64_t most_rows = std::max<std::uint64_t>(most_bytes / columns, 1);
  for (std::uint64_t row = offset / row_bytes; row < end_row;) {
    const std::uint64_t count = std::min(most_rows, end_row - row);
    rows_.resize(count * columns);
    scales_.resize(count * (columns / format.run));
    packed_.resize(count * row_bytes);
    TRY(codes_.codes(row, rows_));
    TRY(codes_.scales(row, scales_));
    block::join_float4_blocks(format, rows_.data(), scales_.data(), count * blocks, packed_.data());
    copy_part(packed_, row * row_bytes, offset, out);
    row += count;
  }
  return {};
}

// Bytes beside scales; or words down the rows, in which the offset is added.
Result<void> LayerPacker::read_zero_points(std::uint64_t offset, std::span<std::byte> out) {
  const std::uint64_t columns = content_.grid_columns(), rows = content_.grid_rows();
  const auto bits = static_cast<std::uint64_t>(content_.bits);
  tiles_.resize(columns * rows);
  TRY(codes_.zero_points(0, tiles_));
  const bool are_bytes = std::ranges::any_of(written_.tensors, [](const WrittenTensor& tensor) {
    return tensor.role == PartRole::zero_points && tensor.info.dtype == DType::int8;
  });
  if (are_bytes) {
    std::memcpy(out.data(), tiles_.data() + offset, out.size());
    return {};
  }
  packed_.assign(ceil_div(rows * bits, 32) * columns * 4, std::byte{0});
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column) {
      const unsigned added = std::to_integer<unsigned>(tiles_[row * columns + column]) +
                             static_cast<unsigned>(written_.layer.coding.offset);
      const unsigned code = added & ((1u << bits) - 1);
      for (std::uint64_t bit = 0; bit < bits; ++bit) {
        const std::uint64_t place = row * bits + bit;
        const std::uint64_t byte = (place / 32 * columns + column) * 4 + place % 32 / 8;
        packed_[byte] |= static_cast<std::byte>((code >> bit & 1u) << place % 8);
      }
    }
  }
  copy_part(packed_, 0, offset, out);
  return {};
}

// Bands of whole rows of words, so that codes are asked for once, or a few times for the largest weights.
Result<void> LayerPacker::read_column_codes(std::uint64_t offset, std::span<std::byte> out) {
  const bool done = TRY(codes_.packed(written_.layer.coding, offset, out));
  if (done) return {};
  const ColumnWords columns(written_.layer.coding, content_.rows(), content_.columns());
  const std::uint64_t row_bytes = columns.code_words() * sizeof(std::uint32_t), unit = columns.row_unit();
  const std::uint64_t most_rows = std::max(most_band_bytes / row_bytes / unit * unit, unit);
  while (!out.empty()) {
    const std::uint64_t begin = band_begin_ * row_bytes, end = begin + band_.size() * sizeof(std::uint32_t);
    if (offset < begin || offset >= end) {
      const std::uint64_t row = offset / row_bytes / unit * unit;
      TRY(make_column_codes(row, std::min(most_rows, columns.code_rows() - row)));
      continue;
    }
    const std::uint64_t count = std::min<std::uint64_t>(out.size(), end - offset);
    copy_part(std::as_bytes(std::span(band_)), begin, offset, out.first(count));
    out = out.subspan(count);
    offset += count;
  }
  return {};
}

Result<void> LayerPacker::make_column_codes(std::uint64_t begin, std::uint64_t count) {
  const ColumnWords columns(written_.layer.coding, content_.rows(), content_.columns());
  const std::uint64_t inputs = content_.columns(), unit = columns.outputs_of_word();
  const std::uint64_t most_rows = std::max(most_bytes / inputs / unit * unit, unit);
  std::vector<std::uint32_t> band(count * columns.code_words());
  for (std::uint64_t row = 0; row < content_.rows(); row += most_rows) {
    rows_.resize(std::min(most_rows, content_.rows() - row) * inputs);
    TRY(codes_.codes(row, rows_));
    columns.pack(row, rows_, begin, count, band);
  }
  band_ = std::move(band);
  band_begin_ = begin;
  return {};
}

Result<void> LayerPacker::read_column_scales(DType stored, std::uint64_t offset, std::span<std::byte> out) {
  if (column_scales_.empty()) {
    const std::uint64_t groups = content_.grid_columns(), outputs = content_.rows();
    const auto item = static_cast<std::uint64_t>(bit_width(stored) / 8);
    std::vector<std::byte> in_rows(outputs * groups * item), in_columns(in_rows.size());
    if (content_.scales == stored) {
      TRY(codes_.scales(0, in_rows));
    } else {
      TRY(read_narrow_scales(stored, 0, in_rows));
    }
    for (std::uint64_t i = 0; i < outputs * groups; ++i) {
      const std::uint64_t to = i % groups * outputs + i / groups;
      std::memcpy(in_columns.data() + to * item, in_rows.data() + i * item, item);
    }
    column_scales_ = std::move(in_columns);
  }
  copy_part(column_scales_, 0, offset, out);
  return {};
}

Result<void> LayerPacker::read_column_zeros(std::uint64_t offset, std::span<std::byte> out) {
  const ColumnWords columns(written_.layer.coding, content_.rows(), content_.columns());
  if (zero_words_.empty()) {
    const std::uint64_t groups = content_.grid_columns(), outputs = content_.rows(), words = columns.zero_words();
    std::vector<std::byte> zeros(outputs * groups), of_group(outputs);  // 0: the middle, of symmetric codes
    if (content_.zero_points) TRY(codes_.zero_points(0, zeros));
    std::vector<std::uint32_t> all(groups * words);
    for (std::uint64_t group = 0; group < groups; ++group) {
      for (std::uint64_t output = 0; output < outputs; ++output) of_group[output] = zeros[output * groups + group];
      columns.pack_zeros(of_group, std::span(all).subspan(group * words, words));
    }
    zero_words_ = std::move(all);
  }
  copy_part(std::as_bytes(std::span(zero_words_)), 0, offset, out);
  return {};
}

}  // namespace tensorcast::quantized
