// SPDX-License-Identifier: Apache-2.0
// MXFP8 as transformers and MiniMax write it: weight, weight_scale_inv of E8M0 bytes, 32 along the inputs.
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/stored_scheme.hpp"

namespace tensorcast::quantized {
namespace {

constexpr StoredScheme stored_mxfp8 = {
    .scheme = "mxfp8", .coding = mx_coding(DType::float8_e4m3fn, 8), .scales = "weight_scale_inv"};

void find_transformers_mxfp8(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  constexpr std::string_view suffix = "_scale_inv";
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    const std::string& name = tensors[i].name;
    if (!name.ends_with(suffix)) continue;
    const std::optional<std::size_t> codes = tensors.find(name.substr(0, name.size() - suffix.size()));
    if (!codes) continue;
    LayerBuilder builder(tensors, "transformers-mxfp8", tensors[*codes].name, *codes, i);
    const auto sizes = description->section.find("weight_block_size");
    if (sizes != description->section.end() && !sizes->is_null() && *sizes != Json::array({1, stored_mxfp8.block()})) {
      builder.fail(description->source + " names MXFP8 with another block size than [1, 32]");
    }
    read_as(stored_mxfp8, builder);
    builder.check_scales(i, true, description->source);
    layers.push_back(std::move(builder).done());
  }
}

void spell_transformers_mxfp8(const LayerContent& content, WrittenLayer& written) {
  const StoredScheme* const stored = find_stored({&stored_mxfp8, 1}, content);
  if (stored == nullptr) return refuse_scheme(content, written, stored_mxfp8.scheme);
  spell_as(*stored, content, written);
}

void describe_transformers_mxfp8(const WrittenModel& model, WrittenConfig& config) {
  const Json section = {{"quant_method", "mxfp8"},
                        {"activation_scheme", "dynamic"},
                        {"weight_block_size", {1, stored_mxfp8.block()}},
                        {"scale_fmt", "ue8m0"},  // else transformers takes the bytes of scales for numbers
                        {"modules_to_not_convert", model.unquantized}};
  config.section = section.dump();
}

}  // namespace

// Its configuration has the keys of DeepSeek's.
const Spelling layouts::transformers_mxfp8 = {
    .name = "transformers-mxfp8",
    .methods = {{.name = "mxfp8", .list = "modules_to_not_convert", .list_is_open = true, .rest_is_quantized = true}},
    .keys = layouts::deepseek.keys,
    .find = find_transformers_mxfp8,
    .spell = spell_transformers_mxfp8,
    .describe = describe_transformers_mxfp8,
    .activations = DynamicActivations::always,
    .activations_schemes = "mxfp8",
};

}  // namespace tensorcast::quantized
