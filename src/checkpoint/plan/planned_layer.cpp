// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/planned_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "convert/plan/respelled_plan.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::checkpoint {
namespace {

using quantized::LayerContent;
using quantized::PartRole;
using quantized::RespelledLayer;
using quantized::ScaleChange;

constexpr int most_exponent = 300;

Error does_not_fit(const char* why) { return parse_error(why); }

const PlannedLayer::Rest& rest_of(const PlannedLayer& layer) {
  static const PlannedLayer::Rest none;
  return layer.rest == nullptr ? none : *layer.rest;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

// Returns no bytes if the text is not hexadecimal digits in pairs.
std::vector<std::byte> bytes_of(const std::string& text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

// The tensor that a decoded layer becomes.
Result<file_conversion::PlannedTensor> decode(const DecodingRule& rule, const PlannedLayer& layer, std::size_t row,
                                              std::uint64_t bytes) {
  file_conversion::PlannedTensor planned;
  formats::TensorInfo& target = planned.target;
  const std::string& new_name = rest_of(layer).new_name;
  target.name = new_name.empty() ? layer.name : new_name;
  if (!new_name.empty()) planned.source_name = layer.name;
  target.shape = layer.shape;
  const Result<std::size_t> count = element_count(target.shape);
  if (!count) return does_not_fit("a shape is too large");
  target.count = *count;
  target.dtype = rule.to;
  target.bytes = storage_bytes(rule.to, target.count);
  if (target.bytes == SIZE_MAX) return does_not_fit("a shape is too large");
  planned.from = DType::float32;
  planned.bytes_in = bytes;
  planned.fate = file_conversion::Decoded{.layer = row, .scheme = rule.scheme, .scale = rule.scale};
  planned.reason = rule.reason;
  planned.quantized = true;
  return planned;
}

// Reports whether numbers lie in blocks as a spelling can have them.
bool is_sound_layer(const LayerContent& content) {
  constexpr std::int64_t most_block = std::int64_t{1} << 31;
  constexpr std::size_t most_globals = std::size_t{1} << 23;
  constexpr DType scales[] = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e8m0fnu,
                              DType::float8_e4m3fn};
  return std::ranges::find(scales, content.scales()) != std::end(scales) && content.block_rows < most_block &&
         content.block_columns < most_block && (content.block_rows == 0) == (content.block_columns == 0) &&
         content.globals < most_globals;
}

// What a layer becomes whose codes stay.
Result<RespelledLayer> respell(const RewritingRule& rule, const PlannedLayer& row, const SourceLayer& source) {
  constexpr const char* no_spelling = "a layer has no such spelling";
  std::vector<formats::TensorInfo> parts;
  for (const LayerPart& part : source.parts) parts.push_back(part.info);
  if (row.shape.size() < 2) return does_not_fit(no_spelling);
  const Result<LayerContent> content = quantized::stored_content(source.layer, parts);
  if (!content || !is_sound_layer(*content)) return does_not_fit(no_spelling);
  RespelledLayer layer;
  layer.writer = rule.writer;
  layer.content = std::make_shared<const LayerContent>(*content);
  layer.becomes = quantized::rescaled(*content, rule.change);
  layer.becomes.input_scale = rule.input_scale;
  layer.becomes.beside_mxfp4 = rule.beside_mxfp4;
  layer.becomes.zero_points = rule.zero_points;
  layer.change = {.kind = rule.change, .exponents = rest_of(row).exponents};
  const auto columns = content->grid_columns(), new_columns = layer.becomes.grid_columns();
  const bool halves = rule.change == ScaleChange::Kind::to_nvfp4, joins = rule.change == ScaleChange::Kind::to_mxfp4;
  if ((halves && 2 * columns != new_columns) || (joins && columns != 2 * new_columns)) return does_not_fit(no_spelling);
  return layer;
}

// What a weight becomes that is quantized.
Result<RespelledLayer> quantize(const QuantizingRule& rule, const PlannedLayer& row, const SourceLayer& source) {
  RespelledLayer layer;
  quantized::Quantizing& quantizing = layer.quantizing.emplace(rule.quantizing);
  const Shape shape(quantized::shape_to_quantize(source.layer));
  quantizing.importance = {};  // which changes no layout
  const Result<block::SharedLayout> layout = quantized::layout_of(quantizing, shape);
  if (!layout || !quantized::can_rotate(rule.rotation, quantizing, shape)) {
    return does_not_fit("a weight has no such scheme");
  }
  layer.passes = (*layout)->needs_maximum() ? 2 : 1;
  const QuantizedTensor& made = (*layout)->tensor;
  layer.recipe = made.recipe->recipe;
  layer.choice = rest_of(row).choice;
  layer.becomes = quantized::content_of(made, row.name, !quantizing.options.symmetric);
  layer.becomes.beside_mxfp4 = rule.beside_mxfp4;
  layer.becomes.dynamic_activations = rule.dynamic_activations;
  layer.becomes.deviations.rotation = rule.rotation;
  layer.becomes.exact_scales = quantized::exact_scales_of(made, quantizing.compute());
  layer.writer = rule.writer;
  if (const PlannedLayer::Rest& rest = rest_of(row); !rest.importance.empty()) {
    quantizing.importance = rule.quantizing.importance;
    quantizing.importance.name = rest.importance;
    quantizing.importance.row = rest.importance_row;
  }
  return layer;
}

// Puts in the bytes that are known, and checks that they are those which nothing computes, and that the spelling fits.
Result<void> put_constants(const PlannedLayer& row, RespelledLayer& layer) {
  const quantized::WrittenLayer plain = layer.written();
  if (!plain.ok()) return does_not_fit("a layer has no such spelling");
  layer.constants = rest_of(row).constants;
  if (!layer.constants.empty() && layer.constants.rbegin()->first >= plain.tensors.size()) {
    return does_not_fit("a layer has no such tensor");
  }
  for (const quantized::WrittenTensor& tensor : layer.written().tensors) {
    const bool computed = tensor.role == PartRole::codes || tensor.role == PartRole::scales ||
                          tensor.role == PartRole::zero_points ||
                          (layer.quantizing && tensor.role == PartRole::global_scale);
    if ((!computed || !tensor.constant.empty()) && tensor.constant.size() != tensor.info.bytes) {
      return does_not_fit("a tensor has other bytes than its shape");
    }
  }
  return {};
}

}  // namespace

std::uint64_t SourceLayer::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const LayerPart& part : parts) sum += part.info.bytes;
  return sum;
}

