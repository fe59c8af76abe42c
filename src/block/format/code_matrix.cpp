// SPDX-License-Identifier: Apache-2.0
#include "block/format/code_matrix.hpp"

#include <cstring>

#include "block/convert_numbers.hpp"
#include "block/format/code_packing.hpp"
#include "block/format/codings.hpp"
#include "block/format/gguf_block.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t chunk = 256;  // codes in a buffer of bytes

template <class Number>
void convert(DType from, const std::byte* src, std::span<Number> out) noexcept {
  constexpr DType to = sizeof(Number) == 1 ? DType::int8 : sizeof(Number) == 2 ? DType::bfloat16 : DType::float32;
  convert_numbers(from, src, to, reinterpret_cast<std::byte*>(out.data()), out.size());
}

using Word = std::uint32_t;

Word word_at(const std::byte* words, std::size_t i) noexcept {
  Word word = 0;
  std::memcpy(&word, words + i * sizeof(Word), sizeof(Word));
  return word;
}

// Eight codes a word: in turns the low half of the nibbles and the high one. `first` is a multiple of 8.
void unpack_awq(const std::byte* words, std::size_t first, std::span<std::byte> codes) noexcept {
  constexpr std::uint64_t pairs = 0x000000ff000000ffu, nibbles = 0x000f000f000f000fu;
  const auto apart = [](std::uint64_t four) {
    four = (four | four << 24) & pairs;
    return (four | four << 12) & nibbles;
  };
  for (std::size_t done = 0; done < codes.size(); done += 8) {
    const Word word = word_at(words, (first + done) / 8);
    const std::uint64_t eight = apart(word & 0xffff) | apart(word >> 16) << 8;
    std::memcpy(&codes[done], &eight, std::min<std::size_t>(8, codes.size() - done));
  }
}

// The type whose packed storage is this stream of codes: uint4 for four bits of unsigned integers.
DType stream_type(DType element, int bits) noexcept {
  const bool is_signed = element == DType::int8;
  if (!is_integer(element) && element != DType::undefined) return element;
  switch (bits) {
    case 2:
      return is_signed ? DType::int2 : DType::uint2;
    case 4:
      return is_signed ? DType::int4 : DType::uint4;
    case 8:
      return is_signed ? DType::int8 : DType::uint8;
    default:
      return DType::undefined;
  }
}

}  // namespace

// Codes one a byte, in the low bits.
void CodeMatrices::read_bytes(const std::byte* from, std::span<float> out) const noexcept {
  if (element == DType::int8 && bits < 8) {
    const int shift = 8 - bits;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto high = static_cast<std::int8_t>(std::to_integer<unsigned>(from[i]) << shift);
      out[i] = static_cast<float>(high >> shift);
    }
    return;
  }
  if (bits < 8 && element != DType::uint8 && element != DType::undefined) {
    std::array<std::byte, chunk> packed;  // as the type is stored
    for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = std::byte{0};
    for (std::size_t i = 0; i < out.size(); ++i) {
      const unsigned code = std::to_integer<unsigned>(from[i]) << (i * static_cast<std::size_t>(bits) % 8);
      const std::size_t byte = i * static_cast<std::size_t>(bits) / 8;
      packed[byte] |= static_cast<std::byte>(code);
      if (code > 0xff) packed[byte + 1] |= static_cast<std::byte>(code >> 8);
    }
    convert(element, packed.data(), out);
    return;
  }
  convert(element == DType::undefined ? DType::uint8 : element, from, out);
}

// Packings in which the codes of a row are not a stream: one code a byte first.
void CodeMatrices::read_single(std::size_t matrix, std::size_t row, std::size_t column,
                               std::span<float> out) const noexcept {
  std::array<std::byte, chunk> codes;
  for (std::size_t done = 0; done < out.size(); done += chunk) {
    const std::size_t n = std::min(chunk, out.size() - done);
    unpack(matrix, row, column + done, {codes.data(), n});
    read_bytes(codes.data(), out.subspan(done, n));
  }
}

void CodeMatrices::unpack(std::size_t matrix, std::size_t row, std::size_t column,
                          std::span<std::byte> codes) const noexcept {
  const auto width = static_cast<std::size_t>(bits);
  const auto mask = (1u << width) - 1;
  const std::byte* const first = data + matrix * matrix_bytes;
  const std::byte* const bytes = first + row * row_bytes;
  switch (packing) {
    case BlockPacking::words_down: {
      // A code may begin in one word of the column and end in the next.
      const std::size_t place = bit_of(row), bit = place % word_bits;
      const std::byte* const words = first + place / word_bits * row_bytes + column * sizeof(Word);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        codes[i] = static_cast<std::byte>(word_at(words, i) >> bit & mask);
      }
      if (bit + width <= word_bits) return;
      for (std::size_t i = 0; i < codes.size(); ++i) {
        codes[i] |= static_cast<std::byte>(word_at(words + row_bytes, i) << (word_bits - bit) & mask);
      }
      return;
    }
    case BlockPacking::awq:
      return unpack_awq(bytes, column, codes);
    case BlockPacking::row_pairs: {
      const std::byte* const pairs = first + row / 2 * row_bytes + column;
      const std::size_t shift = row % 2 * 4;
      for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = pairs[i] >> shift & std::byte{15};
      return;
    }
    case BlockPacking::high_nibble_first:
    case BlockPacking::flat:
      for (std::size_t i = 0; i < codes.size(); ++i) {
        codes[i] = bytes[(column + i) / 2] >> (i % 2 == 0 ? 4 : 0) & std::byte{15};
      }
      return;
    default:
      if (!has_gaps) {
        return unpack_stream(bits, bytes + column / 8 * width,
                             {reinterpret_cast<std::uint8_t*>(codes.data()), codes.size()});
      }
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const std::size_t bit = bit_of(column + i);
        codes[i] = static_cast<std::byte>(word_at(bytes, bit / word_bits) >> bit % word_bits & mask);
      }
  }
}

