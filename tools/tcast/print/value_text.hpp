// SPDX-License-Identifier: Apache-2.0
// Draws one value in many types: coloured bit fields, exact decimals, events.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/explain.hpp"

namespace tcast {

struct Drawing {
  bool color = false;
  bool full = false;          // no abbreviations
  std::size_t columns = 136;  // the table fits into them by abbreviating long bit strings and decimals
};

// Returns a table with one row for each type.
[[nodiscard]] std::string draw_table(const std::vector<tensorcast::Explanation>& rows, const Drawing& drawing);

// Describes one type: the meaning of each field, and how the value follows from the fields.
[[nodiscard]] std::string draw_card(const tensorcast::Explanation& row, const Drawing& drawing);

// Returns the code, such as "0x3DCCCCCD", with as many digits as the type has.
[[nodiscard]] std::string code_text(const tensorcast::Explanation& row);

}  // namespace tcast
