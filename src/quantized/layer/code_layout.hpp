// SPDX-License-Identifier: Apache-2.0
// Where the codes and the packed zero points of a layer lie.
#pragma once

#include <cstdint>
#include <span>

#include "block/format/code_matrix.hpp"
#include "quantized/layer/layer.hpp"

namespace tensorcast::quantized {

// The codes of a layer: all rows of all its matrices, as one matrix. Its bytes are matrix_bytes.
// `word_bits`: of the codes' type, if they are a stream. `has_gaps`: Deviations::has_whole_codes. Not of GGUF.
[[nodiscard]] block::CodeMatrices code_layout(const BlockCoding& coding, int word_bits, std::uint64_t rows,
                                              std::uint64_t columns, bool has_gaps = false) noexcept;

// The zero points of its blocks in words of 32 bits, of the transpose if is_in_columns().
[[nodiscard]] block::CodeMatrices zero_layout(const BlockCoding& coding, std::uint64_t rows, std::uint64_t columns,
                                              bool has_gaps = false) noexcept;

// Adds a number to codes of so many bits.
void add_to_codes(int bits, int added, std::span<std::byte> codes) noexcept;

}  // namespace tensorcast::quantized
