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

block::CodeMatrices code_layout(const BlockCoding& coding, int word_bits, std::uint64_t rows, std::uint64_t columns,
                                bool has_gaps) noexcept {
  const bool has_words =
      coding.packing == BlockPacking::awq || (coding.packing == BlockPacking::stream && word_bits == 32);
  return layout_in(coding.packing, coding.bits, has_words ? 32 : 8, rows, columns, has_gaps);
}

block::CodeMatrices zero_layout(const BlockCoding& coding, std::uint64_t rows, std::uint64_t columns,
                                bool has_gaps) noexcept {
  const BlockPacking packing = coding.packing == BlockPacking::awq          ? BlockPacking::awq
                               : coding.packing == BlockPacking::words_down ? BlockPacking::stream
                                                                            : BlockPacking::words_down;
  return layout_in(packing, coding.bits, 32, rows, columns, has_gaps);
}

void add_to_codes(int bits, int added, std::span<std::byte> codes) noexcept {
  const int mask = (1 << bits) - 1;
  for (std::byte& code : codes) code = static_cast<std::byte>((std::to_integer<int>(code) + added) & mask);
}

}  // namespace tensorcast::quantized
