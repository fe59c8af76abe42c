// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/joined_modules.hpp"

#include <array>

#include "quantized/names/module_name.hpp"

namespace tensorcast::quantized {
namespace {

// By the end of their names.
constexpr std::array<std::array<std::string_view, 3>, 5> joined_names = {{{"gate_proj", "up_proj", ""},
                                                                          {"q_proj", "k_proj", "v_proj"},
                                                                          {"w1", "w3", ""},
                                                                          {"gate", "up", ""},
                                                                          {"q_a_proj", "kv_a_proj_with_mqa", ""}}};

}  // namespace

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

}  // namespace tensorcast::quantized
