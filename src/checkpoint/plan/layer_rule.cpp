// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/layer_rule.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "convert/plan/conversion_json.hpp"
#include "dtype/lookup.hpp"
#include "formats/safetensors/safetensors_dtypes.hpp"
#include "kernels/gguf_low_bits.hpp"

namespace tensorcast::checkpoint {
namespace {

using quantized::PartRole;
using quantized::ScaleChange;

std::string_view stem_of(std::string_view layer) { return layer.substr(0, layer.rfind('.') + 1); }

nlohmann::ordered_json name_json(const TensorName& name) {
  return name.beside ? nlohmann::ordered_json(name.text) : nlohmann::ordered_json::array({name.text});
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

// Calls `visit` for each member that the plan's text has, with its key.
template <class Of, class Visit>
void visit_members(Of& of, const Visit& visit) {
  using Kind = std::remove_const_t<Of>;
  if constexpr (std::is_same_v<Kind, quantized::Layer>) {
    auto& coding = of.coding;
    auto& deviations = of.deviations;
    visit("scheme", of.scheme);
    visit("element", coding.element);
    visit("bits", coding.bits);
    visit("packing", coding.packing);
    visit("offset", coding.offset);
    visit("zero_added", coding.zero_added);
    visit("scales", coding.scale);
    visit("global", coding.global);
    visit("positive_zero", coding.positive_zero);
    visit("swizzled", coding.swizzled);
    visit("factor", coding.factor);
    visit("transposed", coding.transposed);
    visit("gguf", coding.gguf);
    visit("is_plain", deviations.is_plain);
    visit("has_whole_codes", deviations.has_whole_codes);
    visit("integer_bits", deviations.integer_bits);
    visit("is_grid_transposed", deviations.is_grid_transposed);
    visit("rotation", deviations.rotation);
    visit("block_rows", of.block_rows);
    visit("block_columns", of.block_columns);
    visit("nested", of.nested_block);
  } else if constexpr (std::is_same_v<Kind, PartRule>) {
    visit("name", of.name);
    visit("role", of.role);
    visit("type", of.type);
  } else if constexpr (std::is_same_v<Kind, DecodingRule>) {
    visit("decoded", of.scheme);
    visit("to", of.to);
    visit("scale", of.scale);
    visit("why", of.reason.why);
    visit("number", of.reason.number);
    visit("detail", of.reason.detail);
  } else if constexpr (std::is_same_v<Kind, RewritingRule>) {
    visit("was", of.scheme);
    visit("spelling", of.writer);
    visit("change", of.change);
    visit("input_scale", of.input_scale);
    visit("beside_mxfp4", of.beside_mxfp4);
    visit("zero_points", of.zero_points);
  } else {
    static_assert(std::is_same_v<Kind, QuantizingRule>);
    visit("spelling", of.writer);
    visit("quantizing", of.quantizing);
    visit("rotation", of.rotation);
    visit("beside_mxfp4", of.beside_mxfp4);
    visit("dynamic_activations", of.dynamic_activations);
  }
}

template <class Value>
nlohmann::ordered_json value_json(const Value& value) {
  if constexpr (std::is_same_v<Value, DType>) {
    return value == DType::undefined ? "" : name(value);
  } else if constexpr (std::is_same_v<Value, TypeReason>) {
    return tensorcast::name(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return static_cast<int>(value);
  } else if constexpr (std::is_same_v<Value, TensorName>) {
    return name_json(value);
  } else if constexpr (std::is_same_v<Value, const quantized::Spelling*>) {
    return value->name;
  } else if constexpr (std::is_same_v<Value, quantized::Quantizing>) {
    return quantizing_json(value);
  } else {
    return value;
  }
}

template <class Of>
void append_members(nlohmann::ordered_json& json, const Of& of) {
  visit_members(of, [&](const char* key, const auto& value) { json[key] = value_json(value); });
}

constexpr BlockPacking last_choice(BlockPacking /*of*/) { return BlockPacking::gguf; }
constexpr GgufBlock last_choice(GgufBlock /*of*/) { return kernels::last_gguf_block; }
constexpr GlobalScale last_choice(GlobalScale /*of*/) { return GlobalScale::divisor; }
constexpr PartRole last_choice(PartRole /*of*/) { return PartRole::activations; }
constexpr ScaleChange::Kind last_choice(ScaleChange::Kind /*of*/) { return ScaleChange::Kind::to_mxfp4; }

// Return false if there is no such value.
template <class Value>
bool read_value(const nlohmann::json& json, Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    const auto number = json.get<std::int64_t>();
    if (number < 0 || number > static_cast<std::int64_t>(last_choice(value))) return false;
    value = static_cast<Value>(number);
  } else {
    value = json.get<Value>();
  }
  return true;
}
bool read_value(const nlohmann::json& json, DType& type) {
  const auto text = json.get<std::string>();
  const Result<DType> parsed = text.empty() ? DType::undefined : parse_dtype(text);
  if (parsed) type = *parsed;
  return parsed.ok();
}
bool read_value(const nlohmann::json& json, TypeReason& why) {
  const std::optional<TypeReason> parsed = file_conversion::parse_reason(json.get<std::string>());
  if (parsed) why = *parsed;
  return parsed.has_value();
}
bool read_value(const nlohmann::json& json, TensorName& name) {
  name.beside = json.is_string();
  name.text = (name.beside ? json : json.at(0)).get<std::string>();
  return true;
}
bool read_value(const nlohmann::json& json, const quantized::Spelling*& writer) {
  writer = quantized::find_writer(json.get<std::string>());
  return writer != nullptr;
}
bool read_value(const nlohmann::json& json, quantized::Quantizing& quantizing) {
  return read_quantizing(json, quantizing);
}

template <class Of>
bool read_members(const nlohmann::json& json, Of& of) {
  bool known = true;
  visit_members(of, [&](const char* key, auto& value) { known = read_value(json.at(key), value) && known; });
  return known;
}

bool read_layer(const nlohmann::json& json, quantized::Layer& layer) {
  constexpr std::int64_t most_offset = 255;
  constexpr DType element_types[] = {DType::undefined,     DType::int8,         DType::uint8,
                                     DType::float8_e4m3fn, DType::float8_e5m2,  DType::float6_e2m3fn,
                                     DType::float6_e3m2fn, DType::float4_e2m1fn};
  constexpr DType scale_types[] = {DType::undefined, DType::float8_e8m0fnu, DType::float8_e4m3fn};
  const BlockCoding& coding = layer.coding;
  return read_members(json, layer) && contains(element_types, coding.element) && contains(scale_types, coding.scale) &&
         coding.bits >= 1 && coding.bits <= 8 && (coding.factor == 1.0F || coding.factor == quantized::inverse_127) &&
         coding.offset >= 0 && coding.offset <= most_offset && coding.zero_added >= 0 && coding.zero_added <= 1 &&
         layer.block_rows >= 0 && layer.block_columns >= 0 && layer.deviations.rotation >= 0 &&
         layer.deviations.integer_bits >= 0 && layer.deviations.integer_bits <= 8;
}

bool is_stored(DType type) { return formats::safetensors::find_dtype(type) != nullptr; }

bool is_sound_rule(const DecodingRule& rule) {
  return !rule.scheme.empty() && is_stored(rule.to) && std::isfinite(rule.scale);
}
bool is_sound_rule(const RewritingRule& /*rule*/) { return true; }
bool is_sound_rule(const QuantizingRule& rule) { return rule.rotation >= 0; }

template <class Rule>
bool read_fate(const nlohmann::json& json, LayerRule& rule) {
  auto& fate = rule.fate.emplace<Rule>();
  return read_members(json, fate) && is_sound_rule(fate);
}

}  // namespace

TensorName TensorName::of(const std::string& tensor, std::string_view layer) {
  const std::string_view stem = stem_of(layer);
  const bool beside = tensor.starts_with(stem);
  return {.beside = beside, .text = beside ? tensor.substr(stem.size()) : tensor};
}

std::string TensorName::in(std::string_view layer) const { return beside ? std::string(stem_of(layer)) + text : text; }

nlohmann::ordered_json rule_json(const LayerRule& rule) {
  nlohmann::ordered_json json = {{"layer", nlohmann::ordered_json::object()},
                                 {"parts", nlohmann::ordered_json::array()}};
  append_members(json["layer"], rule.layer);
  for (const PartRule& part : rule.parts) append_members(json["parts"].emplace_back(), part);
  std::visit([&](const auto& fate) { append_members(json, fate); }, rule.fate);
  return json;
}

bool read_rule(const nlohmann::json& json, LayerRule& rule) {
  if (!read_layer(json.at("layer"), rule.layer)) return false;
  for (const nlohmann::json& entry : json.at("parts")) {
    PartRule& part = rule.parts.emplace_back();
    if (!read_members(entry, part) || !is_stored(part.type)) return false;
  }
  if (rule.parts.empty() || rule.parts.front().role != PartRole::codes) return false;
  if (json.contains("quantizing")) return read_fate<QuantizingRule>(json, rule);
  if (!rule.layer.is_quantized()) return false;
  return json.contains("decoded") ? read_fate<DecodingRule>(json, rule) : read_fate<RewritingRule>(json, rule);
}

}  // namespace tensorcast::checkpoint
