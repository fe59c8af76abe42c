// SPDX-License-Identifier: Apache-2.0
#include "print/recipes_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "print/text_table.hpp"
#include "print/value_text.hpp"
#include "process/interrupt.hpp"
#include "process/printable.hpp"
#include "process/progress_bar.hpp"

namespace tcast {
namespace {

using tensorcast::LayerRecipes;
using tensorcast::name;
using tensorcast::RecipeTrial;

// "rceil, te", "mlx (bfloat16)" where other types were tried and do not fit, "rceil with clip mse".
std::string fitting_text(const LayerRecipes& layer) {
  std::string text;
  std::set<std::pair<std::string_view, std::string>> shown;
  for (const RecipeTrial& shown_trial : layer.trials) {
    const std::pair<std::string_view, std::string> way(shown_trial.recipe, shown_trial.search());
    if (!shown_trial.fits() || !shown.insert(way).second) continue;
    std::vector<std::string> notes;
    std::set<tensorcast::DType> tried, fitting;
    bool power = true, shared = true, plain_power = false;
    for (const RecipeTrial& trial : layer.trials) {
      if (trial.recipe != way.first) continue;
      tried.insert(trial.compute_dtype);
      plain_power = plain_power || !trial.power_of_two_scales;
      if (!trial.fits() || trial.search() != way.second) continue;
      fitting.insert(trial.compute_dtype);
      power = power && trial.power_of_two_scales;
      shared = shared && trial.shared_maximum;
    }
    if (fitting.size() < tried.size()) {
      for (const tensorcast::DType dtype : fitting) notes.emplace_back(name(dtype));
    }
    if (power && plain_power) notes.emplace_back("scales of powers of two");
    if (shared) notes.emplace_back("joined tensor scale");
    text += text.empty() ? "" : ", ";
    text += way.first;
    if (!way.second.empty()) text += " with " + way.second;
    if (!notes.empty()) text += fmt::format(" ({})", fmt::join(notes, ", "));
  }
  return text;
}

std::string nearest_text(const LayerRecipes& layer) {
  const auto nearest = std::ranges::min_element(layer.trials, {}, [](const RecipeTrial& trial) {
    return std::pair(trial.differing_blocks, trial.tensor_scale_differs);
  });
  if (nearest == layer.trials.end()) return "none";
  if (nearest->differing_blocks == 0) return fmt::format("none; {} but for its tensor scale", nearest->recipe);
  return fmt::format("none; nearest is {}, but {} of {} blocks", nearest->recipe, grouped(nearest->differing_blocks),
                     grouped(layer.blocks));
}

std::string recipes_of(const LayerRecipes& layer) {
  if (!layer.problem.empty()) return "not tried: " + printable(layer.problem);
  const std::string fitting = fitting_text(layer);
  return fitting.empty() ? nearest_text(layer) : fitting;
}

// What no layer excludes, of those that were tried; by scheme. `names`: a member of LayerRecipes.
template <class Names>
auto common_recipes(std::span<const LayerRecipes> found, Names names) {
  std::map<std::string, decltype((found[0].*names)())> common;
  for (const LayerRecipes& layer : found) {
    if (!layer.problem.empty()) continue;
    const auto here = (layer.*names)();
    const auto [known, is_new] = common.try_emplace(layer.scheme, here);
    if (is_new) continue;
    std::erase_if(known->second, [&](const auto& one) { return std::ranges::find(here, one) == here.end(); });
  }
  return common;
}

}  // namespace

tensorcast::Result<std::vector<LayerRecipes>> detect_recipes(const std::string& input, const std::string& original,
                                                             const std::string& importance,
                                                             const tensorcast::Execution& execution, bool quiet) {
  tensorcast::DetectRequest request{.input = input, .original = original, .importance = importance};
  request.execution = execution;
  const CancellableWork cancellable;
  return with_progress(request, quiet, tensorcast::detect_recipes);
}

std::string recipes_text(std::span<const LayerRecipes> found, bool listed, bool is_weighed) {
  Table table({{listed ? "layer" : "layers", listed ? Align::left : Align::right},
               {"scheme"},
               {"blocks", Align::right},
               {"deciding", Align::right},
               {"recipe"}});
  struct Total {
    std::uint64_t layers = 0, blocks = 0, deciding = 0;
  };
  std::map<std::pair<std::string, std::string>, Total> totals;
  for (const LayerRecipes& layer : found) {
    const std::string recipes = recipes_of(layer);
    if (listed) {
      table.add_row({printable(layer.name), printable(layer.scheme), grouped(layer.blocks),
                     grouped(layer.deciding_blocks), recipes});
      continue;
    }
    Total& total = totals[{layer.scheme, recipes}];
    ++total.layers;
    total.blocks += layer.blocks;
    total.deciding += layer.deciding_blocks;
  }
  for (const auto& [kind, total] : totals) {
    table.add_row(
        {grouped(total.layers), printable(kind.first), grouped(total.blocks), grouped(total.deciding), kind.second});
  }
  std::string text = "\n" + table.to_string();
  for (const auto& [scheme, recipes] : common_recipes(found, &LayerRecipes::ways)) {
    text += recipes.empty() ? fmt::format("\nno recipe made all layers of {}\n", scheme)
                            : fmt::format("\n{}: all layers can be by {}\n", scheme, fmt::join(recipes, " or "));
  }
  const bool is_unknown = std::ranges::any_of(
      found, [](const LayerRecipes& layer) { return layer.problem.empty() && layer.ways().empty(); });
  if (is_unknown && !is_weighed) {
    text += "\nweights that were made with a file of importance are known with it only: --importance FILE\n";
  }
  return text;
}

void add_recipes_json(Json& json, std::span<const LayerRecipes> found) {
  std::map<std::string, const LayerRecipes*> of_tensor;
  std::map<std::string, const LayerRecipes*> of_layer;
  for (const LayerRecipes& layer : found) {
    of_layer.emplace(layer.name, &layer);
    for (const std::string& tensor : layer.tensors) of_tensor.emplace(tensor, &layer);
  }
  const auto add = [](Json& entry, const LayerRecipes& layer) {
    if (!layer.problem.empty()) {
      entry["recipes_problem"] = layer.problem;
    } else {
      entry["recipes"] = layer.recipes();
      entry["blocks"] = layer.blocks;
      entry["deciding_blocks"] = layer.deciding_blocks;
    }
  };
  for (Json& layer : json["layers"]) {
    const auto one = of_layer.find(layer["name"].get<std::string>());
    if (one == of_layer.end()) continue;
    add(layer, *one->second);
    Json trials = Json::array();
    for (const RecipeTrial& trial : one->second->trials) {
      trials.push_back({{"scheme", one->second->scheme},
                        {"recipe", trial.recipe},
                        {"compute_dtype", name(trial.compute_dtype)},
                        {"power_of_two_scales", trial.power_of_two_scales},
                        {"joined_tensor_scale", trial.shared_maximum},
                        {"search", trial.search()},
                        {"differing_blocks", trial.differing_blocks},
                        {"tensor_scale_differs", trial.tensor_scale_differs},
                        {"fits", trial.fits()}});
    }
    layer["trials"] = std::move(trials);
  }
  for (Json& tensor : json["tensors"]) {
    if (const auto one = of_tensor.find(tensor["name"].get<std::string>()); one != of_tensor.end())
      add(tensor, *one->second);
  }
  Json common = Json::object();
  for (const auto& [scheme, recipes] : common_recipes(found, &LayerRecipes::recipes)) common[scheme] = recipes;
  json["recipes"] = std::move(common);
}

}  // namespace tcast
