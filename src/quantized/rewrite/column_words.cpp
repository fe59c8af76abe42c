// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/column_words.hpp"

#include <algorithm>
#include <array>

namespace tensorcast::quantized {
namespace {

// AWQ: the column of each code of a word, lowest bits first, and the place of each column.
constexpr std::array<std::uint64_t, 8> awq_column = {0, 2, 4, 6, 1, 3, 5, 7}, awq_place = {0, 4, 1, 5, 2, 6, 3, 7};
constexpr std::uint64_t awq_bits = 4;

// A code that crosses the end of a word continues `stride` words later. The word has zeros there.
void put_code(std::uint32_t* words, std::uint64_t stride, std::uint64_t bit, std::uint64_t bits,
              unsigned code) noexcept {
  const std::uint64_t shift = bit % ColumnWords::word_bits;
  std::uint32_t* const word = words + bit / ColumnWords::word_bits * stride;
  *word |= code << shift;
  if (shift + bits > ColumnWords::word_bits) word[stride] |= code >> (ColumnWords::word_bits - shift);
}

unsigned take_code(const std::uint32_t* words, std::uint64_t stride, std::uint64_t bit, std::uint64_t bits) noexcept {
  const std::uint64_t shift = bit % ColumnWords::word_bits;
  const std::uint32_t* const word = words + bit / ColumnWords::word_bits * stride;
  unsigned code = *word >> shift;
  if (shift + bits > ColumnWords::word_bits) code |= word[stride] << (ColumnWords::word_bits - shift);
  return code & ((1u << bits) - 1);
}

}  // namespace

std::uint64_t ColumnWords::bit_of(std::uint64_t column) const noexcept {
  return is_awq_ ? column / awq_columns * word_bits + awq_place[column % awq_columns] * awq_bits : column * bits_;
}

void ColumnWords::pack(std::uint64_t first, std::span<const std::byte> codes, std::uint64_t begin, std::uint64_t count,
                       std::span<std::uint32_t> words) const noexcept {
  const std::uint64_t outputs = codes.size() / inputs_;
  const auto code_of = [&](std::uint64_t output, std::uint64_t input) {
    return (std::to_integer<unsigned>(codes[output * inputs_ + input]) + middle()) & mask();
  };
  if (is_awq_) {
    for (std::uint64_t row = 0; row < count; ++row) {
      std::uint32_t* const out = words.data() + row * code_words() + first / awq_columns;
      for (std::uint64_t output = 0; output < outputs; output += awq_columns) {
        std::uint32_t word = 0;
        for (std::uint64_t i = 0; i < awq_columns; ++i) {
          word |= code_of(output + awq_column[i], begin + row) << (i * awq_bits);
        }
        out[output / awq_columns] = word;
      }
    }
    return;
  }
  const std::uint64_t unit = row_unit(), inputs_of_unit = unit * word_bits / bits_;
  for (std::uint64_t row = 0; row < count; row += unit) {
    const std::uint64_t input = (begin + row) / unit * inputs_of_unit;
    std::uint32_t* const out = words.data() + row * code_words() + first;
    for (std::uint64_t output = 0; output < outputs; ++output) {
      for (std::uint64_t i = 0; i < unit; ++i) out[output + i * code_words()] = 0;
      for (std::uint64_t i = 0; i < inputs_of_unit; ++i) {
        put_code(out + output, code_words(), i * bits_, bits_, code_of(output, input + i));
      }
    }
  }
}

void ColumnWords::unpack(std::span<const std::uint32_t> words, std::uint64_t row_words, std::uint64_t origin,
                         std::uint64_t first, std::span<std::byte> codes) const noexcept {
  const std::uint64_t outputs = codes.size() / inputs_;
  for (std::uint64_t output = 0; output < outputs; ++output) {
    const std::uint64_t column = first + output - origin;
    std::byte* const out = codes.data() + output * inputs_;
    for (std::uint64_t input = 0; input < inputs_; ++input) {
      const unsigned code = is_awq_ ? take_code(words.data() + input * row_words, 1, bit_of(column), bits_)
                                    : take_code(words.data() + column, row_words, input * bits_, bits_);
      out[input] = static_cast<std::byte>((code - middle()) & mask());
    }
  }
}

void ColumnWords::pack_zeros(std::span<const std::byte> zeros, std::span<std::uint32_t> words) const noexcept {
  std::ranges::fill(words, 0u);
  for (std::uint64_t output = 0; output < outputs_; ++output) {
    const unsigned zero = std::to_integer<unsigned>(zeros[output]) + middle() - zero_added_;
    put_code(words.data(), 1, bit_of(output), bits_, zero & mask());
  }
}

void ColumnWords::unpack_zeros(std::span<const std::uint32_t> words, std::span<std::byte> zeros) const noexcept {
  // Tools add 1 to all codes of a word at once, with a carry; those of 3 bits are in no word alone.
  const bool adds_to_words = zero_added_ != 0 && word_bits % bits_ == 0;
  const std::uint32_t added = adds_to_words ? UINT32_MAX / mask() : 0;
  for (std::uint64_t output = 0; output < outputs_; ++output) {
    unsigned zero = 0;
    if (adds_to_words) {
      const std::uint32_t word = words[bit_of(output) / word_bits] + added;
      zero = (word >> bit_of(output) % word_bits) & mask();
    } else {
      zero = (take_code(words.data(), 1, bit_of(output), bits_) + zero_added_) & mask();
    }
    zeros[output] = static_cast<std::byte>(zero - middle());
  }
}

}  // namespace tensorcast::quantized
