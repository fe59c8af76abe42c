#include "convert/quantized/name_list.hpp"
// SPDX-License-Identifier: Apache-2.0
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
    if (file_conversion::NamePattern::compile(pattern)) all += (all.empty() ? "" : "|") + pattern;
  }
  if (all.empty()) return;
  if (auto compiled = file_conversion::NamePattern::compile(all)) patterns_ = std::move(compiled).value();
}

bool NameList::has(const std::string& module) const {
  return names_.contains(module) || (patterns_ && patterns_->matches(module));
}

}  // namespace tensorcast::quantized
