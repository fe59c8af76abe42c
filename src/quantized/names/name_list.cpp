// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/name_list.hpp"

#include <utility>

namespace tensorcast::quantized {

NameList::NameList(const std::vector<std::string>& entries) {
  std::vector<std::string> patterns;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& entry = entries[i];
    const bool is_pattern = entry.starts_with("re:");
    if (!is_pattern && entry.find_first_of("*?") == std::string::npos) {
      names_.emplace(entry, i);
      continue;
    }
    places_.push_back(i);
    patterns.push_back(is_pattern ? entry.substr(3) : pattern_of_glob(entry));
  }
  patterns_ = PatternSet(std::move(patterns));
}

std::optional<std::size_t> NameList::find(const std::string& module) const {
  if (const auto name = names_.find(module); name != names_.end()) return name->second;
  const std::vector<std::size_t> patterns = patterns_.find_all(module);
  return patterns.empty() ? std::nullopt : std::optional(places_[patterns.front()]);
}

}  // namespace tensorcast::quantized
