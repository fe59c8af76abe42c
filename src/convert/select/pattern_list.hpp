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

  // Adds the pattern of a text. Errors: as compile().
  [[nodiscard]] Result<void> add(const std::string& text, const std::string& pattern);

  // Returns the index of the first pattern that matches, and for whose index `holds` is true; size() if none does.
  [[nodiscard]] std::size_t first_match(const std::string& name,
                                        const std::function<bool(std::size_t)>& holds = nullptr);
  [[nodiscard]] bool matches(const std::string& name) { return first_match(name) < size(); }

  // Returns the index of the first pattern that has matched no name so far; size() if there is none.
  [[nodiscard]] std::size_t first_unmatched() const;
  [[nodiscard]] const std::string& text(std::size_t index) const { return patterns_[index].text; }
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
