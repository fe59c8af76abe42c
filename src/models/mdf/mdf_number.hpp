// Numbers in texts, as Python's int() and float() read them.
#pragma once

#include <optional>
#include <string_view>

#include "models/mdf/mdf_tree.hpp"

namespace tensorcast::models::mdf {

// An integer, or a real number (inf and nan too); spaces around do not matter. None: no number, or an integer of more
// than 64 bits.
[[nodiscard]] std::optional<Tree> parse_number(std::string_view text);

}  // namespace tensorcast::models::mdf
