// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/layer_rule.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/plan/decoded_layer.hpp"
#include "convert/plan/conversion_json.hpp"
#include "formats/safetensors/safetensors_dtypes.hpp"
#include "quantized/names/module_name.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::checkpoint {
namespace {

using quantized::PartRole;
using quantized::ScaleChange;

std::string_view stem_of(std::string_view layer) { return layer.substr(0, layer.rfind('.') + 1); }

nlohmann::ordered_json name_json(const TensorName& name) {
  return name.beside ? nlohmann::ordered_json(name.text) : nlohmann::ordered_json::array({name.text});
}

TensorName name_of(const nlohmann::json& json) {
  const bool beside = json.is_string();
  return {.beside = beside, .text = (beside ? json : json.at(0)).get<std::string>()};
}

nlohmann::ordered_json quantizing_json(const quantized::Quantizing& quantizing) {
  nlohmann::ordered_json json = {
      {"scheme", quantizing.scheme}, {"recipe", quantizing.options.recipe}, {"numbers", name(quantizing.numbers)}};
  json.update(file_conversion::quantize_options_json(quantizing.options));
  if (!quantizing.importance.file.empty()) {
    const quantized::ImportanceEntry& entry = quantizing.importance;
    json["importance"] = {{"file", entry.file}, {"version", entry.version}};
  }
  return json;
}

// Folders have no GGUF. The quantizer checks the numbers.
bool read_quantizing(const nlohmann::json& json, quantized::Quantizing& quantizing) {
  quantizing.scheme = json.at("scheme").get<std::string>();
  const Result<DType> numbers = parse_dtype(json.at("numbers").get<std::string>());
  const auto recipe = json.at("recipe").get<std::string>();
  const QuantizeRecipe* known = find_quantize_recipe(quantizing.scheme, recipe);
  if (!numbers || known == nullptr) return false;
  quantizing.numbers = *numbers;
  if (!recipe.empty()) quantizing.options.recipe = known->recipe;
  if (json.contains("importance")) {
    quantizing.importance = {.file = json.at("importance").at("file").get<std::string>(),
                             .version = json.at("importance").at("version").get<std::string>()};
  }
  return file_conversion::read_quantize_options(json, quantizing.options);
}

bool read_writer(const nlohmann::json& json, const quantized::Spelling*& writer) {
  writer = quantized::find_writer(json.at("spelling").get<std::string>());
  return writer != nullptr;
}

bool read_decoding(const nlohmann::json& json, DecodingRule& rule) {
  rule.scheme = json.at("decoded").get<std::string>();
  const Result<DType> to = parse_dtype(json.at("to").get<std::string>());
  const auto why = file_conversion::parse_reason(json.at("why").get<std::string>());
  if (!to || !why || rule.scheme.empty() || formats::safetensors::find_dtype(*to) == nullptr) return false;
  rule.to = *to;
  rule.scale = json.value("scale", 1.0);
  rule.reason = {*why, json.value("number", std::uint64_t{0}), json.value("detail", "")};
  return std::isfinite(rule.scale);
}

bool read_rewriting(const nlohmann::json& json, RewritingRule& rule) {
  rule.scheme = json.at("was").get<std::string>();
  rule.beside_mxfp4 = json.at("beside_mxfp4").get<bool>();
  rule.zero_points = json.at("zero_points").get<bool>();
  for (const nlohmann::json& source : json.at("sources")) rule.sources.push_back(name_of(source));
  return read_writer(json, rule.writer) && read_choice(json.at("change"), ScaleChange::Kind::to_mxfp4, rule.change) &&
         read_choice(json.at("input_scale"), GlobalScale::divisor, rule.input_scale);
}

bool read_new_scheme(const nlohmann::json& json, QuantizingRule& rule) {
  if (!read_writer(json, rule.writer)) return false;
  rule.rotation = json.at("rotation").get<std::int64_t>();
  rule.beside_mxfp4 = json.at("beside_mxfp4").get<bool>();
  rule.dynamic_activations = json.value("dynamic_activations", false);
  return rule.rotation >= 0 && read_quantizing(json.at("quantizing"), rule.quantizing);
}

void append_fate(nlohmann::ordered_json& json, const DecodingRule& rule) {
  json["decoded"] = rule.scheme;
  json["to"] = name(rule.to);
  if (rule.scale != 1.0) json["scale"] = rule.scale;
  json["why"] = file_conversion::name(rule.reason.why);
  if (rule.reason.number != 0) json["number"] = rule.reason.number;
  if (!rule.reason.detail.empty()) json["detail"] = rule.reason.detail;
}

void append_fate(nlohmann::ordered_json& json, const RewritingRule& rule) {
  json["was"] = rule.scheme;
  json["spelling"] = rule.writer->name;
  json["change"] = static_cast<int>(rule.change);
  json["input_scale"] = static_cast<int>(rule.input_scale);
  json["beside_mxfp4"] = rule.beside_mxfp4;
  json["zero_points"] = rule.zero_points;
  nlohmann::ordered_json& sources = json["sources"] = nlohmann::ordered_json::array();
  for (const TensorName& source : rule.sources) sources.push_back(name_json(source));
}

void append_fate(nlohmann::ordered_json& json, const QuantizingRule& rule) {
  json["spelling"] = rule.writer->name;
  json["quantizing"] = quantizing_json(rule.quantizing);
  json["rotation"] = rule.rotation;
  json["beside_mxfp4"] = rule.beside_mxfp4;
  if (rule.dynamic_activations) json["dynamic_activations"] = true;
}

}  // namespace

TensorName TensorName::of(const std::string& tensor, std::string_view layer) {
  const std::string_view stem = stem_of(layer);
  const bool beside = tensor.starts_with(stem);
  return {.beside = beside, .text = beside ? tensor.substr(stem.size()) : tensor};
}

std::string TensorName::in(std::string_view layer) const { return beside ? std::string(stem_of(layer)) + text : text; }

nlohmann::ordered_json rule_json(const LayerRule& rule) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const PartRule& part : rule.parts) {
    parts.push_back({{"name", name_json(part.name)}, {"role", static_cast<int>(part.role)}, {"type", name(part.type)}});
  }
  nlohmann::ordered_json json = {{"layer", layer_json(rule.layer)}, {"parts", std::move(parts)}};
  std::visit([&](const auto& fate) { append_fate(json, fate); }, rule.fate);
  return json;
}

bool read_rule(const nlohmann::json& json, LayerRule& rule) {
  if (!read_layer(json.at("layer"), rule.layer)) return false;
  for (const nlohmann::json& entry : json.at("parts")) {
    PartRule& part = rule.parts.emplace_back();
    part.name = name_of(entry.at("name"));
    const Result<DType> type = parse_dtype(entry.at("type").get<std::string>());
    if (!type || formats::safetensors::find_dtype(*type) == nullptr) return false;
    if (!read_choice(entry.at("role"), PartRole::activations, part.role) || !is_read(part.role)) return false;
    part.type = *type;
  }
  if (rule.parts.empty() || rule.parts.front().role != PartRole::codes) return false;
  if (json.contains("decoded"))
    return rule.layer.is_quantized() && read_decoding(json, rule.fate.emplace<DecodingRule>());
  if (json.contains("quantizing")) return read_new_scheme(json, rule.fate.emplace<QuantizingRule>());
  return rule.layer.is_quantized() && read_rewriting(json, rule.fate.emplace<RewritingRule>());
}

}  // namespace tensorcast::checkpoint
