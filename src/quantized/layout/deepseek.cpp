// SPDX-License-Identifier: Apache-2.0
// DeepSeek's float8: weight, weight_scale_inv; of V4 also scale, and experts of MXFP4. The scale multiplies in spite of
// the name "inv".
#include <fmt/format.h>

#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::quantized {
namespace {

constexpr auto keys_of_deepseek =
    std::to_array<KnownKey>({{.name = "fmt", .type = KeyType::text, .decides = true},
                             {.name = "weight_block_size", .decides = true},
                             {.name = "scale_fmt", .type = KeyType::text},
                             {.name = "activation_scheme", .type = KeyType::text},
                             {.name = "expert_dtype", .type = KeyType::text},
                             {.name = "is_checkpoint_fp8_serialized", .type = KeyType::flag},
                             {.name = "modules_to_convert", .type = KeyType::list}});
constexpr std::string_view inverse_suffix = "_scale_inv";
constexpr std::int64_t mx_block = 32;

// Reads weight_block_size; none: one scale for a tensor.
void read_block_size(const Description& description, LayerBuilder& builder) {
  const auto found = description.section.find("weight_block_size");
  if (found == description.section.end() || found->is_null()) return;
  Layer& layer = builder.layer();
  layer.block_rows = layer.block_columns = not_a_size;
  if (!found->is_array() || found->size() != 2) return;
  const Json sizes = {{"rows", (*found)[0]}, {"columns", (*found)[1]}};
  layer.block_rows = size_in(sizes, "rows").value_or(not_a_size);
  layer.block_columns = size_in(sizes, "columns").value_or(not_a_size);
}

void add_layer(const ModelTensors& tensors, const Description& description, std::size_t codes, std::size_t scales,
               std::vector<Layer>& layers) {
  LayerBuilder builder(tensors, "deepseek", tensors[codes].name, codes);
  Layer& layer = builder.layer();
  layer.parts.push_back({.role = PartRole::scales, .tensor = scales});
  const std::string& name = tensors[codes].name;
  if (const std::optional<std::string> module = module_with(name, "weight")) add_activations(builder, *module);
  const DType type = tensors[codes].dtype;
  if (type == DType::int8 || type == DType::uint8 || type == DType::float4_e2m1fn) {
    layer.scheme = "mxfp4";
    layer.block_rows = 1;
    layer.block_columns = mx_block;
    layer.coding = {
        .element = Element::e2m1, .bits = 4, .packing = Packing::low_nibble_first, .scales = ScaleType::e8m0};
    builder.set_shape(1, type == DType::float4_e2m1fn ? 1 : 2);
    builder.check_scales(scales, true, "MXFP4");
  } else {
    read_block_size(description, builder);
    layer.scheme = layer.block_rows == 0 ? "fp8-tensor" : "fp8-block";
    layer.coding = {.element = Element::e4m3};
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

void find_deepseek(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    const std::string& name = tensors[i].name;
    std::optional<std::size_t> codes;
    if (name.ends_with(inverse_suffix)) {
      codes = tensors.find(name.substr(0, name.size() - inverse_suffix.size()));
    } else if (const std::optional<std::string> scaled = module_with(name, "weight_scale")) {  // AutoFP8's
      codes = tensors.find(tensor_of(*scaled, "weight"));
    } else if (const std::optional<std::string> module = module_with(name, "scale");
               module && (tensors[i].dtype == DType::float8_e8m0fnu || tensors[i].dtype == DType::float32)) {
      codes = tensors.find(tensor_of(*module, "weight"));
      // The scale of a norm is beside no codes.
      if (codes && bit_width(tensors[*codes].dtype) > 8) codes.reset();
    }
    if (codes) add_layer(tensors, *description, *codes, i, layers);
  }
}

}  // namespace

constinit const Spelling layouts::deepseek = {
    .name = "deepseek", .methods = {"fp8"}, .keys = keys_of_deepseek, .find = find_deepseek};

}  // namespace tensorcast::quantized
