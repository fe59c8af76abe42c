// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/layer_table_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tensorcast::checkpoint {

namespace {

// Whether decoding reads parts of this role.
bool is_read(quantized::PartRole role) noexcept {
  return role != quantized::PartRole::state && role != quantized::PartRole::activations &&
         role != quantized::PartRole::table;
}

}  // namespace

using file_conversion::PlannedTensor;
using quantized::RespelledLayer;

std::size_t LayerTableMaker::row_of(const PlannedTensor& planned) {
  return planned.decodes() ? row_of_decoded(planned) : row_of_rewritten(planned.rewritten()->layer);
}

std::size_t LayerTableMaker::input_of(const PlannedTensor& planned) const {
  if (planned.decodes()) return places_[planned.source].first;
  const file_conversion::Rewritten& fate = *planned.rewritten();
  return places_[model_.respelling.layers[fate.layer].sources[fate.place]].first;
}

PlannedLayer LayerTableMaker::row(const quantized::Layer& layer, LayerRule& rule,
                                  std::span<const std::size_t> sources) const {
  PlannedLayer row{.name = layer.name, .shape = layer.shape, .parts = {}};
  rule.layer.scheme = layer.scheme;
  rule.layer.block_rows = layer.block_rows;
  rule.layer.block_columns = layer.block_columns;
  rule.layer.nested_block = layer.nested_block;
  rule.layer.coding = layer.coding;
  rule.layer.deviations = layer.deviations;
  for (const quantized::Part& part : layer.parts) {
    if (!is_read(part.role) && std::ranges::find(sources, part.tensor) == sources.end()) continue;
    const formats::TensorInfo& info = model_.tensors[part.tensor];
    rule.parts.push_back({.role = part.role, .type = info.dtype, .name = TensorName::of(info.name, layer.name)});
    PartPlace& place = row.parts.emplace_back();
    place.input = places_[part.tensor].first;
    place.begin = places_[part.tensor].second;
    place.as_layer = info.shape == layer.shape;
    if (!place.as_layer) place.shape = info.shape;
  }
  return row;
}

std::size_t LayerTableMaker::index_of(const LayerRule& rule) {
  if (rules_.empty()) {  // those of other models
    for (const LayerRule& known : table_.rules) rules_.emplace(rule_json(known).dump(), rules_.size());
  }
  const auto [found, is_new] = rules_.emplace(rule_json(rule).dump(), table_.rules.size());
  if (is_new) table_.rules.push_back(rule);
  return found->second;
}

std::size_t LayerTableMaker::row_of_decoded(const PlannedTensor& planned) {
  const quantized::Layer& layer = model_.layers.layers[planned.decoded()->layer];
  LayerRule rule;
  PlannedLayer row = this->row(layer, rule);
  rule.fate = DecodingRule{.scheme = planned.decoded()->scheme,
                           .to = planned.target.dtype,
                           .scale = planned.scale(),
                           .reason = planned.reason};
  PlannedLayer::Rest rest;
  if (!planned.source_name.empty()) rest.new_name = planned.target.name;
  rest.nested_offset = layer.nested_offset;
  row.set_rest(std::move(rest));
  row.rule = index_of(rule);
  table_.layers.push_back(std::move(row));
  return table_.layers.size() - 1;
}

std::size_t LayerTableMaker::row_of_rewritten(std::size_t index) {
  const auto [found, is_new] = rows_.emplace(index, table_.layers.size());
  if (!is_new) return found->second;
  const std::size_t at = found->second;
  const quantized::Layer& layer = model_.layers.layers[index];
  const RespelledLayer& becomes = model_.respelling.layers[index];
  LayerRule rule;
  PlannedLayer row = this->row(layer, rule, becomes.sources);
  PlannedLayer::Rest rest;
  rest.nested_offset = layer.nested_offset;
  if (becomes.quantizing) {
    QuantizingRule fate{.writer = becomes.writer,
                        .quantizing = *becomes.quantizing,
                        .rotation = becomes.becomes.deviations.rotation,
                        .beside_mxfp4 = becomes.becomes.beside_mxfp4,
                        .dynamic_activations = becomes.becomes.dynamic_activations};
    rest.importance = std::exchange(fate.quantizing.importance.name, {});
    rest.importance_row = std::exchange(fate.quantizing.importance.row, -1);
    rest.choice = becomes.choice;
    rule.fate = std::move(fate);
  } else {
    RewritingRule fate{.scheme = fmt::format("{} {}", layer.spelling, layer.scheme),
                       .writer = becomes.writer,
                       .change = becomes.change.kind,
                       .input_scale = becomes.becomes.input_scale,
                       .beside_mxfp4 = becomes.becomes.beside_mxfp4,
                       .zero_points = becomes.becomes.zero_points};
    rest.exponents = becomes.change.exponents;
    rule.fate = std::move(fate);
  }
  rest.constants = becomes.constants;
  row.set_rest(std::move(rest));
  row.rule = index_of(rule);
  table_.layers.push_back(std::move(row));
  std::vector<std::size_t> siblings;
  for (const std::size_t sibling : becomes.siblings) siblings.push_back(row_of_rewritten(sibling));
  table_.layers[at].siblings = std::move(siblings);
  return at;
}

}  // namespace tensorcast::checkpoint
