// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/code_layout.hpp"

#include "dtype/ceil_div.hpp"

namespace tensorcast::quantized {
namespace {

// Rows of whole units of bytes.
block::CodeMatrices layout_in(BlockPacking packing, int bits, std::size_t unit, std::uint64_t rows,
                              std::uint64_t columns, bool has_gaps) noexcept {
  block::CodeMatrices codes{.packing = packing, .element = DType::uint8, .bits = bits};
  codes.rows = rows;
  codes.columns = columns;
  codes.has_gaps = has_gaps;
  codes.row_bytes = ceil_div(codes.least_row_bytes(), unit) * unit;
  codes.matrix_bytes = codes.row_bytes * codes.byte_rows();
  return codes;
}

}  // namespace

block::CodeMatrices code_layout(const BlockCoding& coding, int word_bits, std::uint64_t rows, std::uint64_t columns,
                                bool has_gaps) noexcept {
  const bool has_words =
      coding.packing == BlockPacking::awq || (coding.packing == BlockPacking::stream && word_bits == 32);
  return layout_in(coding.packing, coding.bits, has_words ? 4 : 1, rows, columns, has_gaps);
}

block::CodeMatrices zero_layout(const BlockCoding& coding, std::uint64_t rows, std::uint64_t columns,
                                bool has_gaps) noexcept {
  const BlockPacking packing = coding.packing == BlockPacking::awq          ? BlockPacking::awq
                               : coding.packing == BlockPacking::words_down ? BlockPacking::stream
                                                                            : BlockPacking::words_down;
  return layout_in(packing, coding.bits, 4, rows, columns, has_gaps);
}

void add_to_codes(int bits, int added, std::span<std::byte> codes) noexcept {
  const int mask = (1 << bits) - 1;
  for (std::byte& code : codes) code = static_cast<std::byte>((std::to_integer<int>(code) + added) & mask);
}

}  // namespace tensorcast::quantized
