// SPDX-License-Identifier: Apache-2.0
// Reads what a tensor is to become: a type, or a scheme of blocks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "dtype/errors.hpp"
#include "dtype/lower_case.hpp"
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
  std::vector<std::string_view> recipes;
  for (const QuantizeRecipe& row : quantize_recipes()) {
    if (is_same_name(row.scheme, scheme)) recipes.push_back(row.recipe);
  }
  if (!recipes.empty()) {
    return invalid(fmt::format("{} has no recipe \"{}\"", scheme, recipe),
                   fmt::format("write one of {}", fmt::join(recipes, ", ")));
  }
  return invalid(fmt::format("there is no scheme \"{}\"", scheme),
                 fmt::format("write one of {}", fmt::join(scheme_names(), ", ")));
}

std::vector<SchemeCandidate> default_scheme_candidates() {
  std::vector<SchemeCandidate> candidates;
  for (const char* scheme : {"nvfp4", "mxfp4", "int4-group", "mxfp6", "mxfp8", "fp8-channel"}) {
    candidates.push_back({scheme, {}});
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
  std::vector<std::string_view> alike;
  for (const std::string_view name : scheme_names()) {
    if (is_same_name(name.substr(0, 2), text.substr(0, 2))) alike.push_back(name);
  }
  if (!alike.empty()) {
    error.hint += fmt::format("{}schemes: {}", error.hint.empty() ? "" : "; ", fmt::join(alike, ", "));
  }
  return error;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
