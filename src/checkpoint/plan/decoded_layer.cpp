// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/decoded_layer.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "dtype/lookup.hpp"
#include "formats/safetensors/safetensors_dtypes.hpp"
#include "kernels/gguf_low_bits.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::checkpoint {

using quantized::PartRole;

namespace {

// Calls `visit` for each member of a coding, with its key.
template <class Layer, class Visit>
void visit_members(Layer& layer, const Visit& visit) {
  auto& coding = layer.coding;
  auto& deviations = layer.deviations;
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
}

template <class Value>
nlohmann::ordered_json value_json(Value value) {
  if constexpr (std::is_same_v<Value, DType>) {
    return value == DType::undefined ? "" : name(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return static_cast<int>(value);
  } else {
    return value;
  }
}

template <class Value>
bool read_value(const nlohmann::json& json, Value& value) {
  value = json.get<Value>();
  return true;
}
bool read_value(const nlohmann::json& json, DType& type) {
  const auto text = json.get<std::string>();
  const Result<DType> parsed = text.empty() ? DType::undefined : parse_dtype(text);
  if (parsed) type = *parsed;
  return parsed.ok();
}
bool read_value(const nlohmann::json& json, BlockPacking& packing) {
  return read_choice(json, BlockPacking::gguf, packing);
}
bool read_value(const nlohmann::json& json, GgufBlock& block) {
  return read_choice(json, kernels::last_gguf_block, block);
}
bool read_value(const nlohmann::json& json, GlobalScale& global) {
  return read_choice(json, GlobalScale::divisor, global);
}

}  // namespace

bool is_read(PartRole role) noexcept {
  return role != PartRole::state && role != PartRole::activations && role != PartRole::table;
}

std::uint64_t DecodedLayer::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const LayerPart& part : parts) sum += part.info.bytes;
  return sum;
}

nlohmann::ordered_json layer_json(const quantized::Layer& layer) {
  nlohmann::ordered_json json = {{"scheme", layer.scheme}};
  visit_members(layer, [&](const char* key, const auto& value) { json[key] = value_json(value); });
  json["block"] = {layer.block_rows, layer.block_columns};
  json["nested"] = layer.nested_block;
  return json;
}

bool read_layer(const nlohmann::json& json, quantized::Layer& layer) {
  constexpr std::int64_t most_offset = 255;
  constexpr DType element_types[] = {DType::undefined,     DType::int8,         DType::uint8,
                                     DType::float8_e4m3fn, DType::float8_e5m2,  DType::float6_e2m3fn,
                                     DType::float6_e3m2fn, DType::float4_e2m1fn};
  constexpr DType scale_types[] = {DType::undefined, DType::float8_e8m0fnu, DType::float8_e4m3fn};
  const BlockCoding& coding = layer.coding;
  bool known = true;
  visit_members(layer, [&](const char* key, auto& value) { known = read_value(json.at(key), value) && known; });
  layer.scheme = json.at("scheme").get<std::string>();
  layer.block_rows = json.at("block").at(0).get<std::int64_t>();
  layer.block_columns = json.at("block").at(1).get<std::int64_t>();
  layer.nested_block = json.at("nested").get<std::int64_t>();
  return known && contains(element_types, coding.element) && contains(scale_types, coding.scale) && coding.bits >= 1 &&
         coding.bits <= 8 && (coding.factor == 1.0F || coding.factor == quantized::inverse_127) && coding.offset >= 0 &&
         coding.offset <= most_offset && coding.zero_added >= 0 && coding.zero_added <= 1 && layer.block_rows >= 0 &&
         layer.block_columns >= 0 && layer.deviations.rotation >= 0 && layer.deviations.integer_bits >= 0 &&
         layer.deviations.integer_bits <= 8;
}

}  // namespace tensorcast::checkpoint
