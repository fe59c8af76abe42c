// D11: element i of a type of N < 8 bits lies at bits (i * N mod 8) of its byte, low bits first; a wider one is
// little-endian at any address.
#pragma once

#include <cstddef>

#include "codec/reference_cast.hpp"

namespace tensorcast::codec {

// Zeroes the bits of the last byte that `count` elements leave unused.
void clear_tail(DType dtype, std::byte* data, std::size_t count) noexcept;

}  // namespace tensorcast::codec
