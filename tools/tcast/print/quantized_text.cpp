// SPDX-License-Identifier: Apache-2.0
#include "print/quantized_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "print/text_table.hpp"
#include "print/value_text.hpp"
#include "process/printable.hpp"
#include "tensorcast/quantized_file.hpp"

namespace tcast {
namespace {

using tensorcast::QuantizedLayer;

std::string block_text(const QuantizedLayer& layer) {
  if (layer.block_rows == 0 && layer.block_columns == 0) return "tensor";
  const bool row = layer.block_rows == 1 && !layer.shape.empty() && layer.block_columns == layer.shape.back();
  if (row) return "row";
  return layer.block_rows == 0 ? fmt::format("{}", layer.block_columns)
                               : fmt::format("{} x {}", layer.block_rows, layer.block_columns);
}

std::string kinds_of_layers(std::span<const QuantizedLayer> layers) {
  std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t> kinds;
  for (const QuantizedLayer& layer : layers) ++kinds[{layer.spelling, layer.scheme, block_text(layer)}];
  Table table({{"spelling"}, {"scheme"}, {"scale for"}, {"layers", Align::right}});
  for (const auto& [kind, count] : kinds) {
    const auto& [spelling, scheme, block] = kind;
    table.add_row({spelling, printable(scheme), block, grouped(count)});
  }
  return table.to_string();
}

std::string all_layers(std::span<const QuantizedLayer> layers) {
  Table table({{"layer"}, {"spelling"}, {"scheme"}, {"scale for"}, {"shape"}});
  for (const QuantizedLayer& layer : layers) {
    table.add_row(
        {printable(layer.name), layer.spelling, printable(layer.scheme), block_text(layer), shape_text(layer.shape)});
  }
  return table.to_string();
}

}  // namespace

std::string layers_text(const tensorcast::FileSummary& file, bool listed) {
  const std::span<const QuantizedLayer> layers = file.layers;
  constexpr std::size_t most_problems = 5;
  std::string text;
  if (!layers.empty()) text += "\n" + (listed ? all_layers(layers) : kinds_of_layers(layers));
  if (const std::vector<std::string> loaders = tensorcast::known_loaders(layers); !loaders.empty()) {
    text += fmt::format("known loaders: {}\n", fmt::join(loaders, ", "));
  }
  std::string problems;
  std::size_t count = 0;
  for (const QuantizedLayer& layer : layers) {
    if (layer.problem.empty() || (++count > most_problems && !listed)) continue;
    problems += fmt::format("not decoded: {}: {}\n", printable(layer.problem_tensor), printable(layer.problem));
  }
  if (count > most_problems && !listed) {
    problems += fmt::format("not decoded: {} more; --tensors lists them\n", count - most_problems);
  }
  for (const std::string& warning : file.warnings) problems += fmt::format("warning: {}\n", printable(warning));
  for (const std::string& note : file.notes) problems += fmt::format("note: {}\n", printable(note));
  return problems.empty() ? text : text + "\n" + problems;
}

void add_layers_json(Json& json, const tensorcast::FileSummary& file) {
  if (file.layers.empty() && file.warnings.empty() && file.notes.empty()) return;
  Json list = Json::array();
  for (const QuantizedLayer& layer : file.layers) {
    Json entry = {{"name", layer.name}, {"spelling", layer.spelling}, {"scheme", layer.scheme}};
    entry["shape"] = layer.shape;
    entry["block"] = {layer.block_rows, layer.block_columns};
    entry["tensors"] = layer.tensors;
    if (!layer.problem.empty()) {
      entry["problem"] = layer.problem;
      entry["problem_tensor"] = layer.problem_tensor;
    }
    list.push_back(std::move(entry));
  }
  json["layers"] = std::move(list);
  json["loaders"] = tensorcast::known_loaders(file.layers);
  json["warnings"] = file.warnings;
  json["notes"] = file.notes;
}

}  // namespace tcast
