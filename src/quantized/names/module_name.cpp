// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/module_name.hpp"

namespace tensorcast::quantized {

std::string tensor_of(std::string_view module, std::string_view word) {
  std::string name(module);
  if (!module.empty()) name += '.';
  return name += word;
}

std::optional<std::string> module_with(std::string_view name, std::string_view word) {
  if (!name.ends_with(word)) return std::nullopt;
  name.remove_suffix(word.size());
  if (name.empty()) return std::string();
  if (!name.ends_with('.') || name.size() == 1) return std::nullopt;
  name.remove_suffix(1);
  return std::string(name);
}

std::string module_of(std::string_view weight) { return module_with(weight, "weight").value_or(std::string(weight)); }

}  // namespace tensorcast::quantized
