// SPDX-License-Identifier: Apache-2.0
// Codes one a byte, to the layouts that weights are stored in, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensorcast/block.hpp"

namespace tensorcast::block {

// A stream of codes, low bits first, of 1 to 8 bits. `packed` begins at a whole byte; the last
// byte's other bits become zero.
void pack_stream(int bits, std::span<const std::uint8_t> codes, std::byte* packed) noexcept;
void unpack_stream(int bits, const std::byte* packed, std::span<std::uint8_t> codes) noexcept;

// The codes of a row that was quantized: integers as two's complement in the low bits, also if half of their range was
// added.
void unpack_codes(const BlockCoding& coding, const std::byte* packed, std::span<std::uint8_t> codes) noexcept;

}  // namespace tensorcast::block
