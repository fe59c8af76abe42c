// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "tensorcast/export.hpp"

namespace tensorcast::block {

// What the codes of a scheme mean whose element is an index into a table; empty: the scheme has none.
[[nodiscard]] TENSORCAST_API std::span<const float> code_table(std::string_view scheme) noexcept;

}  // namespace tensorcast::block
