// SPDX-License-Identifier: Apache-2.0
// Settings of single modules beside those of a whole model: GPTQ's `dynamic`, auto-round's `extra_config`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quantized/layout/config.hpp"
#include "quantized/names/pattern_set.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::quantized {

// What holds for one module: its own settings, and those of the model where it has none. Borrows both.
class ModuleSection {
 public:
  ModuleSection(const Json& all, const Json* own) : all_(all), own_(own) {}

  // As size_in(), text_in() and is_true().
  [[nodiscard]] std::optional<std::int64_t> size(std::string_view key, std::int64_t least = 1) const {
    return size_in(with(key), key, least);
  }
  [[nodiscard]] std::string text(std::string_view key) const { return text_in(with(key), key); }
  [[nodiscard]] bool is(std::string_view key, bool otherwise = false) const {
    return is_true(with(key), key, otherwise);
  }

 private:
  [[nodiscard]] const Json& with(std::string_view key) const {
    return own_ != nullptr && own_->contains(key) ? *own_ : all_;
  }

  const Json& all_;
  const Json* own_;
};

class ModuleSettings {
 public:
  // No settings.
  ModuleSettings() = default;
  // GPTQModel: regular expressions that match the beginning of names; "-:" before one excludes modules.
  [[nodiscard]] static ModuleSettings of_gptq(const Json* dynamic);
  // auto-round: names, or regular expressions that match any part of names.
  [[nodiscard]] static ModuleSettings of_auto_round(const Json* extra_config);

  // Returns what holds for a module of the model that `section` describes. Errors: unsupported: the module is excluded;
  // two patterns that match it differ; a pattern that RE2 does not have may match it.
  [[nodiscard]] Result<ModuleSection> section_of(const Json& section, const std::string& module) const;

 private:
  std::unordered_map<std::string, Json> names_;
  PatternSet patterns_;
  std::vector<Json> of_patterns_;  // false: excluded
};

}  // namespace tensorcast::quantized
