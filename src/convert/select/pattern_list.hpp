// SPDX-License-Identifier: Apache-2.0
// Matches the patterns of one option against the names of a file's tensors.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "quantized/names/name_pattern.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::file_conversion {

class PatternList {
 public:
  // Errors: invalid_argument, with the fault of the pattern.
  [[nodiscard]] static Result<PatternList> compile(const std::vector<std::string>& texts);

  // Returns the index of the first pattern that matches; size() if none does.
  [[nodiscard]] std::size_t first_match(const std::string& name);
  // The same, of the patterns for whose index `holds` is true.
  [[nodiscard]] std::size_t first_match(const std::string& name, const std::function<bool(std::size_t)>& holds);

  // Errors: invalid_argument, if a pattern has matched no name so far. `kind` is "rule", "include" or the like.
  [[nodiscard]] Result<void> check_all_matched(std::string_view kind) const;
  // The error of check_all_matched().
  [[nodiscard]] static Error matches_nothing(std::string_view kind, std::size_t index, std::string_view pattern);

  [[nodiscard]] std::size_t size() const noexcept { return patterns_.size(); }

 private:
  struct Entry {
    std::string text;
    NamePattern pattern;
    bool matched = false;
  };
  std::vector<Entry> patterns_;
};

}  // namespace tensorcast::file_conversion
