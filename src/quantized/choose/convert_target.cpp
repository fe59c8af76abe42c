// SPDX-License-Identifier: Apache-2.0
// Reads what a tensor is to become: a type, or a scheme of blocks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "block/recipe/recipe.hpp"
#include "dtype/edit_distance.hpp"
#include "dtype/errors.hpp"
#include "dtype/lower_case.hpp"
#include "quantized/rewrite/target_options.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

std::vector<std::string_view> scheme_names() {
  std::vector<std::string_view> names;
  for (const QuantizeRecipe& row : quantize_recipes()) {
    if (names.empty() || names.back() != row.scheme) names.push_back(row.scheme);
  }
  return names;
}

// Words of other tools, and what says the same here.
struct ForeignWord {
  std::string_view word, ours;
};
constexpr ForeignWord foreign_words[] = {
    {"w4a16", "int4-group"},        {"w4a16-asym", "int4-group, and no `symmetric`"},
    {"gptq", "int4-group"},         {"awq", "int4-group"},
    {"w8a16", "int8-channel"},      {"w8a8", "int8-channel"},
    {"w8a8-int8", "int8-channel"},  {"llm-int8", "int8-channel"},
    {"fp8-dynamic", "fp8-channel"}, {"w8a8-fp8", "fp8-channel"},
    {"mxfp4a16", "mxfp4"},          {"nvfp4a16", "nvfp4"},
    {"w4a16-nvfp4", "nvfp4"}};

// Whether a scheme may be meant: the text is its beginning, or one edit of four characters away.
bool is_alike(std::string_view scheme, std::string_view text) {
  constexpr std::size_t shortest = 2;
  if (text.size() >= shortest && is_same_name(scheme.substr(0, text.size()), text)) return true;
  const auto is_same = [](char a, char b) { return is_same_name({&a, 1}, {&b, 1}); };
  return edit_distance(scheme, text, is_same) <= scheme.size() / 4;
}

// A hint of what `text` is called here; empty: it is not known.
std::string our_word(std::string_view text) {
  const auto* const found =
      std::ranges::find_if(foreign_words, [&](const ForeignWord& each) { return is_same_name(each.word, text); });
  if (found != std::end(foreign_words)) return fmt::format("write {}", found->ours);
  for (const std::string_view mix : mix_names()) {
    if (is_same_name(mix, text)) return fmt::format("{} is a mixture of types: `mix` makes it, from GGUF to GGUF", mix);
  }
  return {};
}

}  // namespace

Result<SchemeCandidate> parse_scheme_candidate(std::string_view text) {
  const std::size_t colon = text.find(':');
  const bool names_none = colon == std::string_view::npos;
  const std::string_view scheme = text.substr(0, colon);
  const std::string_view recipe = names_none ? std::string_view() : text.substr(colon + 1);
  if (const QuantizeRecipe* row = find_quantize_recipe(scheme, recipe);
      row != nullptr && names_none == recipe.empty()) {
    return SchemeCandidate{std::string(row->scheme), std::string(names_none ? std::string_view() : row->recipe)};
  }
  if (const std::string recipes = block::known_recipes(scheme); !recipes.empty()) {
    return invalid(fmt::format("{} has no recipe \"{}\"", scheme, recipe), "write one of " + recipes);
  }
  std::string hint = our_word(scheme);
  if (hint.empty()) hint = fmt::format("write one of {}", fmt::join(scheme_names(), ", "));
  return invalid(fmt::format("there is no scheme \"{}\"", scheme), std::move(hint));
}

std::vector<SchemeCandidate> default_scheme_candidates() {
  std::vector<SchemeCandidate> candidates;
  for (const auto scheme : std::views::split(options::default_candidates, ',')) {
    candidates.push_back({std::string(scheme.begin(), scheme.end()), {}});
  }
  return candidates;
}

Result<ConvertTarget> parse_target(std::string_view text) {
  Result<DType> dtype = parse_dtype(text);
  if (dtype) return ConvertTarget{.to = *dtype};
  Result<SchemeCandidate> scheme = parse_scheme_candidate(text);
  if (scheme) {
    return ConvertTarget{.scheme = std::move(scheme->scheme), .recipe = std::move(scheme->recipe)};
  }
  if (text.find(':') != std::string_view::npos) return std::move(scheme).error();
  Error error = std::move(dtype).error();
  if (std::string hint = our_word(text); !hint.empty()) {
    error.hint = std::move(hint);
    return error;
  }
  std::vector<std::string_view> alike;
  for (const std::string_view name : scheme_names()) {
    if (is_alike(name, text)) alike.push_back(name);
  }
  if (!alike.empty()) {
    error.hint += fmt::format("{}schemes: {}", error.hint.empty() ? "" : "; ", fmt::join(alike, ", "));
  }
  return error;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