SourceLayer source_of(const LayerTable& table, const PlannedLayer& layer) {
  const LayerRule& rule = table.rules[layer.rule];
  SourceLayer source{.layer = rule.layer, .parts = {}};
  source.layer.name = layer.name;
  source.layer.shape = layer.shape;
  source.layer.nested_offset = rest_of(layer).nested_offset;
  for (std::size_t i = 0; i < layer.parts.size(); ++i) {
    const PartPlace& place = layer.parts[i];
    LayerPart& part = source.parts.emplace_back();
    part.info.name = rule.parts[i].name.in(layer.name);
    part.info.dtype = rule.parts[i].type;
    part.info.shape = place.as_layer ? layer.shape : place.shape;
    part.info.count = element_count(part.info.shape).value_or(0);
    part.info.bytes = storage_bytes(part.info.dtype, part.info.count);
    part.input = place.input;
    part.begin = place.begin;
    source.layer.parts.push_back({.role = rule.parts[i].role, .tensor = i});
  }
  return source;
}

Result<RespelledLayer> becomes_of(const LayerTable& table, const PlannedLayer& layer) {
  const LayerRule& rule = table.rules[layer.rule];
  const auto* rewriting = std::get_if<RewritingRule>(&rule.fate);
  const SourceLayer source = source_of(table, layer);
  RespelledLayer becomes = TRY(rewriting != nullptr ? respell(*rewriting, layer, source)
                                                    : quantize(std::get<QuantizingRule>(rule.fate), layer, source));
  TRY(put_constants(layer, becomes));
  return becomes;
}

