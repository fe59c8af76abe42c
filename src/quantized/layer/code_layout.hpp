// SPDX-License-Identifier: Apache-2.0
// Where the codes and the packed zero points of a layer lie.
#pragma once

#include <cstdint>
#include <span>

#include "block/code_matrix.hpp"
#include "quantized/layer/layer.hpp"

namespace tensorcast::quantized {

// Reports whether codes lie in words of 32 bits as those of the transpose: GPTQ, AWQ.
[[nodiscard]] constexpr bool is_in_columns(Packing packing) noexcept {
  return packing == Packing::words_down || packing == Packing::awq;
}

// The codes of a layer: all rows of all its matrices, as one matrix. Its bytes are matrix_bytes.
// `word_bits`: of the codes' type, if they are a stream. Not of GGUF.
[[nodiscard]] block::CodeMatrices code_layout(const Coding& coding, int word_bits, std::uint64_t rows,
                                              std::uint64_t columns) noexcept;

// The zero points of its blocks in words of 32 bits, of the transpose if is_in_columns().
[[nodiscard]] block::CodeMatrices zero_layout(const Coding& coding, std::uint64_t rows, std::uint64_t columns) noexcept;

// Adds a number to codes of so many bits.
void add_to_codes(int bits, int added, std::span<std::byte> codes) noexcept;

}  // namespace tensorcast::quantized
