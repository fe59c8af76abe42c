// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/code_layout.hpp"

#include "dtype/ceil_div.hpp"

namespace tensorcast::quantized {
namespace {

block::CodeMatrices layout_in(BlockPacking packing, int bits, std::uint64_t unit_bits, std::uint64_t rows,
                              std::uint64_t columns, bool has_gaps) noexcept {
  block::CodeMatrices codes{.packing = packing, .element = DType::uint8, .bits = bits};
  codes.rows = rows;
  codes.columns = columns;
  codes.has_gaps = has_gaps;
  const std::uint64_t words = packing == BlockPacking::words_down ? columns : has_gaps ? codes.words_of(columns) : 0;
  const auto width = static_cast<std::uint64_t>(bits);
  codes.row_bytes = words != 0 ? words * 4 : ceil_div(columns * width, unit_bits) * (unit_bits / 8);
  codes.matrix_bytes = codes.row_bytes * (packing == BlockPacking::words_down ? codes.words_of(rows) : rows);
  return codes;
}

}  // namespace

block::CodeMatrices code_layout(const Coding& coding, int word_bits, std::uint64_t rows,
                                std::uint64_t columns) noexcept {
  const auto layout = [&](BlockPacking packing, int unit_bits = 8) {
    return layout_in(packing, coding.packing == Packing::bytes ? 8 : coding.bits, static_cast<std::uint64_t>(unit_bits),
                     rows, columns, coding.packing == Packing::words);
  };
  switch (coding.packing) {
    case Packing::high_nibble_first:
      return layout(BlockPacking::high_nibble_first);
    case Packing::flat:
      return layout(BlockPacking::flat);
    case Packing::words_down:
      return layout(BlockPacking::words_down);
    case Packing::awq:
      return layout(BlockPacking::awq, 32);
    case Packing::stream:
      return layout(BlockPacking::stream, word_bits);
    default:
      return layout(BlockPacking::stream);
  }
}

block::CodeMatrices zero_layout(const Coding& coding, std::uint64_t rows, std::uint64_t columns) noexcept {
  const BlockPacking packing = coding.packing == Packing::awq          ? BlockPacking::awq
                               : coding.packing == Packing::words_down ? BlockPacking::stream
                                                                       : BlockPacking::words_down;
  return layout_in(packing, coding.bits, 32, rows, columns, coding.packing == Packing::words);
}

void add_to_codes(int bits, int added, std::span<std::byte> codes) noexcept {
  const int mask = (1 << bits) - 1;
  for (std::byte& code : codes) code = static_cast<std::byte>((std::to_integer<int>(code) + added) & mask);
}

}  // namespace tensorcast::quantized
