// SPDX-License-Identifier: Apache-2.0
// Lists of modules in configurations: names, globs with `*` and `?`, and "re:" before regular expressions.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "quantized/names/name_pattern.hpp"

namespace tensorcast::quantized {

class NameList {
 public:
  // Passes over patterns that RE2 does not have.
  explicit NameList(const std::vector<std::string>& entries);

  // Reports whether the list names a module. Time: proportional to the name, and to the patterns' length.
  [[nodiscard]] bool has(const std::string& module) const;

 private:
  std::unordered_set<std::string> names_;
  std::vector<file_conversion::NamePattern> patterns_;
};

}  // namespace tensorcast::quantized
