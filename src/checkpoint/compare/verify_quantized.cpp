// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare/verify_quantized.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "tensorcast/detect_recipes.hpp"

namespace tensorcast::checkpoint {
namespace {

using Recipes = std::vector<std::string>;

// Takes from `common` what is not in `recipes`.
void keep_common(const Recipes& recipes, Recipes& common) {
  std::erase_if(common, [&](const std::string& name) { return std::ranges::find(recipes, name) == recipes.end(); });
}

// `is_weighed`: a file of importance was tried, too.
Error layer_differs(const LayerRecipes& layer, bool is_weighed) {
  const auto nearest = std::ranges::min_element(layer.trials, {}, &RecipeTrial::differing_blocks);
  std::string message = layer.problem;
  if (message.empty() && nearest != layer.trials.end()) {
    message = fmt::format(
        "no recipe of {} makes these bytes of the source's weight; {} is nearest, of which {} of {} blocks{} differ",
        layer.scheme, nearest->recipe, nearest->differing_blocks, layer.blocks,
        nearest->tensor_scale_differs ? " and the tensor scale" : "");
  }
  std::string hint =
      "the weight was changed, or was made of another one; `tcast inspect OUT --against IN` shows all recipes";
  if (!is_weighed) hint = "if it was made with a file of importance, pass `--importance FILE`; else " + hint;
  return of_tensor(layer.name, internal_error(std::move(message), std::move(hint)));
}

}  // namespace

Result<VerifiedWeights> verify_quantized(const VerifyRequest& request, const std::set<std::string>& weights) {
  const DetectRequest detect{.input = request.checkpoint,
                             .original = request.against,
                             .importance = request.importance,
                             .only_recorded = true,
                             .skip_files = request.filter.skip_files,
                             .execution = request.execution,
                             .on_progress = request.on_progress};
  std::vector<LayerRecipes> layers = TRY(detect_recipes(detect));
  std::map<std::string, Recipes> common;  // by scheme
  std::map<std::string, std::size_t> counts;
  std::size_t found = 0;
  VerifiedWeights verified;
  for (const LayerRecipes& layer : layers) {
    if (!weights.contains(layer.name)) continue;
    const Recipes recipes = layer.ways();
    ++found;
    if (recipes.empty()) {
      verified.differences.push_back(layer_differs(layer, !request.importance.empty()));
      continue;
    }
    if (const auto [known, is_new] = common.try_emplace(layer.scheme, recipes); !is_new)
      keep_common(recipes, known->second);
  }
  for (const LayerRecipes& layer : layers) {
    if (!weights.contains(layer.name) || layer.ways().empty()) continue;
    const Recipes& shared = common.at(layer.scheme);
    ++counts[fmt::format("{} by {}", layer.scheme, fmt::join(shared.empty() ? layer.ways() : shared, " or "))];
  }
  if (found != weights.size()) return internal_error("weights of the output are not found");
  for (const auto& [what, count] : counts) {
    verified.sentences.push_back(fmt::format("{} {} {}", count, count == 1 ? "weight is" : "weights are", what));
  }
  return verified;
}

}  // namespace tensorcast::checkpoint
