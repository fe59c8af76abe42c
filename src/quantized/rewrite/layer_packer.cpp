// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/layer_packer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "block/format/gguf_block.hpp"
#include "block/format/scale_tiles.hpp"
#include "cast/transpose.hpp"
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
  if (written.role == PartRole::codes && TRY(codes_.packed(written_.layer.coding, offset, out))) return {};
  while (!out.empty()) {
    const auto is_made = [&] { return tensor == made_ && offset >= begin_ && offset < begin_ + bytes_.size(); };
    if (!is_made()) {
      made_.reset();  // until they are complete
      begin_ = 0;
      TRY(make(written, offset));
      made_ = tensor;
    }
    if (!is_made()) return of_tensor(written.info.name, internal_error("the tensor has no contents"));
    const std::uint64_t count = std::min<std::uint64_t>(out.size(), begin_ + bytes_.size() - offset);
    std::memcpy(out.data(), bytes_.data() + (offset - begin_), count);
    out = out.subspan(count);
    offset += count;
  }
  return {};
}

Result<void> LayerPacker::make(const WrittenTensor& written, std::uint64_t offset) {
  const bool in_columns = is_in_columns(written_.layer.coding);
  const DType stored = written.info.dtype;
  switch (written.role) {
    case PartRole::codes:
      return in_columns ? make_column_codes(offset) : make_codes(stored, offset);
    case PartRole::scales:
      if (in_columns) return make_column_scales(stored);
      return written_.layer.coding.swizzled ? make_tiles(offset) : make_scales(stored, offset);
    case PartRole::zero_points:
      return make_zero_points(stored);
    case PartRole::global_scale: {
      std::vector<float> numbers = TRY(codes_.global_scales());
      if (written_.layer.coding.global != content_.coding.global) {  // one has factors, the other divisors
        for (float& number : numbers) number = 1.0F / number;
      }
      const auto all = std::as_bytes(std::span(numbers));
      bytes_.assign(all.begin(), all.end());
      return {};
    }
    default:
      bytes_.clear();
      return {};
  }
}

Result<void> LayerPacker::make_codes(DType stored, std::uint64_t offset) {
  const BlockCoding& coding = written_.layer.coding;
  const block::GgufRow* const gguf =
      coding.packing == BlockPacking::gguf ? &block::row(block::gguf_block_of(content_.scheme)) : nullptr;
  const int word_bits = bit_width(stored);
  const std::uint64_t columns = content_.columns();
  const std::uint64_t row_bytes = gguf != nullptr ? columns / gguf->size.elements * gguf->size.bytes
                                                  : code_layout(coding, word_bits, 1, columns).row_bytes;
  const std::uint64_t row = offset / row_bytes;
  const std::uint64_t count = std::min(std::max<std::uint64_t>(most_bytes / columns, 1), content_.rows() - row);
  begin_ = row * row_bytes;
  bytes_.resize(count * row_bytes);
  rows_.resize(count * columns);
  TRY(codes_.codes(row, rows_));
  if (gguf == nullptr) {
    pack_rows(coding, word_bits, columns, rows_, bytes_);
    return {};
  }
  scales_.resize(rows_.size() / gguf->run);
  TRY(codes_.scales(row, scales_));
  block::join_float4_blocks(*gguf, rows_.data(), scales_.data(), rows_.size() / gguf->size.elements, bytes_.data());
  return {};
}

Result<void> LayerPacker::read_scale_rows(DType stored, std::uint64_t row, std::span<std::byte> out) {
  if (content_.scales() != DType::float32 || bit_width(stored) != 16) return codes_.scales(row, out);
  const std::int64_t shape[] = {static_cast<std::int64_t>(out.size() / storage_bytes(stored, 1))};
  scales_.resize(2 * out.size());
  TRY(codes_.scales(row, scales_));
  return cast({DType::float32, shape, scales_}, {stored, shape, out}, {}, {.threads = 1});
}

Result<void> LayerPacker::make_scales(DType stored, std::uint64_t offset) {
  const std::uint64_t row_bytes = storage_bytes(stored, content_.grid_columns()), row = offset / row_bytes;
  const std::uint64_t most_rows = std::max<std::uint64_t>(most_bytes / row_bytes, 1);
  begin_ = row * row_bytes;
  bytes_.resize(std::min(most_rows, content_.grid_rows() - row) * row_bytes);
  return read_scale_rows(stored, row, bytes_);
}

