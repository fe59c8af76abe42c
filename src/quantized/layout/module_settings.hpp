// SPDX-License-Identifier: Apache-2.0
// Settings of single modules beside those of a whole model: GPTQ's `dynamic`, auto-round's `extra_config`.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "quantized/layout/config.hpp"
#include "quantized/names/pattern_set.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::quantized {

class ModuleSettings {
 public:
  // No settings.
  ModuleSettings() = default;
  // GPTQModel: regular expressions that match the beginning of names; "-:" before one excludes modules.
  [[nodiscard]] static ModuleSettings of_gptq(const Json* dynamic);
  // auto-round: names, or regular expressions that match any part of names.
  [[nodiscard]] static ModuleSettings of_auto_round(const Json* extra_config);

  // Returns the section with the settings of a module. Errors: unsupported: the module is excluded; two patterns that
  // match it differ; a pattern that RE2 does not have may match it.
  [[nodiscard]] Result<Json> section_of(const Json& section, const std::string& module) const;

 private:
  std::unordered_map<std::string, Json> names_;
  PatternSet patterns_;
  std::vector<Json> of_patterns_;  // false: excluded
};

}  // namespace tensorcast::quantized
