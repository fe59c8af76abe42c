// One value in many types, drawn: bit fields apart and in colour, exact decimals, what happened.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/explain.hpp"

namespace tcast {

struct Drawing {
  bool color = false;
  bool full = false;          // no abbreviations
  std::size_t columns = 136;  // to fit into, by abbreviating long bit strings and decimals
};

// A table of one row a type.
[[nodiscard]] std::string draw_table(const std::vector<tensorcast::Explanation>& rows, const Drawing& drawing);

// One type at length: what each field means and how the value follows from them.
[[nodiscard]] std::string draw_card(const tensorcast::Explanation& row, const Drawing& drawing);

// "0x3DCCCCCD", with as many digits as the type has.
[[nodiscard]] std::string code_text(const tensorcast::Explanation& row);

}  // namespace tcast
