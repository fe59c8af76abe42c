// SPDX-License-Identifier: Apache-2.0
// Lists of modules in configurations: names, globs with `*` and `?`, and "re:" before regular expressions.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "quantized/names/pattern_set.hpp"

namespace tensorcast::quantized {

class NameList {
 public:
  // Passes over patterns that RE2 does not have.
  explicit NameList(const std::vector<std::string>& entries);

  // Reports whether the list names a module. Time: proportional to the name.
  [[nodiscard]] bool has(const std::string& module) const { return find(module).has_value(); }
  // Returns the entry that names a module: its name, else the first pattern.
  [[nodiscard]] std::optional<std::size_t> find(const std::string& module) const;

 private:
  std::unordered_map<std::string, std::size_t> names_;
  std::vector<std::size_t> places_;  // of the patterns in the list
  PatternSet patterns_;
};

}  // namespace tensorcast::quantized
