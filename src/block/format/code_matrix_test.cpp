// SPDX-License-Identifier: Apache-2.0
#include "block/format/code_matrix.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcast::block {
namespace {

// Where the bits of a code lie, one by one, as docs and tools say it.
std::size_t place_of_bit(const CodeMatrices& codes, std::size_t row, std::size_t column, std::size_t bit) {
  const auto bits = static_cast<std::size_t>(codes.bits);
  const std::size_t row_bits = row * codes.row_bytes * 8;
  switch (codes.packing) {
    case BlockPacking::words_down: {
      const std::size_t place =
          codes.has_gaps ? row / (32 / bits) * 32 + row % (32 / bits) * bits + bit : row * bits + bit;
      return place / 32 * codes.row_bytes * 8 + column * 32 + place % 32;
    }
    case BlockPacking::awq: {
      constexpr std::size_t place_in_word[] = {0, 4, 1, 5, 2, 6, 3, 7};
      return row_bits + column / 8 * 32 + place_in_word[column % 8] * 4 + bit;
    }
    case BlockPacking::high_nibble_first:
      return row_bits + column / 2 * 8 + (column % 2 == 0 ? 4 : 0) + bit;
    default:
      return row_bits + column * bits + bit;
  }
}

TEST(CodeMatrices, CodesArePackedWhereTheyAreUnpacked) {
  constexpr std::size_t rows = 96, columns = 40;
  for (const BlockPacking packing :
       {BlockPacking::stream, BlockPacking::high_nibble_first, BlockPacking::words_down, BlockPacking::awq}) {
    for (const int bits : {2, 3, 4, 5, 6, 8}) {
      for (const bool has_gaps : {false, true}) {
        const bool is_four = packing == BlockPacking::high_nibble_first || packing == BlockPacking::awq;
        if ((is_four && bits != 4) || (has_gaps && packing != BlockPacking::words_down)) continue;
        SCOPED_TRACE(std::to_string(static_cast<int>(packing)) + " " + std::to_string(bits));
        CodeMatrices codes{.packing = packing, .element = DType::uint8, .bits = bits};
        codes.rows = rows;
        codes.columns = columns;
        codes.has_gaps = has_gaps;
        const bool is_down = packing == BlockPacking::words_down;
        codes.row_bytes = is_down ? columns * 4 : columns * static_cast<std::size_t>(bits) / 8;
        codes.matrix_bytes = codes.row_bytes * (is_down ? codes.words_of(rows) : rows);
        std::vector<std::byte> packed(codes.matrix_bytes), row(columns), wanted(codes.matrix_bytes);
        const auto code_of = [&](std::size_t i, std::size_t j) { return (i * 7 + j * 3 + i * j) % (1u << bits); };
        for (std::size_t i = 0; i < rows; ++i) {
          for (std::size_t j = 0; j < columns; ++j) {
            row[j] = static_cast<std::byte>(code_of(i, j));
            for (std::size_t bit = 0; bit < static_cast<std::size_t>(bits); ++bit) {
              const std::size_t place = place_of_bit(codes, i, j, bit);
              wanted[place / 8] |= static_cast<std::byte>((code_of(i, j) >> bit & 1u) << place % 8);
            }
          }
          codes.pack(std::span(row).first(16), i, 0, packed.data());
          codes.pack(std::span(row).subspan(16), i, 16, packed.data());
        }
        EXPECT_EQ(packed, wanted);
        codes.data = packed.data();
        for (std::size_t i = 0; i < rows; ++i) {
          codes.unpack(0, i, 8, std::span(row).subspan(8));
          for (std::size_t j = 8; j < columns; ++j) ASSERT_EQ(std::to_integer<unsigned>(row[j]), code_of(i, j));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast::block
