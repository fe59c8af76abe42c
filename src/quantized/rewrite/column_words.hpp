// SPDX-License-Identifier: Apache-2.0
// Words of 32 bits in which GPTQ and AWQ have the codes of a weight's columns, and zero points of its groups: what is
// read and what is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quantized/layer/layer.hpp"

namespace tensorcast::quantized {

// A weight [outputs, inputs] whose codes lie as those of the transpose. Codes and zero points on the other side are
// two's complement in bytes: the middle of their range, 2^(bits - 1), is subtracted.
class ColumnWords {
 public:
  static constexpr std::uint64_t word_bits = 32, awq_columns = 8;

  // Precondition: outputs and inputs are whole words; AWQ has 4 bits.
  ColumnWords(const BlockCoding& coding, std::uint64_t outputs, std::uint64_t inputs) noexcept
      : is_awq_(coding.packing == BlockPacking::awq),
        bits_(static_cast<std::uint64_t>(coding.bits)),
        zero_added_(static_cast<unsigned>(coding.zero_added)),
        outputs_(outputs),
        inputs_(inputs) {}

  // Rows of words of codes, the words of such a row, and those of the zero points of a group.
  [[nodiscard]] std::uint64_t code_rows() const noexcept { return is_awq_ ? inputs_ : inputs_ * bits_ / word_bits; }
  [[nodiscard]] std::uint64_t code_words() const noexcept { return is_awq_ ? outputs_ / awq_columns : outputs_; }
  [[nodiscard]] std::uint64_t zero_words() const noexcept { return outputs_ * bits_ / word_bits; }
  // Outputs that a word of codes has, and rows of words that whole codes fill.
  [[nodiscard]] std::uint64_t outputs_of_word() const noexcept { return is_awq_ ? awq_columns : 1; }
  [[nodiscard]] std::uint64_t row_unit() const noexcept { return is_awq_ || word_bits % bits_ == 0 ? 1 : bits_; }

  // Puts codes of `codes.size() / inputs` outputs from `first` on into rows [begin, begin + count) of words. `words` is
  // these rows, whole; others of their words stay. Preconditions: `first` and the number of outputs are multiples of
  // outputs_of_word(), `begin` and `count` of row_unit().
  void pack(std::uint64_t first, std::span<const std::byte> codes, std::uint64_t begin, std::uint64_t count,
            std::span<std::uint32_t> words) const noexcept;
  // Takes codes of whole outputs from `first` on out of columns of words: `words` is code_rows() rows of `row_words`
  // words, of which the first has the output `origin`. Precondition: they are there.
  void unpack(std::span<const std::uint32_t> words, std::uint64_t row_words, std::uint64_t origin, std::uint64_t first,
              std::span<std::byte> codes) const noexcept;

  // The zero points of one group: `zeros` has one for each output, `words` is zero_words().
  void pack_zeros(std::span<const std::byte> zeros, std::span<std::uint32_t> words) const noexcept;
  void unpack_zeros(std::span<const std::uint32_t> words, std::span<std::byte> zeros) const noexcept;

 private:
  [[nodiscard]] unsigned mask() const noexcept { return (1u << bits_) - 1; }
  [[nodiscard]] unsigned middle() const noexcept { return 1u << (bits_ - 1); }
  // Where the code of column `column` begins in a row that is packed along the columns.
  [[nodiscard]] std::uint64_t bit_of(std::uint64_t column) const noexcept;

  bool is_awq_;
  std::uint64_t bits_;
  unsigned zero_added_;
  std::uint64_t outputs_, inputs_;
};

}  // namespace tensorcast::quantized
