// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/layer_packer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "block/format/gguf_block.hpp"
#include "block/format/scale_tiles.hpp"
#include "cast/transpose.hpp"
#include "dtype/ceil_div.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/code_layout.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;        // of codes that are packed at a time
constexpr std::uint64_t most_band_bytes = std::uint64_t{64} << 20;  // of packed codes in columns

// Copies the part of `whole`, which begins at `begin`, that is in `out`, which begins at `offset`.
void copy_part(std::span<const std::byte> whole, std::uint64_t begin, std::uint64_t offset, std::span<std::byte> out) {
  const std::uint64_t from = std::max(begin, offset);
  const std::uint64_t to = std::min(begin + whole.size(), offset + out.size());
  if (from < to) std::memcpy(out.data() + (from - offset), whole.data() + (from - begin), to - from);
}

// The transpose of rows of columns of so many bytes.
std::vector<std::byte> transposed(std::span<const std::byte> from, std::uint64_t rows, std::uint64_t columns,
                                  std::uint64_t bytes) {
  std::vector<std::byte> to(from.size());
  for (std::uint64_t i = 0; i < rows * columns; ++i) {
    std::memcpy(to.data() + (i % columns * rows + i / columns) * bytes, from.data() + i * bytes, bytes);
  }
  return to;
}

}  // namespace

Result<void> LayerCodes::zero_points(std::uint64_t /*first_row*/, std::span<std::byte> /*out*/) {
  return internal_error("the layer has no zero points");
}

void pack_rows(const BlockCoding& coding, int word_bits, std::uint64_t columns, std::span<std::byte> codes,
               std::span<std::byte> out) {
  const block::CodeMatrices packed = code_layout(coding, word_bits, codes.size() / columns, columns);
  const int added = coding.element == DType::uint8 ? coding.offset : 0;
  if (coding.bits == 8 && added == 0 && word_bits == 8) {
    std::ranges::copy(codes, out.begin());
    return;
  }
  add_to_codes(coding.bits, added, codes);
  std::ranges::fill(out, std::byte{0});
  for (std::uint64_t row = 0; row < packed.rows; ++row) {
    packed.pack(codes.subspan(row * columns, columns), row, 0, out.data());
  }
}

Result<void> LayerPacker::read(std::size_t tensor, std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) return {};
  const WrittenTensor& written = written_.tensors[tensor];
  if (!written.constant.empty()) {
    std::memcpy(out.data(), written.constant.data() + offset, out.size());
    return {};
  }
  const bool in_columns = is_in_columns(written_.layer.coding);
  switch (written.role) {
    case PartRole::codes:
      return in_columns ? read_column_codes(offset, out) : read_codes(offset, out);
    case PartRole::scales:
      if (in_columns) return read_column_scales(written.info.dtype, offset, out);
      return written_.layer.coding.swizzled ? read_tiles(offset, out) : read_scales(written.info.dtype, offset, out);
    case PartRole::zero_points:
      return read_zero_points(written.info.dtype, offset, out);
    case PartRole::global_scale: {
      std::vector<float> numbers = TRY(codes_.global_scales());
      if (written_.layer.coding.global != content_.coding.global) {  // one has factors, the other divisors
        for (float& number : numbers) number = 1.0F / number;
      }
      copy_part(std::as_bytes(std::span(numbers)), 0, offset, out);
      return {};
    }
    default:
      return of_tensor(written.info.name, internal_error("the tensor has no contents"));
  }
}

Result<void> LayerPacker::read_codes(std::uint64_t offset, std::span<std::byte> out) {
  const BlockCoding& coding = written_.layer.coding;
  const bool done = TRY(codes_.packed(coding, offset, out));
  if (done) return {};
  const block::GgufRow* const gguf =
      coding.packing == BlockPacking::gguf ? &block::row(block::gguf_block_of(content_.scheme)) : nullptr;
  const int word_bits = bit_width(written_.tensors[0].info.dtype);
  const std::uint64_t columns = content_.columns();
  const std::uint64_t row_bytes = gguf != nullptr ? columns / gguf->size.elements * gguf->size.bytes
                                                  : code_layout(coding, word_bits, 1, columns).row_bytes;
  const std::uint64_t most_rows = std::max<std::uint64_t>(most_bytes / columns, 1);
  const std::uint64_t end_row = ceil_div(offset + out.size(), row_bytes);
  for (std::uint64_t row = offset / row_bytes; row < end_row;) {
    const std::uint64_t count = std::min(most_rows, end_row - row);
    rows_.resize(count * columns);
    packed_.resize(count * row_bytes);
    TRY(codes_.codes(row, rows_));
    if (gguf != nullptr) {
      scales_.resize(rows_.size() / gguf->run);
      TRY(codes_.scales(row, scales_));
      block::join_float4_blocks(*gguf, rows_.data(), scales_.data(), rows_.size() / gguf->size.elements,
                                packed_.data());
    } else {
      pack_rows(coding, word_bits, columns, rows_, packed_);
    }
    copy_part(packed_, row * row_bytes, offset, out);
    row += count;
  }
  return {};
}

