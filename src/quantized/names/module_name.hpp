// SPDX-License-Identifier: Apache-2.0
// Names of modules, and of the tensors that a module has: "model.layers.0.mlp.up_proj" has
// "model.layers.0.mlp.up_proj.weight". The root of a file is the module "", which has "weight".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tensorcast::quantized {

// The tensor `word` of a module.
[[nodiscard]] std::string tensor_of(std::string_view module, std::string_view word);
// The module of the tensor `word` that has this name; nullopt: the name is not one of such a tensor.
[[nodiscard]] std::optional<std::string> module_with(std::string_view name, std::string_view word);
// The module of a weight: its name without ".weight"; the name itself if it ends otherwise.
[[nodiscard]] std::string module_of(std::string_view weight);
// Whether a module makes the words of the output.
[[nodiscard]] inline bool is_head(std::string_view module) {
  return module == "lm_head" || module.ends_with(".lm_head");
}

}  // namespace tensorcast::quantized
