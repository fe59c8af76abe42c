// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/module_settings.hpp"

#include <fmt/format.h>

#include <utility>

#include "dtype/errors.hpp"

namespace tensorcast::quantized {

ModuleSettings ModuleSettings::of_gptq(const Json* dynamic) {
  ModuleSettings settings;
  if (dynamic == nullptr) return settings;
  std::vector<std::string> patterns;
  for (const auto& [key, value] : dynamic->items()) {
    const bool has_sign = key.starts_with("-:") || key.starts_with("+:");
    patterns.push_back(has_sign ? key.substr(2) : key);
    settings.of_patterns_.push_back(key.starts_with("-:") ? Json(false) : value);
  }
  settings.patterns_ = PatternSet(std::move(patterns));
  return settings;
}

ModuleSettings ModuleSettings::of_auto_round(const Json* extra_config) {
  ModuleSettings settings;
  if (extra_config == nullptr) return settings;
  std::vector<std::string> patterns;
  for (const auto& [key, value] : extra_config->items()) {
    settings.names_.emplace(key, value);
    if (key.find_first_of("*+?^$()[]{}|\\") == std::string::npos) continue;
    patterns.push_back(key.starts_with('^') ? key : ".*(?:" + key + ")");
    settings.of_patterns_.push_back(value);
  }
  settings.patterns_ = PatternSet(std::move(patterns));
  return settings;
}

Result<ModuleSection> ModuleSettings::section_of(const Json& section, const std::string& module) const {
  const auto name = names_.find(module);
  const Json* own = name == names_.end() ? nullptr : &name->second;
  if (own == nullptr) {
    if (const auto unknown = patterns_.first_unknown()) {
      return unsupported(
          fmt::format("the pattern \"{}\" may be for it, which RE2 cannot match (no lookaround)", patterns_[*unknown]));
    }
    for (const std::size_t pattern : patterns_.find_all(module)) {
      if (own != nullptr && *own != of_patterns_[pattern]) {
        return unsupported(
            fmt::format("patterns with different settings match it, the last is \"{}\"", patterns_[pattern]));
      }
      own = &of_patterns_[pattern];
    }
  }
  if (own != nullptr && !own->is_object()) {
    return unsupported("its settings say that it is not quantized, and these are codes");
  }
  return ModuleSection(section, own);
}

}  // namespace tensorcast::quantized
