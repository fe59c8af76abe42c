// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/decoded_layer.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "formats/safetensors/safetensors_dtypes.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::checkpoint {
namespace {

using quantized::Coding;
using quantized::PartRole;

bool is_read(PartRole role) {
  return role != PartRole::state && role != PartRole::activations && role != PartRole::table;
}

// Reads a number of a choice whose last is `last`; false: there is no such choice.
template <class Choice>
bool read_choice(const nlohmann::json& json, Choice last, Choice& choice) {
  const auto number = json.get<std::int64_t>();
  if (number < 0 || number > static_cast<std::int64_t>(last)) return false;
  choice = static_cast<Choice>(number);
  return true;
}

}  // namespace

std::uint64_t DecodedLayer::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const LayerPart& part : parts) sum += part.info.bytes;
  return sum;
}

DecodedLayer decoded_layer(const quantized::Layer& layer, std::span<const formats::TensorInfo> tensors,
                           std::span<const std::pair<std::size_t, std::uint64_t>> places) {
  DecodedLayer decoded{.layer = layer, .parts = {}};
  decoded.layer.parts.clear();
  for (const quantized::Part& part : layer.parts) {
    if (!is_read(part.role)) continue;
    decoded.layer.parts.push_back({.role = part.role, .tensor = decoded.parts.size()});
    decoded.parts.push_back(
        {.info = tensors[part.tensor], .input = places[part.tensor].first, .begin = places[part.tensor].second});
  }
  return decoded;
}

nlohmann::ordered_json layer_json(const DecodedLayer& decoded) {
  const quantized::Layer& layer = decoded.layer;
  const Coding& coding = layer.coding;
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < decoded.parts.size(); ++i) {
    const LayerPart& part = decoded.parts[i];
    parts.push_back({{"name", part.info.name},
                     {"role", static_cast<int>(layer.parts[i].role)},
                     {"input", part.input},
                     {"begin", part.begin},
                     {"type", name(part.info.dtype)},
                     {"shape", part.info.shape}});
  }
  return {{"scheme", layer.scheme},
          {"element", static_cast<int>(coding.element)},
          {"bits", coding.bits},
          {"packing", static_cast<int>(coding.packing)},
          {"signed", coding.is_signed},
          {"offset", coding.offset},
          {"zero_added", coding.zero_added},
          {"scales", static_cast<int>(coding.scales)},
          {"global", static_cast<int>(coding.global)},
          {"positive_zero", coding.positive_zero},
          {"swizzled", coding.swizzled},
          {"times_inverse_127", coding.times_inverse_127},
          {"transposed", coding.transposed},
          {"rotation", coding.rotation},
          {"block", {layer.block_rows, layer.block_columns}},
          {"nested", {layer.nested_block, layer.nested_offset}},
          {"parts", std::move(parts)}};
}

std::shared_ptr<DecodedLayer> layer_from_json(const nlohmann::json& json) {
  constexpr std::int64_t most_offset = 255;
  auto decoded = std::make_shared<DecodedLayer>();
  quantized::Layer& layer = decoded->layer;
  Coding& coding = layer.coding;
  layer.scheme = json.at("scheme").get<std::string>();
  coding.bits = json.at("bits").get<int>();
  coding.is_signed = json.at("signed").get<bool>();
  coding.offset = json.at("offset").get<int>();
  coding.zero_added = json.at("zero_added").get<int>();
  coding.positive_zero = json.at("positive_zero").get<bool>();
  coding.swizzled = json.at("swizzled").get<bool>();
  coding.times_inverse_127 = json.at("times_inverse_127").get<bool>();
  coding.transposed = json.at("transposed").get<bool>();
  coding.rotation = json.at("rotation").get<std::int64_t>();
  bool known = coding.bits >= 1 && coding.bits <= 8 && coding.offset >= 0 && coding.offset <= most_offset &&
               coding.zero_added >= 0 && coding.zero_added <= 1;
  known = known && read_choice(json.at("element"), quantized::Element::table, coding.element);
  known = known && read_choice(json.at("packing"), quantized::Packing::numbers, coding.packing);
  known = known && read_choice(json.at("scales"), quantized::ScaleType::e4m3, coding.scales);
  known = known && read_choice(json.at("global"), quantized::GlobalScale::divisor, coding.global);
  layer.block_rows = json.at("block").at(0).get<std::int64_t>();
  layer.block_columns = json.at("block").at(1).get<std::int64_t>();
  layer.nested_block = json.at("nested").at(0).get<std::int64_t>();
  layer.nested_offset = json.at("nested").at(1).get<float>();
  known = known && layer.block_rows >= 0 && layer.block_columns >= 0 && coding.rotation >= 0;
  for (const nlohmann::json& entry : json.at("parts")) {
    LayerPart part;
    PartRole role = PartRole::state;
    known = known && read_choice(entry.at("role"), PartRole::activations, role) && is_read(role);
    part.info.name = entry.at("name").get<std::string>();
    part.input = entry.at("input").get<std::size_t>();
    part.begin = entry.at("begin").get<std::uint64_t>();
    const Result<DType> dtype = parse_dtype(entry.at("type").get<std::string>());
    known = known && dtype && formats::safetensors::find_dtype(*dtype) != nullptr;
    for (const nlohmann::json& size : entry.at("shape")) part.info.shape.push_back(size.get<std::int64_t>());
    const Result<std::size_t> count = element_count(part.info.shape);
    if (!known || !count) return nullptr;
    part.info.dtype = *dtype;
    part.info.count = *count;
    part.info.bytes = storage_bytes(*dtype, *count);
    if (part.info.bytes == SIZE_MAX) return nullptr;
    layer.parts.push_back({.role = role, .tensor = decoded->parts.size()});
    decoded->parts.push_back(std::move(part));
  }
  known = known && !layer.parts.empty() && layer.parts.front().role == PartRole::codes;
  return known ? decoded : nullptr;
}

}  // namespace tensorcast::checkpoint
