// SPDX-License-Identifier: Apache-2.0
#include "print/text_table.hpp"

#include <algorithm>

#include "process/printable.hpp"

namespace tcast {

std::string Table::to_string() const {
  // A cell that is longer only moves the rest of its own row.
  constexpr std::size_t widest = 100;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t width = display_width(row[i]);
      if (width <= widest) widths[i] = std::max(widths[i], width);
    }
  }

  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::size_t owed = 0;  // spaces before the next cell that has text
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::size_t missing = widths[i] - std::min(widths[i], display_width(cell));
      if (columns_[i].align == Align::right) owed += missing;
      if (!cell.empty()) {
        text.append(owed, ' ');
        text += cell;
        owed = 0;
      } else {
        owed += display_width(cell);
      }
      owed += (columns_[i].align == Align::left ? missing : 0) + 2;
    }
    text += '\n';
  };
  add_line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  static const std::string nothing;
  for (const auto& row : rows_) {
    add_line([&](std::size_t i) -> const std::string& { return i < row.size() ? row[i] : nothing; });
  }
  return text;
}

}  // namespace tcast
