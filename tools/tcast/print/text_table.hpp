// SPDX-License-Identifier: Apache-2.0
// Text in aligned columns.
#pragma once

#include <string>
#include <vector>

namespace tcast {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Adds a row of one cell per column; missing cells at the end are empty.
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  // Returns titles, then rows; two spaces between columns, none at the end of a line.
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tcast
