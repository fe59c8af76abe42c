// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/layer_rule.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/plan/decoded_layer.hpp"
#include "checkpoint/plan/option_json.hpp"
#include "dtype/lookup.hpp"
#include "formats/safetensors/safetensors_dtypes.hpp"
#include "options/quantize_options.hpp"
#include "quantized/names/module_name.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::checkpoint {
namespace {

using quantized::LayerContent;
using quantized::PartRole;
using quantized::ScaleChange;

constexpr std::uint64_t most_globals = std::uint64_t{1} << 23;

std::string_view stem_of(std::string_view layer) { return layer.substr(0, layer.rfind('.') + 1); }

nlohmann::ordered_json name_json(const TensorName& name) {
  return name.beside ? nlohmann::ordered_json(name.text) : nlohmann::ordered_json::array({name.text});
}

TensorName name_of(const nlohmann::json& json) {
  const bool beside = json.is_string();
  return {.beside = beside, .text = (beside ? json : json.at(0)).get<std::string>()};
}

nlohmann::ordered_json content_json(const LayerContent& content) {
  nlohmann::ordered_json json = {{"scheme", content.scheme},
                                 {"shape", content.shape},
                                 {"element", type_json(content.element)},
                                 {"bits", content.bits},
                                 {"block", {content.block_rows, content.block_columns}},
                                 {"scales", name(content.scales)},
                                 {"global", static_cast<int>(content.global)},
                                 {"globals", content.globals},
                                 {"input_scale", static_cast<int>(content.input_scale)},
                                 {"rotation", content.rotation},
                                 {"zero_points", content.zero_points},
                                 {"beside_mxfp4", content.beside_mxfp4}};
  if (content.exact_scales != DType::undefined) json["exact_scales"] = name(content.exact_scales);
  return json;
}

nlohmann::ordered_json quantizing_json(const quantized::Quantizing& quantizing) {
  nlohmann::ordered_json json = {
      {"scheme", quantizing.scheme}, {"recipe", quantizing.options.recipe}, {"numbers", name(quantizing.numbers)}};
  // Those that each plan has, then those that were asked for.
  for (const bool if_given : {false, true}) {
    options::for_each(options::quantize_options, [&](const auto& option) {
      if (option.planned_if_given == if_given) append_json(json, option, quantizing.options.*option.member);
    });
  }
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
  return options::all_of(options::quantize_options, [&](const auto& option) {
    return read_json(json, option, quantizing.options.*option.member);
  });
}

bool read_content(const nlohmann::json& json, LayerContent& content) {
  content.scheme = json.at("scheme").get<std::string>();
  content.shape = json.at("shape").get<std::vector<std::int64_t>>();
  content.bits = json.at("bits").get<int>();
  content.block_rows = json.at("block").at(0).get<std::int64_t>();
  content.block_columns = json.at("block").at(1).get<std::int64_t>();
  content.globals = json.at("globals").get<std::size_t>();
  content.rotation = json.at("rotation").get<std::int64_t>();
  content.zero_points = json.at("zero_points").get<bool>();
  content.beside_mxfp4 = json.at("beside_mxfp4").get<bool>();
  constexpr std::int64_t most_block = std::int64_t{1} << 31;
  const Result<std::size_t> count = element_count(content.shape);
  bool known = count && *count < (std::size_t{1} << 56) && content.shape.size() >= 2 && content.bits >= 1 &&
               content.bits <= 8 && content.block_rows >= 0 && content.block_rows < most_block &&
               content.block_columns >= 0 && content.block_columns < most_block &&
               (content.block_rows == 0) == (content.block_columns == 0) && content.globals < most_globals;
  known = known && read_type(json.at("scales"), content.scales);
  if (json.contains("exact_scales")) {
    known = known && read_type(json.at("exact_scales"), content.exact_scales) && content.scales == DType::float32 &&
            (content.exact_scales == DType::bfloat16 || content.exact_scales == DType::float16);
  }
  const bool number = content.scales == DType::float32 || content.scales == DType::float16 ||
                      content.scales == DType::bfloat16 || content.scales == DType::float8_e8m0fnu ||
                      content.scales == DType::float8_e4m3fn;
  known = known && number && read_type(json.at("element"), content.element) && contains(element_types, content.element);
  known = known && read_choice(json.at("global"), GlobalScale::divisor, content.global);
  return known && read_choice(json.at("input_scale"), GlobalScale::divisor, content.input_scale);
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
  if (!read_writer(json, rule.writer) || !read_content(json.at("content"), rule.content) ||
      !read_content(json.at("becomes"), rule.becomes) ||
      !read_choice(json.at("change"), ScaleChange::Kind::to_mxfp4, rule.change)) {
    return false;
  }
  rule.scheme = json.at("was").get<std::string>();
  for (const nlohmann::json& source : json.at("sources")) rule.sources.push_back(name_of(source));
  // What is read is what the layer was, perhaps with other scales.
  const LayerContent &content = rule.content, &becomes = rule.becomes;
  if (content.shape != becomes.shape || content.bits != becomes.bits) return false;
  const auto columns = content.grid_columns(), new_columns = becomes.grid_columns();
  switch (rule.change) {
    case ScaleChange::Kind::none:
      return columns == new_columns && content.grid_rows() == becomes.grid_rows() && content.scales == becomes.scales;
    case ScaleChange::Kind::to_nvfp4:
      return 2 * columns == new_columns && becomes.scales == DType::float8_e4m3fn;
    case ScaleChange::Kind::to_mxfp4:
      return columns == 2 * new_columns && becomes.scales == DType::float8_e8m0fnu;
  }
  return false;
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
  json["content"] = content_json(rule.content);
  json["becomes"] = content_json(rule.becomes);
  json["change"] = static_cast<int>(rule.change);
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
