// SPDX-License-Identifier: Apache-2.0
// Counts elements that a scheme's largest code cannot reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensorcast/block.hpp"

namespace tensorcast::block {

// Counts the elements of whole rows that became the largest or lowest code and are larger than it means. `codes`: as
// QuantizedTensor::codes. Not of GGUF.
[[nodiscard]] std::uint64_t count_saturated(const BlockCoding& coding, std::span<const std::byte> codes,
                                            std::size_t columns, std::span<const float> numbers,
                                            std::span<const float> decoded);

}  // namespace tensorcast::block
