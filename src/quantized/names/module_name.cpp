// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/module_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "quantized/names/architectures.hpp"

namespace tensorcast::quantized {
namespace {

// Modules that loaders join into one matrix, by the end of their names: vLLM 0.33, whose models list them. Where models
// join a module with different ones, all of these are one row: a module that has no others to join loses nothing.
constexpr auto joined_names = std::to_array<std::string_view>({
    "q_proj k_proj v_proj q_a_proj kv_a_proj_with_mqa g_proj g_a_proj f_a_proj b_proj output_gate_proj index_q_proj "
    "index_k_proj",
    "gate_proj up_proj dense_h_to_4h",
    "w1 w3",
    "gate up",
    "fc1 fc3",
    "c_fc_0 c_fc_1",
    "q k v",
    "wq wk wv weights_proj",
    "wq_a wkv wgate",
    "wq_du wk_dv wv_dv wr_du",
    "query key value",
    "query_net key_net value_net",
    "key_proj value_proj",
    "in_proj_qkv in_proj_z",
    "in_proj_b in_proj_a",
});

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
  const auto* const row =
      std::ranges::find_if(joined_names, [&](std::string_view names) { return lists(names, last); });
  if (row == joined_names.end()) return {};
  return module.substr(0, dot + 1).append(row->substr(0, row->find(' ')));
}

std::string experts_module(std::string_view name) {
  constexpr std::string_view experts = "experts.";
  for (std::size_t at = name.find(experts); at != std::string_view::npos; at = name.find(experts, at + 1)) {
    if (at == 0 || name[at - 1] == '.') return std::string(name.substr(0, at + experts.size() - 1));
  }
  return {};
}

std::string one_scheme_module(std::string_view weight) {
  std::string experts = experts_module(weight);
  return experts.empty() ? joined_module(weight) : experts;
}

std::string first_of(std::string_view name, std::size_t others) {
  return others == 0 ? fmt::format("\"{}\"", name) : fmt::format("\"{}\" and {} more", name, others);
}

}  // namespace tensorcast::quantized