void CodeMatrices::pack(std::span<const std::byte> codes, std::size_t row, std::size_t column,
                        std::byte* to) const noexcept {
  const auto add = [to](std::size_t at, Word codes_of_word) {
    codes_of_word |= word_at(to + at, 0);
    std::memcpy(to + at, &codes_of_word, sizeof(Word));
  };
  switch (packing) {
    case BlockPacking::words_down: {
      const std::size_t place = bit_of(row), bit = place % word_bits;
      const std::size_t word = place / word_bits * row_bytes + column * sizeof(Word);
      const bool is_cut = bit + static_cast<std::size_t>(bits) > word_bits;
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const auto code = std::to_integer<Word>(codes[i]);
        add(word + i * sizeof(Word), code << bit);
        if (is_cut) add(word + row_bytes + i * sizeof(Word), code >> (word_bits - bit));
      }
      return;
    }
    case BlockPacking::high_nibble_first:
      for (std::size_t i = 0; i < codes.size(); ++i) {
        to[row * row_bytes + (column + i) / 2] |= i % 2 == 0 ? codes[i] << 4 : codes[i];
      }
      return;
    case BlockPacking::awq:
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const std::size_t place = i % 8 / 2 + i % 2 * 4;  // in a word, in nibbles
        add(row * row_bytes + (column + i) / 8 * sizeof(Word), std::to_integer<Word>(codes[i]) << place * 4);
      }
      return;
    default:
      pack_stream(bits, {reinterpret_cast<const std::uint8_t*>(codes.data()), codes.size()},
                  to + row * row_bytes + column / 8 * static_cast<std::size_t>(bits));
  }
}

std::size_t CodeMatrices::byte_rows() const noexcept {
  if (packing == BlockPacking::words_down) return words_of(rows);
  return packing == BlockPacking::row_pairs ? (rows + 1) / 2 : rows;
}

std::size_t CodeMatrices::least_row_bytes() const noexcept {
  switch (packing) {
    case BlockPacking::words_down:
      return columns * sizeof(Word);
    case BlockPacking::awq:
      return (columns + 7) / 8 * sizeof(Word);
    case BlockPacking::row_pairs:
      return columns;
    case BlockPacking::gguf: {
      const GgufBlockSize size = block::row(gguf).size;
      return columns / size.elements * size.bytes;
    }
    default:
      return has_gaps ? words_of(columns) * sizeof(Word) : (columns * static_cast<std::size_t>(bits) + 7) / 8;
  }
}

bool CodeMatrices::is_stream() const noexcept {
  const bool is_in_order =
      packing == BlockPacking::stream || packing == BlockPacking::high_nibble_first || packing == BlockPacking::flat;
  return is_in_order && stream_type(element, bits) != DType::undefined;
}

template <class Number>
void CodeMatrices::read_stream(const std::byte* from, std::size_t column, std::span<Number> out) const noexcept {
  const DType stored = stream_type(element, bits);
  const std::byte* const begin = from + column * static_cast<std::size_t>(bits) / 8;
  if (packing == BlockPacking::stream) return convert(stored, begin, out);
  std::array<std::byte, chunk> swapped;
  for (std::size_t done = 0; done < out.size(); done += 2 * chunk) {
    const std::size_t n = std::min(2 * chunk, out.size() - done);
    for (std::size_t i = 0; i < (n + 1) / 2; ++i) {
      const std::byte both = begin[done / 2 + i];
      swapped[i] = both << 4 | both >> 4;
    }
    convert(stored, swapped.data(), out.subspan(done, n));
  }
}

void CodeMatrices::read(std::size_t matrix, std::size_t row, std::size_t column, std::span<float> out) const noexcept {
  if (!is_stream()) return read_single(matrix, row, column, out);
  read_stream(data + matrix * matrix_bytes + row * row_bytes, column, out);
}

bool CodeMatrices::may_be_nibbles() const noexcept {
  const bool is_short = packing == BlockPacking::stream && is_integer(element) && (bits == 2 || bits == 3);
  return has_nibbles() || packing == BlockPacking::row_pairs || is_short;
}

