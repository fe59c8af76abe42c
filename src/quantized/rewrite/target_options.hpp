// SPDX-License-Identifier: Apache-2.0
// The options of quantizing weights of files and folders, each described once.
#pragma once

#include <string_view>
#include <type_traits>

#include "options/joined_text.hpp"
#include "options/quantize_options.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::options {

// An option that quantize() has, too: what its row says, but for the sentences of help.
template <class Value>
consteval Option<QuantizeTargets, Value, QuantizeTargets, Value> as_quantize(const char* name,
                                                                             Value QuantizeTargets::*member) {
  Facts facts = facts_of(quantize_options, name);
  facts.of_files = true;
  facts.help = facts.convert_help;
  facts.convert_help = facts.more = "";
  return option(name, member, facts);
}

// The schemes that a budget chooses from unless others are named, and what is measured of tensors.
inline constexpr std::string_view default_candidates = "nvfp4,mxfp4,int4-group,mxfp6,mxfp8,fp8-channel";
// The spellings that are written, in a sentence.
inline constexpr std::string_view written_spelling_names =
    "compressed-tensors, modelopt, gpt-oss, deepseek, comfyui, quark, transformers-mxfp8, gptq, gptq-v2, awq, "
    "auto-round, auto-round-awq or gguf";

namespace help {
inline constexpr std::string_view candidates =
    "with a budget: the schemes to choose from, such as nvfp4 or mxfp4:even (default ";
inline constexpr std::string_view end = ")";
inline constexpr std::string_view spelling = "with a scheme: whose names, packing and configuration are written: ";
}  // namespace help

// In the order in which interfaces list them. QuantizeTargets has the defaults.
inline constexpr std::tuple quantize_targets{
    option("scheme", &QuantizeTargets::scheme, {.in_python = false, .flag = nullptr}),
    option(
        "budget", &QuantizeTargets::budget,
        {.low = 0,
         .high = 32,
         .of_files = true,
         .help = "choose a scheme for each matrix of a layer, so that these bits are the average of the weights that "
                 "are quantized, in each model of a folder, scales included, and the sum of squared errors is small; "
                 "reads the weights twice to measure each candidate",
         .kind = ValueKind::bits}),
    option("candidates", &QuantizeTargets::candidates,
           {.of_files = true,
            .help = joined_text<help::candidates, default_candidates, help::end>.data(),
            .kind = ValueKind::list,
            .metavar = "SCHEME[:RECIPE],..."}),
    as_quantize("recipe", &QuantizeTargets::recipe),
    option(
        "spelling", &QuantizeTargets::spelling,
        {.of_files = true, .help = joined_text<help::spelling, written_spelling_names>.data(), .metavar = "SPELLING"}),
    option("force_layout", &QuantizeTargets::force_layout,
           {.of_files = true,
            .help = "with a scheme or `respell`: write also weights that no known loader of the spelling loads "
                    "(default: they are left, or an error)"}),
    option(
        "activations", &QuantizeTargets::activations,
        {.words = {"auto", "none", "dynamic"},
         .of_files = true,
         .help = "with a scheme: dynamic has loaders quantize activations, too, while the model runs, as the layouts "
                 "of fp8, int8-channel, mxfp8, mxfp6 and mxfp4 allow (default: as the tool of a recipe that is named, "
                 "else none)"}),
    as_quantize("compute_dtype", &QuantizeTargets::compute_dtype),
    as_quantize("group_size", &QuantizeTargets::group_size),
    as_quantize("symmetric", &QuantizeTargets::symmetric),
    as_quantize("power_of_two_scales", &QuantizeTargets::power_of_two_scales),
    option("fuse", &QuantizeTargets::fuse,
           {.words = {"auto", "never"},
            .of_files = true,
            .help = "one tensor scale for weights that loaders join, such as q, k and v (default: where the spelling's "
                    "loaders want it)"}),
    as_quantize("nonfinite", &QuantizeTargets::nonfinite),
    as_quantize("clip", &QuantizeTargets::clip),
    option(
        "convrot", &QuantizeTargets::convrot,
        {.of_files = true,
         .help = "int8-channel as comfyui: first rotate groups of so many inputs, such as 256, by a Hadamard matrix, "
                 "which ComfyUI undoes"}),
    option("importance", &QuantizeTargets::importance,
           {.of_files = true,
            .help = "with a scheme or a budget: weigh squared errors by llama.cpp's importance matrix (GGUF), or by "
                    "safetensors of a number for each column of each weight",
            .kind = ValueKind::file}),
    option("strict_schemes", &QuantizeTargets::strict_schemes,
           {.of_files = true,
            .help = "fail, with a list, if some weights cannot have their scheme, such as 250 inputs in groups of 16 "
                    "(default: leave them as they are)"}),
};

// quantize()'s options for a weight that becomes `scheme`: those that both structs have, but for options of other
// schemes alone. `targets` outlives the result.
inline QuantizeOptions options_for(const QuantizeTargets& targets, std::string_view scheme) {
  QuantizeOptions made;
  for_each(quantize_targets, [&](const auto& from) {
    for_each(quantize_options, [&](const auto& to) {
      using From = typename std::decay_t<decltype(from)>::Type;
      using To = typename std::decay_t<decltype(to)>::Type;
      if constexpr (std::is_convertible_v<From, To>) {
        if (std::string_view(from.name) != to.name || !to.only_with.allows(scheme)) return;
        made.*to.member = static_cast<To>(targets.*from.member);
      }
    });
  });
  return made;
}

}  // namespace tensorcast::options
