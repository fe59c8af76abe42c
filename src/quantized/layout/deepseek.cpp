// SPDX-License-Identifier: Apache-2.0
// DeepSeek's float8: weight, weight_scale_inv; of V4 also scale, and experts of MXFP4. The scale multiplies in spite of
// the name "inv".
#include <fmt/format.h>

#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/stored_scheme.hpp"

namespace tensorcast::quantized {
namespace {

constexpr auto keys_of_deepseek =
    joined(deciding_keys<"fmt">(KeyType::text), deciding_keys<"weight_block_size">(KeyType::any),
           keys_of<"activation_scheme">(KeyType::text), keys_with_only<"scale_fmt">(KeyType::text, "ue8m0 e8m0 float"),
           keys_with_only<"expert_dtype">(KeyType::text, "fp4 mxfp4 fp8"),
           keys_with_only<"is_checkpoint_fp8_serialized">(KeyType::flag, "true"),
           keys_of<"modules_to_convert">(KeyType::list));
constexpr StoredScheme stored_by_deepseek[] = {{.scheme = "fp8-block", .scales = "weight_scale_inv"},
                                               {.scheme = "fp8-tensor", .scales = "weight_scale_inv"},
                                               {.scheme = "mxfp4",
                                                .coding = mx_coding(DType::float4_e2m1fn, 4),
                                                .packed_type = DType::int8,
                                                .scales = "scale",
                                                .e8m0_type = DType::float8_e8m0fnu}};
constexpr const StoredScheme& mxfp4_of_deepseek = stored_by_deepseek[2];
constexpr std::string_view inverse_suffix = "_scale_inv";

// Reads weight_block_size; none: one scale for a tensor.
void read_block_size(const Description& description, LayerBuilder& builder) {
  const auto found = description.section.find("weight_block_size");
  if (found == description.section.end() || found->is_null()) return;
  builder.set_blocks(sizes_in(description.section, "weight_block_size"), not_a_size);
}

void add_deepseek_layer(const ModelTensors& tensors, const Description& description, std::size_t codes,
                        std::size_t scales, std::vector<Layer>& layers) {
  LayerBuilder builder(tensors, "deepseek", tensors[codes].name, codes, scales);
  Layer& layer = builder.layer();
  const std::string& name = tensors[codes].name;
  if (const std::optional<std::string> module = module_with(name, "weight")) add_activations(builder, *module);
  const DType type = tensors[codes].dtype;
  if (type == DType::int8 || type == DType::uint8 || type == DType::float4_e2m1fn) {
    layer.scheme = mxfp4_of_deepseek.scheme;
    layer.block_rows = 1;
    layer.block_columns = mxfp4_of_deepseek.block();
    layer.coding = mxfp4_of_deepseek.coding;
    builder.set_shape(1, type == DType::float4_e2m1fn ? 1 : 2);
    builder.check_scales(scales, true, "MXFP4");
  } else {
    read_block_size(description, builder);
    layer.scheme = layer.block_rows == 0 ? "fp8-tensor" : "fp8-block";
    layer.coding = {.element = DType::float8_e4m3fn};
    builder.need_codes_of({DType::float8_e4m3fn});
    const std::string fmt = text_in(description.section, "fmt");
    if (!fmt.empty() && fmt != "e4m3") {
      builder.fail(fmt::format("{} names the format \"{}\", and the codes are float8_e4m3fn", description.source, fmt));
    }
    builder.set_shape(1, 1);
    builder.check_scales(scales, true, description.source);
  }
  layers.push_back(std::move(builder).done());
}

// The codes that tensor `scales` is beside, if its name says that it has scales.
std::optional<std::size_t> find_codes(const ModelTensors& tensors, std::size_t scales) {
  const std::string& name = tensors[scales].name;
  if (name.ends_with(inverse_suffix)) return tensors.find(name.substr(0, name.size() - inverse_suffix.size()));
  for (const std::string_view word : {"weight_scale", "qscale_weight"}) {  // AutoFP8's, Mistral's
    if (const auto module = module_with(name, word)) return tensors.find(tensor_of(*module, "weight"));
  }
  const DType type = tensors[scales].dtype;
  if (type != DType::float8_e8m0fnu && type != DType::float32) return std::nullopt;
  const std::optional<std::string> module = module_with(name, "scale");
  if (!module) return std::nullopt;
  const std::optional<std::size_t> codes = tensors.find(tensor_of(*module, "weight"));
  if (!codes || bit_width(tensors[*codes].dtype) > 8) return std::nullopt;  // the scale of a norm is beside no codes
  return codes;
}

void find_deepseek(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    if (const std::optional<std::size_t> codes = find_codes(tensors, i)) {
      add_deepseek_layer(tensors, *description, *codes, i, layers);
    }
  }
}

void spell_deepseek(const LayerContent& content, WrittenLayer& written) {
  const StoredScheme* const stored = find_stored(stored_by_deepseek, content);
  if (stored == nullptr) return refuse_scheme(content, written, "fp8-block, fp8-tensor and mxfp4");
  StoredScheme row = *stored;
  if (content.beside_mxfp4) row.scales = mxfp4_of_deepseek.scales;
  spell_as(row, content, written);
  if (row.coding.bits == 8) add_input_scale(content, written);
}

void describe_deepseek(const WrittenModel& model, WrittenConfig& config) {
  Json section = {{"quant_method", "fp8"}, {"fmt", "e4m3"}};
  const Layer* block = nullptr;
  bool only_tensors = true, has_inputs = true;
  for (const Layer& layer : model.layers) {
    if (layer.coding.bits == 8 && layer.block_rows != 0 && block == nullptr) block = &layer;
    only_tensors = only_tensors && layer.block_rows == 0;
    has_inputs = has_inputs && layer.find(PartRole::activations);
  }
  constexpr std::int64_t usual = 128;
  const std::int64_t rows = block == nullptr ? usual : block->block_rows;
  const std::int64_t columns = block == nullptr ? usual : block->block_columns;
  // Without the key transformers takes blocks of 128 x 128.
  section["weight_block_size"] = only_tensors ? Json(nullptr) : Json{rows, columns};
  section["activation_scheme"] = only_tensors && has_inputs ? "static" : "dynamic";
  if (!model.scale_format.empty()) section["scale_fmt"] = model.scale_format;
  section["modules_to_not_convert"] = model.unquantized;
  config.section = section.dump();
}

}  // namespace

constinit const Spelling layouts::deepseek = {
    .name = "deepseek",
    .methods = {{.name = "fp8", .list = "modules_to_not_convert", .list_is_open = true, .rest_is_quantized = true}},
    .keys = keys_of_deepseek,
    .find = find_deepseek,
    .spell = spell_deepseek,
    .describe = describe_deepseek,
    .activations = DynamicActivations::always,
    .activations_schemes = "fp8-tensor fp8-block mxfp4",
};

}  // namespace tensorcast::quantized