CodeMatrices::Nibbles CodeMatrices::nibbles(std::size_t matrix, std::size_t row, std::size_t column,
                                            std::span<std::byte> buffer) const noexcept {
  using Places = kernels::Nibbles;
  if (packing == BlockPacking::row_pairs) {
    return {data + matrix * matrix_bytes + row / 2 * row_bytes + column,
            row % 2 == 0 ? Places::low_halves : Places::high_halves};
  }
  if (bits < 4) {
    unpack(matrix, row, column, buffer);
    return {buffer.data(), Places::low_halves};
  }
  return {stream(matrix, row, column), packing == BlockPacking::stream ? Places::low_first : Places::high_first};
}

std::array<float, 16> CodeMatrices::numbers_of_nibbles() const noexcept {
  std::array<std::byte, 16> codes;
  for (unsigned i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
  std::array<float, 16> numbers;
  read_bytes(codes.data(), numbers);
  return numbers;
}

CodeMatrices::NibblePairs CodeMatrices::pairs_of(std::span<const float> table) const noexcept {
  NibblePairs pairs;
  for (std::size_t byte = 0; byte < pairs.size(); ++byte) {
    const float low = table[byte % 16], high = table[byte / 16];
    pairs[byte] = packing == BlockPacking::stream ? std::array{low, high} : std::array{high, low};
  }
  return pairs;
}

void CodeMatrices::look_up(std::size_t matrix, std::size_t row, std::size_t column, const NibblePairs& pairs,
                           std::span<float> out) const noexcept {
  const std::byte* const from = data + matrix * matrix_bytes + row * row_bytes + column / 2;
  for (std::size_t i = 0; i < out.size() / 2; ++i) {
    std::memcpy(&out[2 * i], pairs[std::to_integer<std::size_t>(from[i])].data(), sizeof(pairs[0]));
  }
  if (out.size() % 2 != 0) out.back() = pairs[std::to_integer<std::size_t>(from[out.size() / 2])][0];
}

DType CodeMatrices::narrowest() const noexcept {
  if (!is_stream()) return is_integer(element) && bits < 8 ? DType::int8 : DType::float32;
  if (element == DType::undefined) return DType::float32;
  return element == DType::int8 || (element == DType::uint8 && bits < 8) ? DType::int8 : DType::bfloat16;
}

void CodeMatrices::read(std::size_t matrix, std::size_t row, std::size_t column,
                        std::span<std::int8_t> out) const noexcept {
  if (is_stream()) return read_stream(data + matrix * matrix_bytes + row * row_bytes, column, out);
  unpack(matrix, row, column, std::as_writable_bytes(out));
  if (element != DType::int8) return;
  const int sign = 1 << (bits - 1);
  for (std::int8_t& code : out) code = static_cast<std::int8_t>((code ^ sign) - sign);
}

void CodeMatrices::read(std::size_t matrix, std::size_t row, std::size_t column,
                        std::span<std::uint16_t> out) const noexcept {
  read_stream(data + matrix * matrix_bytes + row * row_bytes, column, out);
}

std::span<const std::byte> CodeMatrices::bytes_of(std::size_t matrix, std::size_t row, std::size_t column,
                                                  std::size_t codes) const noexcept {
  if (packing == BlockPacking::gguf) {
    const std::byte* const begin = gguf_block(matrix, row, column);
    return {begin, gguf_block(matrix, row, column + codes)};
  }
  if (packing == BlockPacking::row_pairs) return {data + matrix * matrix_bytes + row / 2 * row_bytes + column, codes};
  return {stream(matrix, row, column), stream(matrix, row, column + codes)};
}

const std::byte* CodeMatrices::gguf_block(std::size_t matrix, std::size_t row, std::size_t column) const noexcept {
  const GgufBlockSize size = block::row(gguf).size;
  return data + matrix * matrix_bytes + row * row_bytes + column / size.elements * size.bytes;
}

Result<void> lay_out(CodeMatrices& codes, std::size_t bytes, const char* what) {
  const auto wrong = [&](std::size_t least) {
    return invalid(formatted("{} take {} bytes, and {} x {} x {} of {} bits would take {}", what, bytes, codes.count,
                             codes.rows, codes.columns, codes.bits, least));
  };
  if (codes.packing == BlockPacking::gguf) {
    const GgufBlockSize size = row(codes.gguf).size;
    if (codes.columns % size.elements != 0) {
      return invalid(formatted("{} columns are no whole blocks of {}", codes.columns, size.elements));
    }
  }
  const std::size_t row_units = codes.byte_rows(), least = codes.least_row_bytes();
  const std::size_t units = codes.count * row_units;
  if (units == 0 || least == 0) {
    codes.row_bytes = codes.matrix_bytes = 0;
    return bytes == 0 ? Result<void>() : wrong(0);
  }
  // Rows may end with bytes that hold no code: those of a whole word.
  const std::size_t slack = codes.packing == BlockPacking::stream ? (least + 3) / 4 * 4 : least;
  if (bytes % units != 0 || bytes / units < least || bytes / units > slack) return wrong(units * least);
  codes.row_bytes = bytes / units;
  codes.matrix_bytes = codes.row_bytes * row_units;
  return {};
}

}  // namespace tensorcast::block
