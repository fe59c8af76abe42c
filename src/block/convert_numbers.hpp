// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tensorcast/dtype.hpp"

namespace tensorcast::block {

// Writes `count` numbers of `src` as another type, as a cast without options gives them, by the kernels of this CPU.
// `dst` does not overlap them.
void convert_numbers(DType from, const std::byte* src, DType to, std::byte* dst, std::size_t count) noexcept;

}  // namespace tensorcast::block
