// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/decoded_layer.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "formats/safetensors/safetensors_dtypes.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::checkpoint {

using quantized::Coding;
using quantized::PartRole;

bool is_read(PartRole role) noexcept {
  return role != PartRole::state && role != PartRole::activations && role != PartRole::table;
}

std::uint64_t DecodedLayer::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const LayerPart& part : parts) sum += part.info.bytes;
  return sum;
}

nlohmann::ordered_json layer_json(const quantized::Layer& layer) {
  const Coding& coding = layer.coding;
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
          {"scales_down", coding.scales_down},
          {"times_inverse_127", coding.times_inverse_127},
          {"transposed", coding.transposed},
          {"rotation", coding.rotation},
          {"block", {layer.block_rows, layer.block_columns}},
          {"nested", layer.nested_block}};
}

bool read_layer(const nlohmann::json& json, quantized::Layer& layer) {
  constexpr std::int64_t most_offset = 255;
  Coding& coding = layer.coding;
  layer.scheme = json.at("scheme").get<std::string>();
  coding.bits = json.at("bits").get<int>();
  coding.is_signed = json.at("signed").get<bool>();
  coding.offset = json.at("offset").get<int>();
  coding.zero_added = json.at("zero_added").get<int>();
  coding.positive_zero = json.at("positive_zero").get<bool>();
  coding.swizzled = json.at("swizzled").get<bool>();
  coding.scales_down = json.at("scales_down").get<bool>();
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
  layer.nested_block = json.at("nested").get<std::int64_t>();
  return known && layer.block_rows >= 0 && layer.block_columns >= 0 && coding.rotation >= 0;
}

}  // namespace tensorcast::checkpoint
