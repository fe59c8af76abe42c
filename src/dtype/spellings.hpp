// SPDX-License-Identifier: Apache-2.0
// The names that the parser accepts for a type, each as its system writes it. Case and underscores do not matter.
#pragma once

#include <span>
#include <string_view>

#include "tensorcast/dtype.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// All spellings of `dtype` as people write them, canonical name first. uint1 has one; undefined has none.
[[nodiscard]] std::span<const std::string_view> spellings(DType dtype) noexcept;

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
