// SPDX-License-Identifier: Apache-2.0
// Parses numbers like Python's int() and float().
#pragma once

#include <optional>
#include <string_view>

#include "models/mdf/mdf_tree.hpp"

namespace tensorcast::models::mdf {

// Parses an integer or a real number (inf and nan too), with optional spaces around it. Returns nullopt if the text is
// not a number, or is an integer over 64 bits.
[[nodiscard]] std::optional<Tree> parse_number(std::string_view text);

}  // namespace tensorcast::models::mdf
