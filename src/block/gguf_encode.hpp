// ggml's blocks from float32 numbers, bit for bit as ggml writes them when its compiler fuses no multiplication with an
// addition.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "tensorcast/block.hpp"

namespace tensorcast::block {

// One block: block_size(format) numbers to as many bytes.
using GgufEncode = void (*)(const float* numbers, std::uint8_t* bytes) noexcept;

// Null if the format cannot be written.
[[nodiscard]] GgufEncode gguf_encoder(GgufBlock format) noexcept;

// The same with the importance of each number, that of its column in an importance matrix. Null: errors of the format's
// numbers are not weighed here.
using GgufWeighedEncode = void (*)(const float* numbers, const float* importance, std::uint8_t* bytes) noexcept;
[[nodiscard]] GgufWeighedEncode gguf_weighed_encoder(GgufBlock format) noexcept;

// Blocks of 256 in gguf_k_encode.cpp. `importance`: null: none.
void encode_q4_k(const float* numbers, const float* importance, std::uint8_t* bytes) noexcept;
void encode_q6_k(const float* numbers, const float* importance, std::uint8_t* bytes) noexcept;

// Little endian. A number out of float16's range becomes infinity.
void put_half(float number, std::uint8_t* bytes) noexcept;
[[nodiscard]] float half_number(float number) noexcept;  // rounded to float16

}  // namespace tensorcast::block
