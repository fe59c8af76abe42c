// SPDX-License-Identifier: Apache-2.0
#include "convert/select/pattern_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::file_conversion {

Result<PatternList> PatternList::compile(const std::vector<std::string>& texts) {
  PatternList list;
  for (const std::string& text : texts) TRY(list.add(text, text));
  return list;
}

Result<void> PatternList::add(const std::string& text, const std::string& pattern) {
  NamePattern compiled = TRY(NamePattern::compile(pattern));
  patterns_.push_back({text, std::move(compiled)});
  return {};
}

std::size_t PatternList::first_match(const std::string& name, const std::function<bool(std::size_t)>& holds) {
  std::size_t first = patterns_.size();
  for (std::size_t i = patterns_.size(); i-- > 0;) {
    if ((holds && !holds(i)) || !patterns_[i].pattern.matches(name)) continue;
    patterns_[i].matched = true;
    first = i;
  }
  return first;
}

std::size_t PatternList::first_unmatched() const {
  return static_cast<std::size_t>(std::ranges::find(patterns_, false, &Entry::matched) - patterns_.begin());
}

Result<void> PatternList::check_all_matched(std::string_view kind) const {
  const std::size_t index = first_unmatched();
  return index == size() ? Result<void>() : matches_nothing(kind, index, text(index));
}

Error PatternList::matches_nothing(std::string_view kind, std::size_t index, std::string_view pattern) {
  return invalid(fmt::format("{} {} (\"{}\") matches no tensor", kind, index + 1, pattern),
                 "`tcast inspect` lists the names");
}

}  // namespace tensorcast::file_conversion
