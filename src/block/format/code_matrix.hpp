// SPDX-License-Identifier: Apache-2.0
// Matrices of codes of any packing, read as numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/runs.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::block {

// `count` matrices of rows x columns codes, one after the other.
struct CodeMatrices {
  BlockPacking packing = BlockPacking::stream;
  DType element = DType::undefined;  // as in BlockCoding; (u)int8 for integers
  int bits = 8;
  GgufBlock gguf = GgufBlock::none;  // for BlockPacking::gguf
  std::size_t count = 1;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t matrix_bytes = 0;
  std::size_t row_bytes = 0;  // of a row of words for words_down, of two rows for row_pairs
  bool has_gaps = false;      // words have whole codes alone, and their other bits none
  const std::byte* data = nullptr;

  static constexpr std::size_t alignment = 256;
  static constexpr std::size_t word_bits = 32;

  // Where a code begins in the words of its row, or of its column; and the words that `codes` of them take.
  [[nodiscard]] std::size_t bit_of(std::size_t code) const noexcept {
    const auto width = static_cast<std::size_t>(bits), each = word_bits / width;
    return has_gaps ? code / each * word_bits + code % each * width : code * width;
  }
  [[nodiscard]] std::size_t words_of(std::size_t codes) const noexcept {
    return codes == 0 ? 0 : (bit_of(codes - 1) + static_cast<std::size_t>(bits) - 1) / word_bits + 1;
  }

  // The rows of bytes of a matrix, and the bytes that codes take in each; row_bytes may be more.
  [[nodiscard]] std::size_t byte_rows() const noexcept;
  [[nodiscard]] std::size_t least_row_bytes() const noexcept;

  // Codes of a row, from `column` on, in the low bits of bytes. Not of GGUF.
  // Precondition: `column` is a multiple of 8, unless the packing is words_down or row_pairs.
  void unpack(std::size_t matrix, std::size_t row, std::size_t column, std::span<std::byte> codes) const noexcept;
  // The inverse, into a matrix at `to`, whose bits are 0 there. Precondition: words_down, awq, or a stream without
  // gaps.
  void pack(std::span<const std::byte> codes, std::size_t row, std::size_t column, std::byte* to) const noexcept;

  // Codes of a row, from `column` on, as float32: numbers of float types, integers as they are, indices of tables.
  // `column` is a multiple of alignment. Not of GGUF.
  void read(std::size_t matrix, std::size_t row, std::size_t column, std::span<float> out) const noexcept;

  // Codes of a row as those of four bits, from which tables give results. Integers of two or three bits go through
  // `buffer`, of their count.
  struct Nibbles {
    const std::byte* codes;
    kernels::Nibbles places;
  };
  [[nodiscard]] bool may_be_nibbles() const noexcept;
  [[nodiscard]] Nibbles nibbles(std::size_t matrix, std::size_t row, std::size_t column,
                                std::span<std::byte> buffer) const noexcept;
  // Their numbers; indices, of tables.
  [[nodiscard]] std::array<float, 16> numbers_of_nibbles() const noexcept;

  // Numbers of a table by codes of four bits in order, two for each byte. Precondition: has_nibbles().
  using NibblePairs = std::array<std::array<float, 2>, 256>;
  [[nodiscard]] bool has_nibbles() const noexcept { return bits == 4 && is_stream(); }
  [[nodiscard]] NibblePairs pairs_of(std::span<const float> table) const noexcept;
  void look_up(std::size_t matrix, std::size_t row, std::size_t column, const NibblePairs& pairs,
               std::span<float> out) const noexcept;

  // The narrowest of int8, bfloat16 and float32 that has all numbers of read().
  [[nodiscard]] DType narrowest() const noexcept;
  // The same numbers as read(). Precondition: narrowest() is the type of `out`.
  void read(std::size_t matrix, std::size_t row, std::size_t column, std::span<std::int8_t> out) const noexcept;
  // `out` is of bfloat16.
  void read(std::size_t matrix, std::size_t row, std::size_t column, std::span<std::uint16_t> out) const noexcept;

  // The codes of a row from `column` on. Precondition: they are a stream in order.
  [[nodiscard]] const std::byte* stream(std::size_t matrix, std::size_t row, std::size_t column) const noexcept {
    return data + matrix * matrix_bytes + row * row_bytes + column * static_cast<std::size_t>(bits) / 8;
  }

  // The bytes of `codes` codes of a row from `column` on. Precondition: they follow each other, or it is row_pairs.
  [[nodiscard]] std::span<const std::byte> bytes_of(std::size_t matrix, std::size_t row, std::size_t column,
                                                    std::size_t codes) const noexcept;

  // The block of GGUF that begins at `column`.
  [[nodiscard]] const std::byte* gguf_block(std::size_t matrix, std::size_t row, std::size_t column) const noexcept;

 private:
  template <class Number>
  void read_stream(const std::byte* from, std::size_t column, std::span<Number> out) const noexcept;
  [[nodiscard]] bool is_stream() const noexcept;
  void read_bytes(const std::byte* from, std::span<float> out) const noexcept;
  void read_single(std::size_t matrix, std::size_t row, std::size_t column, std::span<float> out) const noexcept;
};

// Sets matrix_bytes and row_bytes from the bytes that all codes take.
// Errors: invalid_argument: they do not divide into such matrices, or are too few.
[[nodiscard]] Result<void> lay_out(CodeMatrices& codes, std::size_t bytes, const char* what);

}  // namespace tensorcast::block
