// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/name_list.hpp"

#include <algorithm>
#include <string_view>

namespace tensorcast::quantized {
namespace {

// The pattern of a glob that matches whole names, as Python's fnmatch.
std::string pattern_of_glob(std::string_view glob) {
  std::string pattern = "^";
  for (const char c : glob) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (c == '*' || c == '?') {
      pattern += c == '*' ? ".*" : ".";
    } else if (is_plain || static_cast<unsigned char>(c) >= 128) {
      pattern += c;
    } else {
      pattern += '\\';
      pattern += c;
    }
  }
  return pattern + "$";
}

}  // namespace

NameList::NameList(const std::vector<std::string>& entries) {
  std::string all;
  for (const std::string& entry : entries) {
    const bool is_pattern = entry.starts_with("re:");
    if (!is_pattern && entry.find_first_of("*?") == std::string::npos) {
      names_.insert(entry);
      continue;
    }
    const std::string pattern = is_pattern ? "^(?:" + entry.substr(3) + ")" : pattern_of_glob(entry);
    // Many in one, as far as a pattern may be long.
    const std::string joined = all.empty() ? pattern : all + "|" + pattern;
    if (auto compiled = file_conversion::NamePattern::compile(joined); compiled && !all.empty()) {
      patterns_.back() = std::move(compiled).value();
      all = joined;
    } else if (auto alone = file_conversion::NamePattern::compile(pattern)) {
      patterns_.push_back(std::move(alone).value());
      all = pattern;
    }
  }
}

bool NameList::has(const std::string& module) const {
  return names_.contains(module) ||
         std::ranges::any_of(patterns_, [&](const auto& pattern) { return pattern.matches(module); });
}

}  // namespace tensorcast::quantized
