// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/renamed_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint/plan/config_file.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/wrapped_reader.hpp"

namespace tensorcast::checkpoint {
namespace {

using file_conversion::PlannedTensor;

bool lists(const quantized::FoundLayers& found, const quantized::Layer& layer) {
  return std::ranges::find(found.excluded, layer.name) != found.excluded.end();
}

bool same_numbers(const quantized::Layer& a, const quantized::Layer& b) {
  return a.scheme == b.scheme && a.spelling == b.spelling && a.shape == b.shape && a.block_rows == b.block_rows &&
         a.block_columns == b.block_columns && a.coding == b.coding && a.deviations == b.deviations &&
         a.parts.size() == b.parts.size() && a.problem.empty() == b.problem.empty();
}

}  // namespace

Result<file_conversion::NewEntries> rename_layers(const file_conversion::ModelToPlan& model,
                                                  std::span<const PlannedTensor> planned) {
  const quantized::FoundLayers& layers = model.layers;
  const auto stays = [&](const PlannedTensor& tensor) { return !tensor.layer() && layers.layer_of[tensor.source]; };
  if (layers.any() && std::ranges::none_of(planned, stays)) {
    return file_conversion::NewEntries();  // the configurations go
  }
  std::vector<std::pair<std::string, std::string>> names;
  for (const PlannedTensor& tensor : planned) names.emplace_back(tensor.name(), tensor.target.name);
  file_conversion::NewEntries entries = TRY(file_conversion::new_entries(model.texts, names));
  std::vector<quantized::ConfigText> now = model.texts;
  for (quantized::ConfigText& config : now) {
    Result<std::string> text = with_new_entries(config.text, entries, config.name);
    if (text) config.text = *std::move(text);  // what is not JSON describes nothing
  }
  formats::ChosenTensors tensors(*model.reader);  // that keep their bytes, under their new names
  std::vector<std::optional<std::size_t>> places(model.tensors.size());
  for (const PlannedTensor& tensor : planned) {
    if (tensor.layer()) continue;
    places[tensor.source] = tensors.tensors().size();
    tensors.add(tensor.source, tensor.target.name);
  }
  const quantized::FoundLayers found = quantized::find_layers(tensors.tensors(), now, quantized::read_with(tensors));
  for (const quantized::Layer& layer : layers.layers) {
    const auto is_written = [&](const quantized::Part& part) { return places[part.tensor].has_value(); };
    const bool is_read = layer.is_quantized() && layer.problem.empty();
    if (!is_read || !std::ranges::all_of(layer.parts, is_written)) continue;
    const std::optional<std::size_t> index = found.layer_of[*places[layer.codes()]];
    const quantized::Layer* const other = index ? &found.layers[*index] : nullptr;
    if (other != nullptr && same_numbers(layer, *other) && lists(layers, layer) == lists(found, *other)) continue;
    const bool is_torn = other == nullptr || !other->problem.empty();
    std::string message = is_torn ? std::string("under their new names, its codes and scales are no weight any more")
                                  : fmt::format("under its new name, \"{}\", it would be read otherwise", other->name);
    return of_tensor(layer.name, unsupported(std::move(message),
                                             "rename whole modules; or decode the model, and rename its weights"));
  }
  return entries;
}

Result<void> rename_in_metadata(const file_conversion::NewEntries& entries, formats::Metadata& metadata) {
  if (entries.empty()) return {};
  for (auto& [key, value] : metadata) {
    if (key != "quantization_config" && key != "_quantization_metadata") continue;
    value = TRY(with_new_entries(value, entries, key));
  }
  return {};
}

}  // namespace tensorcast::checkpoint