Result<std::vector<ShardTensor>> tensors_of(const LayerTable& table, std::size_t row) {
  const PlannedLayer& layer = table.layers[row];
  const LayerRule& rule = table.rules[layer.rule];
  const SourceLayer source = source_of(table, layer);
  std::vector<ShardTensor> tensors;
  const PartPlace& codes = layer.parts.front();
  if (const auto* decoding = std::get_if<DecodingRule>(&rule.fate)) {
    tensors.push_back(
        {.planned = TRY(decode(*decoding, layer, row, source.bytes())), .input = codes.input, .begin = codes.begin});
    return tensors;
  }
  const RespelledLayer becomes = TRY(becomes_of(table, layer));
  const auto* rewriting = std::get_if<RewritingRule>(&rule.fate);
  const std::string words =
      file_conversion::words_of(becomes, rewriting == nullptr ? std::string() : rewriting->scheme);
  const quantized::WrittenLayer written = becomes.written();
  for (std::size_t i = 0; i < written.tensors.size(); ++i) {
    // Quantized anew, all are made of the codes' numbers.
    const std::size_t from = rewriting == nullptr ? 0 : source.layer.place_of(written.tensors[i].role).value_or(0);
    tensors.push_back({.planned = file_conversion::planned_written(becomes, written, {.layer = row, .place = i},
                                                                   source.parts[from].info.name, words, source.bytes()),
                       .input = codes.input,
                       .begin = codes.begin});
  }
  return tensors;
}

nlohmann::ordered_json layer_row_json(const PlannedLayer& layer) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const PartPlace& part : layer.parts) {
    nlohmann::ordered_json place = {part.input, part.begin};
    if (!part.as_layer) place.push_back(part.shape);
    parts.push_back(std::move(place));
  }
  nlohmann::ordered_json json = {
      {"weight", layer.name}, {"rule", layer.rule}, {"shape", layer.shape}, {"parts", std::move(parts)}};
  if (!layer.siblings.empty()) json["siblings"] = layer.siblings;
  const PlannedLayer::Rest& rest = rest_of(layer);
  if (!rest.new_name.empty()) json["new_name"] = rest.new_name;
  if (rest.nested_offset != 0.0F) json["nested_offset"] = rest.nested_offset;
  if (!rest.exponents.empty()) json["exponents"] = rest.exponents;
  for (const auto& [place, bytes] : rest.constants) json["constants"].push_back({place, hexadecimal(bytes)});
  if (!rest.choice.empty()) json["choice"] = rest.choice;
  if (!rest.importance.empty()) json["importance"] = {rest.importance, rest.importance_row};
  return json;
}

bool read_layer_row(const nlohmann::json& json, PlannedLayer& layer) {
  layer.name = json.at("weight").get<std::string>();
  layer.rule = json.at("rule").get<std::size_t>();
  layer.shape = json.at("shape").get<std::vector<std::int64_t>>();
  const Result<std::size_t> count = element_count(layer.shape);
  if (!count || *count >= (std::size_t{1} << 56)) return false;
  for (const nlohmann::json& entry : json.at("parts")) {
    PartPlace& place = layer.parts.emplace_back();
    place.input = entry.at(0).get<std::size_t>();
    place.begin = entry.at(1).get<std::uint64_t>();
    place.as_layer = entry.size() == 2;
    if (!place.as_layer) place.shape = entry.at(2).get<std::vector<std::int64_t>>();
    if (!element_count(place.shape)) return false;
  }
  if (json.contains("siblings")) layer.siblings = json.at("siblings").get<std::vector<std::size_t>>();
  PlannedLayer::Rest rest;
  rest.new_name = json.value("new_name", "");
  rest.nested_offset = json.value("nested_offset", 0.0F);
  if (json.contains("exponents")) rest.exponents = json.at("exponents").get<std::vector<int>>();
  for (const int exponent : rest.exponents) {
    if (std::abs(exponent) >= most_exponent) return false;
  }
  if (json.contains("constants")) {
    for (const nlohmann::json& entry : json.at("constants")) {
      rest.constants[entry.at(0).get<std::size_t>()] = bytes_of(entry.at(1).get<std::string>());
    }
  }
  rest.choice = json.value("choice", "");
  if (json.contains("importance")) {
    rest.importance = json.at("importance").at(0).get<std::string>();
    rest.importance_row = json.at("importance").at(1).get<std::int64_t>();
  }
  layer.set_rest(std::move(rest));
  return true;
}

}  // namespace tensorcast::checkpoint
