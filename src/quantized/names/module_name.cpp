// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/module_name.hpp"

#include <fmt/format.h>

#include <array>

namespace tensorcast::quantized {
namespace {

// Modules that loaders join into one matrix, by the end of their names.
constexpr std::array<std::array<std::string_view, 3>, 5> joined_names = {{{"gate_proj", "up_proj", ""},
                                                                          {"q_proj", "k_proj", "v_proj"},
                                                                          {"w1", "w3", ""},
                                                                          {"gate", "up", ""},
                                                                          {"q_a_proj", "kv_a_proj_with_mqa", ""}}};

}  // namespace

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

std::string joined_module(std::string_view weight) {
  const std::string module = module_of(weight);
  const std::size_t dot = module.rfind('.');
  if (dot == std::string::npos) return {};
  const std::string_view last = std::string_view(module).substr(dot + 1);
  for (const auto& group : joined_names) {
    for (const std::string_view word : group) {
      if (!word.empty() && last == word) return module.substr(0, dot + 1) + std::string(group.front());
    }
  }
  return {};
}

std::string one_scheme_module(std::string_view weight) {
  constexpr std::string_view experts = ".experts.";
  const std::size_t place = weight.find(experts);
  if (place != std::string_view::npos) return std::string(weight.substr(0, place + experts.size()));
  return joined_module(weight);
}

std::string first_of(std::string_view name, std::size_t others) {
  return others == 0 ? fmt::format("\"{}\"", name) : fmt::format("\"{}\" and {} more", name, others);
}

}  // namespace tensorcast::quantized