// The tiles of 128 rows.
Result<void> LayerPacker::make_tiles(std::uint64_t offset) {
  const std::uint64_t columns = content_.grid_columns(), rows = content_.grid_rows();
  const std::uint64_t band_bytes = block::scales_in_tiles(block::tile_rows, columns);
  const std::uint64_t band = offset / band_bytes, first = band * block::tile_rows;
  const std::uint64_t count = std::min<std::uint64_t>(block::tile_rows, rows - first);
  scales_.resize(count * columns);
  TRY(codes_.scales(first, scales_));
  begin_ = band * band_bytes;
  bytes_.assign(band_bytes, std::byte{0});
  for (std::uint64_t row = 0; row < count; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column) {
      bytes_[block::place_in_tiles(row, column, columns)] = scales_[row * columns + column];
    }
  }
  return {};
}

// Bytes beside scales; or words, to whose codes the middle is added.
Result<void> LayerPacker::make_zero_points(DType stored) {
  const BlockCoding& coding = written_.layer.coding;
  const std::uint64_t rows = content_.grid_rows(), columns = content_.grid_columns();
  bytes_.assign(rows * columns, std::byte{0});  // 0: the middle, of symmetric codes
  if (content_.zero_points) TRY(codes_.zero_points(0, bytes_));
  const bool in_columns = is_in_columns(coding);
  if (in_columns) bytes_ = transposed(bytes_, rows, columns, 1);
  if (stored == DType::int8) return {};
  const block::CodeMatrices packed =
      in_columns ? zero_layout(coding, columns, rows) : zero_layout(coding, rows, columns);
  add_to_codes(coding.bits, in_columns ? (1 << (coding.bits - 1)) - coding.zero_added : coding.offset, bytes_);
  std::vector<std::byte> words(packed.matrix_bytes);
  for (std::uint64_t row = 0; row < packed.rows; ++row) {
    packed.pack(std::span(bytes_).subspan(row * packed.columns, packed.columns), row, 0, words.data());
  }
  bytes_ = std::move(words);
  return {};
}

// Bands of whole words of the codes of 32 inputs, so that codes are asked for once, or a few times for the largest
// weights.
Result<void> LayerPacker::make_column_codes(std::uint64_t offset) {
  constexpr std::uint64_t unit = 32;  // inputs, and outputs: whole words of every width
  const BlockCoding& coding = written_.layer.coding;
  const std::uint64_t outputs = content_.rows(), inputs = content_.columns();
  const std::uint64_t unit_bytes = code_layout(coding, 32, unit, outputs).matrix_bytes, first = offset / unit_bytes;
  const std::uint64_t count =
      std::min(std::max<std::uint64_t>(most_band_bytes / unit_bytes, 1) * unit, inputs - first * unit);
  const std::uint64_t most_rows = std::max(most_bytes / inputs / unit * unit, unit);
  const block::CodeMatrices codes = code_layout(coding, 32, count, outputs);
  std::vector<std::byte> columns;
  begin_ = first * unit_bytes;
  bytes_.assign(codes.matrix_bytes, std::byte{0});
  for (std::uint64_t row = 0; row < outputs; row += most_rows) {
    const std::uint64_t rows = std::min(most_rows, outputs - row);
    rows_.resize(rows * inputs);
    TRY(codes_.codes(row, rows_));
    columns.resize(count * rows);
    Transposer<std::uint8_t>::run(rows_.data() + first * unit, inputs, rows, count, columns.data(),
                                  static_cast<std::int64_t>(rows));
    add_to_codes(coding.bits, 1 << (coding.bits - 1), columns);
    for (std::uint64_t input = 0; input < count; ++input) {
      codes.pack(std::span(columns).subspan(input * rows, rows), input, row, bytes_.data());
    }
  }
  return {};
}

Result<void> LayerPacker::make_column_scales(DType stored) {
  const std::uint64_t groups = content_.grid_columns(), outputs = content_.rows();
  const auto item = static_cast<std::uint64_t>(bit_width(stored) / 8);
  std::vector<std::byte> in_rows(outputs * groups * item);
  TRY(read_scale_rows(stored, 0, in_rows));
  bytes_ = transposed(in_rows, outputs, groups, item);
  return {};
}

}  // namespace tensorcast::quantized
