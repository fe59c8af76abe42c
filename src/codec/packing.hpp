// SPDX-License-Identifier: Apache-2.0
// D11: elements of N < 8 bits are a little-endian stream of bits, so element i begins at bit i * N. A wider element is
// little-endian at any address.
#pragma once

#include <cstddef>

#include "codec/reference_cast.hpp"

namespace tensorcast::codec {

// Zeroes the bits of the last byte that `count` elements leave unused.
void clear_tail(DType dtype, std::byte* data, std::size_t count) noexcept;

}  // namespace tensorcast::codec
