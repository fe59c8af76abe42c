// SPDX-License-Identifier: Apache-2.0
#include "quantized/detect/loader_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "quantized/layout/loaders.hpp"
#include "quantized/names/first_of.hpp"
#include "tensorcast/quantized_file.hpp"

namespace tensorcast::quantized {
namespace {

// What a configuration may say otherwise than ours does, as that embeddings are quantized, is no fault; and published
// models of DeepSeek have shorter last blocks.
bool is_fault(WeightTrait trait) {
  return trait != WeightTrait::embedding && trait != WeightTrait::no_fused_expert &&
         trait != WeightTrait::short_last_block;
}

bool takes(const Loader& loader, const QuantizedLayer& layer) {
  const std::vector<std::string_view> schemes = list_words(loader.schemes);
  return loader.layout == layer.spelling &&
         (schemes.empty() || std::ranges::find(schemes, layer.scheme) != schemes.end());
}

}  // namespace

std::vector<std::string> loader_warnings(const FoundLayers& found) {
  std::map<const LoaderLimit*, std::vector<std::string>> beyond;
  for (const Layer& layer : found.layers) {
    if (!layer.problem.empty()) continue;
    for (const LoaderLimit* limit : limits_of(layer.spelling, loaded_weight(layer, layer.scheme), found.architecture)) {
      if (is_fault(limit->trait)) beyond[limit].push_back(layer.name);
    }
  }
  std::vector<std::string> warnings;
  for (const LoaderLimit& limit : all_limits()) {
    const auto row = beyond.find(&limit);
    if (row == beyond.end()) continue;
    warnings.push_back(fmt::format("{}: known loaders do not take it: {}",
                                   first_of(row->second.front(), row->second.size() - 1), text_of(limit)));
  }
  return warnings;
}

}  // namespace tensorcast::quantized

namespace tensorcast {
inline namespace TENSORCAST_ABI {

std::vector<std::string> known_loaders(std::span<const QuantizedLayer> layers) {
  std::vector<std::string> names;
  for (const quantized::Loader& loader : quantized::all_loaders()) {
    const auto is_taken = [&](const QuantizedLayer& layer) {
      return std::ranges::any_of(quantized::all_loaders(), [&](const quantized::Loader& row) {
        return row.name == loader.name && quantized::takes(row, layer);
      });
    };
    const bool is_new = std::ranges::find(names, loader.name) == names.end();
    if (is_new && !layers.empty() && std::ranges::all_of(layers, is_taken)) names.emplace_back(loader.name);
  }
  return names;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