Result<void> LayerPacker::read_scale_rows(DType stored, std::uint64_t row, std::span<std::byte> out) {
  if (content_.scales() != DType::float32 || bit_width(stored) != 16) return codes_.scales(row, out);
  const std::int64_t shape[] = {static_cast<std::int64_t>(out.size() / storage_bytes(stored, 1))};
  scales_.resize(2 * out.size());
  TRY(codes_.scales(row, scales_));
  return cast({DType::float32, shape, scales_}, {stored, shape, out}, {}, {.threads = 1});
}

Result<void> LayerPacker::read_scales(DType stored, std::uint64_t offset, std::span<std::byte> out) {
  const std::uint64_t row_bytes = storage_bytes(stored, content_.grid_columns());
  const std::uint64_t row = offset / row_bytes, end = ceil_div(offset + out.size(), row_bytes);
  if (offset % row_bytes == 0 && out.size() % row_bytes == 0) return read_scale_rows(stored, row, out);
  tiles_.resize((end - row) * row_bytes);
  TRY(read_scale_rows(stored, row, tiles_));
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

// Bytes beside scales; or words, to whose codes the middle is added.
Result<void> LayerPacker::read_zero_points(DType stored, std::uint64_t offset, std::span<std::byte> out) {
  if (zero_points_.empty()) {
    const BlockCoding& coding = written_.layer.coding;
    const std::uint64_t rows = content_.grid_rows(), columns = content_.grid_columns();
    std::vector<std::byte> zeros(rows * columns);  // 0: the middle, of symmetric codes
    if (content_.zero_points) TRY(codes_.zero_points(0, zeros));
    const bool in_columns = is_in_columns(coding);
    if (in_columns) zeros = transposed(zeros, rows, columns, 1);
    if (stored != DType::int8) {
      const block::CodeMatrices packed =
          in_columns ? zero_layout(coding, columns, rows) : zero_layout(coding, rows, columns);
      add_to_codes(coding.bits, in_columns ? (1 << (coding.bits - 1)) - coding.zero_added : coding.offset, zeros);
      std::vector<std::byte> words(packed.matrix_bytes);
      for (std::uint64_t row = 0; row < packed.rows; ++row) {
        packed.pack(std::span(zeros).subspan(row * packed.columns, packed.columns), row, 0, words.data());
      }
      zeros = std::move(words);
    }
    zero_points_ = std::move(zeros);
  }
  copy_part(zero_points_, 0, offset, out);
  return {};
}

// Bands of whole words of the codes of 32 inputs, so that codes are asked for once, or a few times for the largest
// weights.
Result<void> LayerPacker::read_column_codes(std::uint64_t offset, std::span<std::byte> out) {
  const bool done = TRY(codes_.packed(written_.layer.coding, offset, out));
  if (done) return {};
  while (!out.empty()) {
    if (offset < band_begin_ || offset >= band_begin_ + band_.size()) {
      TRY(make_column_codes(offset));
      continue;
    }
    const std::uint64_t count = std::min<std::uint64_t>(out.size(), band_begin_ + band_.size() - offset);
    copy_part(band_, band_begin_, offset, out.first(count));
    out = out.subspan(count);
    offset += count;
  }
  return {};
}

Result<void> LayerPacker::make_column_codes(std::uint64_t offset) {
  constexpr std::uint64_t unit = 32;  // inputs, and outputs: whole words of every width
  const BlockCoding& coding = written_.layer.coding;
  const std::uint64_t outputs = content_.rows(), inputs = content_.columns();
  const std::uint64_t unit_bytes = code_layout(coding, 32, unit, outputs).matrix_bytes, first = offset / unit_bytes;
  const std::uint64_t count =
      std::min(std::max<std::uint64_t>(most_band_bytes / unit_bytes, 1) * unit, inputs - first * unit);
  const std::uint64_t most_rows = std::max(most_bytes / inputs / unit * unit, unit);
  const block::CodeMatrices codes = code_layout(coding, 32, count, outputs);
  std::vector<std::byte> band(codes.matrix_bytes), columns;
  for (std::uint64_t row = 0; row < outputs; row += most_rows) {
    const std::uint64_t rows = std::min(most_rows, outputs - row);
    rows_.resize(rows * inputs);
    TRY(codes_.codes(row, rows_));
    columns.resize(count * rows);
    Transposer<std::uint8_t>::run(rows_.data() + first * unit, inputs, rows, count, columns.data(),
                                  static_cast<std::int64_t>(rows));
    add_to_codes(coding.bits, 1 << (coding.bits - 1), columns);
    for (std::uint64_t input = 0; input < count; ++input) {
      codes.pack(std::span(columns).subspan(input * rows, rows), input, row, band.data());
    }
  }
  band_ = std::move(band);
  band_begin_ = first * unit_bytes;
  return {};
}

Result<void> LayerPacker::read_column_scales(DType stored, std::uint64_t offset, std::span<std::byte> out) {
  if (column_scales_.empty()) {
    const std::uint64_t groups = content_.grid_columns(), outputs = content_.rows();
    const auto item = static_cast<std::uint64_t>(bit_width(stored) / 8);
    std::vector<std::byte> in_rows(outputs * groups * item);
    TRY(read_scale_rows(stored, 0, in_rows));
    column_scales_ = transposed(in_rows, outputs, groups, item);
  }
  copy_part(column_scales_, 0, offset, out);
  return {};
}

}  // namespace tensorcast::quantized
