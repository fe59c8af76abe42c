// SPDX-License-Identifier: Apache-2.0
// Mistral's own folders: consolidated.safetensors with weight and qscale_weight, one scale a tensor; params.json.
#include <fmt/format.h>

#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::quantized {
namespace {

constexpr auto keys_of_mistral =
    joined(deciding_keys<"qformat_weight">(KeyType::text), keys_of<"qscheme_act">(KeyType::text));

void find_mistral(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  const std::string format = text_in(description->section, "qformat_weight");
  for (const auto& [i, codes, module] : tensors.scaled_modules("qscale_weight")) {
    LayerBuilder builder(tensors, "mistral", tensor_of(module, "weight"), codes, i);
    Layer& layer = builder.layer();
    layer.scheme = "fp8-tensor";
    layer.coding = {.element = DType::float8_e4m3fn};
    if (format != "fp8_e4m3") {
      builder.fail(
          fmt::format("{} names the format \"{}\", and fp8_e4m3 alone is decoded", description->source, format));
    }
    builder.need_codes_of({DType::float8_e4m3fn});
    builder.set_shape(1, 1);
    builder.check_scales(i, false, description->source);
    add_activations(builder, module);
    layers.push_back(std::move(builder).done());
  }
}

}  // namespace

constinit const Spelling layouts::mistral = {
    .name = "mistral", .methods = {{.name = "mistral"}}, .keys = keys_of_mistral, .find = find_mistral};

}  // namespace tensorcast::quantized
