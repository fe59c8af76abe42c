// SPDX-License-Identifier: Apache-2.0
#include "convert/select/pattern_list.hpp"

#include <fmt/format.h>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::file_conversion {

Result<PatternList> PatternList::compile(const std::vector<std::string>& texts) {
  PatternList list;
  for (const std::string& text : texts) {
    NamePattern pattern = TRY(NamePattern::compile(text));
    list.patterns_.push_back({text, std::move(pattern)});
  }
  return list;
}

std::size_t PatternList::first_match(const std::string& name) {
  return first_match(name, [](std::size_t) { return true; });
}

std::size_t PatternList::first_match(const std::string& name, const std::function<bool(std::size_t)>& holds) {
  std::size_t first = patterns_.size();
  for (std::size_t i = patterns_.size(); i-- > 0;) {
    if (!holds(i) || !patterns_[i].pattern.matches(name)) continue;
    patterns_[i].matched = true;
    first = i;
  }
  return first;
}

Result<void> PatternList::check_all_matched(std::string_view kind) const {
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!patterns_[i].matched) return matches_nothing(kind, i, patterns_[i].text);
  }
  return {};
}

Error PatternList::matches_nothing(std::string_view kind, std::size_t index, std::string_view pattern) {
  return invalid(fmt::format("{} {} (\"{}\") matches no tensor", kind, index + 1, pattern),
                 "`tcast inspect` lists the names");
}

}  // namespace tensorcast::file_conversion
