// SPDX-License-Identifier: Apache-2.0
// ggml's blocks from float32 numbers, bit for bit as ggml writes them when its compiler fuses no multiplication with an
// addition.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensorcast/block.hpp"

namespace tensorcast::block {

// Blocks one after the other. `importance`: of each number, that of its column in an importance matrix; null: none.
using GgufEncode = void (*)(const float* numbers, const float* importance, std::size_t blocks,
                            std::uint8_t* bytes) noexcept;

// Null if the format cannot be written.
[[nodiscard]] GgufEncode gguf_encoder(GgufBlock format) noexcept;
// The same, block by block: slow for those of 32 numbers.
[[nodiscard]] GgufEncode gguf_definition(GgufBlock format) noexcept;
// Reports whether importance changes the format's blocks.
[[nodiscard]] bool weighs_importance(GgufBlock format) noexcept;

// In gguf_k_encode.cpp and gguf_few_bits.cpp: many blocks, or one.
void encode_q4_k(const float* numbers, const float* importance, std::size_t blocks, std::uint8_t* bytes) noexcept;
void encode_q5_k(const float* numbers, const float* importance, std::size_t blocks, std::uint8_t* bytes) noexcept;
void encode_q2_k(const float* numbers, const float* importance, std::uint8_t* block) noexcept;
void encode_q3_k(const float* numbers, const float* importance, std::uint8_t* block) noexcept;
void encode_q6_k(const float* numbers, const float* importance, std::uint8_t* block) noexcept;
void encode_iq4_nl(const float* numbers, const float* importance, std::uint8_t* block) noexcept;
void encode_iq4_xs(const float* numbers, const float* importance, std::uint8_t* block) noexcept;

// Little endian. A number out of float16's range becomes infinity.
void put_half(float number, std::uint8_t* bytes) noexcept;
[[nodiscard]] float half_number(float number) noexcept;  // rounded to float16

}  // namespace tensorcast::block
