// SPDX-License-Identifier: Apache-2.0
// Names of modules, and of the tensors that a module has: "model.layers.0.mlp.up_proj" has
// "model.layers.0.mlp.up_proj.weight". The root of a file is the module "", which has "weight".
#pragma once

#include <cstddef>
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

// A name for the matrix that loaders make of the modules of this weight and of others, such as q_proj, k_proj and
// v_proj of one layer; "": it is joined with none. Weights of one whole have one name.
[[nodiscard]] std::string joined_module(std::string_view weight);
// The module of all experts of a layer that this tensor or module is inside: "model.layers.0.mlp.experts"; "": it is in
// none.
[[nodiscard]] std::string experts_module(std::string_view name);
// A name for the weights that loaders want in one scheme: the whole, or all experts of a layer; "": its scheme is its
// own.
[[nodiscard]] std::string one_scheme_module(std::string_view weight);

// The first of several names in quotes, and how many others there are: "a.weight" and 3 more.
[[nodiscard]] std::string first_of(std::string_view name, std::size_t others);

}  // namespace tensorcast::quantized
