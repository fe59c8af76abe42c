// SPDX-License-Identifier: Apache-2.0
// What readers and writers of a stream hold at once.
#pragma once

#include <cstddef>

namespace tensorcast::formats {

inline constexpr std::size_t buffer_bytes = std::size_t{64} << 10;

}  // namespace tensorcast::formats
