// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/unread_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_map>

#include "dtype/lookup.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/names/architectures.hpp"

namespace tensorcast::quantized {
namespace {

// What a module with codes may have beside them in every layout: scales of activations and of caches.
constexpr std::string_view harmless =
    "bias input_scale input_global_scale input_zero_point input_amax output_scale output_zero_point output_amax "
    "activation_scale act_scale scale_input scale_output qscale_act k_scale v_scale q_scale kv_scale prob_scale "
    "k_zero_point v_zero_point k_global_scale v_global_scale q_global_scale input_quantizer._amax "
    "output_quantizer._amax";
// Of a module inside, such as a norm.
constexpr auto own_leaves =
    std::to_array<std::string_view>({"weight", "bias", "running_mean", "running_var", "num_batches_tracked"});

// A bias that is added to what the layer computes, not to its scales or zero points.
bool is_bias(std::string_view word) {
  constexpr auto others = std::to_array<std::string_view>({"scale", "zero", "weight"});
  return word.ends_with("_bias") && std::ranges::none_of(others, [&](std::string_view other) {
           return word.find(other) != std::string_view::npos;
         });
}

bool is_harmless(std::string_view word) { return is_bias(word) || lists(harmless, word); }

struct Owner {
  std::size_t layer = 0;
  std::string_view word;  // the end of the tensor's name
};

class Owners {
 public:
  explicit Owners(const FoundLayers& found) {
    for (std::size_t i = 0; i < found.layers.size(); ++i) {
      const Layer& layer = found.layers[i];
      weights_.emplace(layer.name, i);
      lengths_.insert(layer.name.size());
      if (const std::optional<std::string> module = module_with(layer.name, "weight")) modules_.emplace(*module, i);
    }
  }

  // Returns the layer that a tensor stands beside: in its module, after the name of its weight, or in a module inside
  // its own that has not just a weight and a bias.
  [[nodiscard]] std::optional<Owner> of(std::string_view name) const {
    const std::size_t dot = name.rfind('.');
    std::string module(dot == std::string_view::npos ? "" : name.substr(0, dot));
    std::string_view word = name.substr(dot == std::string_view::npos ? 0 : dot + 1);
    // "x.input_quantizer._amax" and "x.weight.absmax" are of the module x.
    const std::size_t inner = module.rfind('.');
    const std::string_view last = std::string_view(module).substr(inner == std::string::npos ? 0 : inner + 1);
    if (last.ends_with("_quantizer") || last == "weight" || last == "parametrizations") {
      word = name.substr(inner == std::string::npos ? 0 : inner + 1);
      module.resize(inner == std::string::npos ? 0 : inner);
    }
    // At the root stand tensors of the whole model, too.
    const bool at_root = module.empty() && !word.starts_with("weight");
    const auto found = at_root ? modules_.end() : modules_.find(module);
    if (found != modules_.end()) return Owner{found->second, word};
    for (const std::size_t at : lengths_) {
      if (at >= name.size()) break;
      if (name[at] != '.' && name[at] != '_') continue;
      const auto weight = weights_.find(std::string(name.substr(0, at)));
      if (weight != weights_.end()) return Owner{weight->second, name.substr(at + 1)};
    }
    return around(name);
  }

 private:
  [[nodiscard]] std::optional<Owner> around(std::string_view name) const {
    if (contains(own_leaves, name.substr(name.rfind('.') + 1))) return std::nullopt;
    for (std::size_t end = name.rfind('.'); end != std::string_view::npos && end > 0; end = name.rfind('.', end - 1)) {
      const auto found = modules_.find(std::string(name.substr(0, end)));
      if (found != modules_.end()) return Owner{found->second, name.substr(end + 1)};
    }
    return std::nullopt;
  }

  std::unordered_map<std::string, std::size_t> modules_, weights_;
  std::set<std::size_t> lengths_;  // of the weights' names: a name of many parts is not tried at each
};

}  // namespace

void refuse_unread(const ModelTensors& tensors, FoundLayers& found) {
  if (!found.any()) return;
  const Owners owners(found);
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    if (found.layer_of[i]) continue;
    const std::optional<Owner> owner = owners.of(tensors[i].name);
    if (!owner || is_harmless(owner->word) || is_accepted(tensors.accepted(), owner->word)) continue;
    Layer& layer = found.layers[owner->layer];
    if (!layer.problem.empty()) continue;
    layer.problem = fmt::format("it stands beside the codes of \"{}\", and nothing says what it does to them; {}",
                                layer.name, accept_hint(owner->word));
    layer.problem_tensor = tensors[i].name;
  }
}

}  // namespace tensorcast::quantized
