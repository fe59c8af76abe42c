// SPDX-License-Identifier: Apache-2.0
// Writes what ComfyUI loads: a description of each layer in the metadata, swizzled scales.
#include <fmt/format.h>

#include "block/scale_tiles.hpp"
#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::string_view key = "_quantization_metadata";

// Scales in tiles of 128 x 4, as a matrix of whole tiles.
void add_swizzled(const LayerContent& content, WrittenLayer& written, DType dtype) {
  constexpr std::int64_t tile_rows = block::tile_rows, tile_columns = block::tile_columns;
  std::vector<std::int64_t> shape = grid_shape(content);
  if (shape.size() != 2 && written.ok()) {
    written.refusal =
        fmt::format("ComfyUI's scales in tiles are of matrices, and the weight is {}", shape_text(content.shape));
    return;
  }
  shape[0] = blocks_of(shape[0], tile_rows) * tile_rows;
  shape[1] = blocks_of(shape[1], tile_columns) * tile_columns;
  written.layer.coding.swizzled = true;
  add_tensor(written, PartRole::scales, tensor_of(module_of(content.name), "weight_scale"), dtype, std::move(shape));
}

void add_plain_scales(const LayerContent& content, WrittenLayer& written) {
  const bool whole = content.block_rows == 0;
  add_tensor(written, PartRole::scales, tensor_of(module_of(content.name), "weight_scale"), content.scales,
             whole ? std::vector<std::int64_t>() : grid_shape(content));
}

std::string_view format_of(const Layer& layer) {
  if (layer.scheme == "nvfp4") return "nvfp4";
  if (layer.scheme == "mxfp8") return "mxfp8";
  if (layer.coding.element == Element::integer) return "int8_tensorwise";
  return layer.coding.element == Element::e5m2 ? "float8_e5m2" : "float8_e4m3fn";
}

}  // namespace

void spell_comfyui(const LayerContent& content, WrittenLayer& written) {
  const std::string module = module_of(content.name);
  const std::string weight = tensor_of(module, "weight");
  const bool number = content.scales != DType::float8_e8m0fnu && content.scales != DType::float8_e4m3fn;
  written.layer.name = weight;
  if (content.scheme == "nvfp4") {
    need_whole_groups(content, 16, written);
    written.layer.coding.packing = Packing::high_nibble_first;
    written.layer.coding.global = GlobalScale::factor;
    add_tensor(written, PartRole::codes, weight, DType::uint8, packed_shape(content, 2, 1));
    add_swizzled(content, written, DType::float8_e4m3fn);
    add_tensor(written, PartRole::global_scale, tensor_of(module, "weight_scale_2"), DType::float32, {});
  } else if (content.scheme == "mxfp8" && content.element == Element::e4m3) {
    need_whole_groups(content, 32, written);
    add_tensor(written, PartRole::codes, weight, DType::float8_e4m3fn, content.shape);
    add_swizzled(content, written, DType::float8_e8m0fnu);
  } else if (content.scheme == "fp8-tensor" && number) {
    const DType type = content.element == Element::e5m2 ? DType::float8_e5m2 : DType::float8_e4m3fn;
    add_tensor(written, PartRole::codes, weight, type, content.shape);
    add_plain_scales(content, written);
  } else if ((content.scheme == "int8-tensor" || content.scheme == "int8-channel") && !content.zero_points && number) {
    add_tensor(written, PartRole::codes, weight, DType::int8, content.shape);
    add_plain_scales(content, written);
  } else {
    return refuse_scheme(content, written, "fp8-tensor, mxfp8, nvfp4 and symmetric int8");
  }
  if (content.input_scale != GlobalScale::none) {
    add_tensor(written, PartRole::activations, tensor_of(module, "input_scale"), DType::float32, {});
  }
}

void describe_comfyui(const WrittenModel& model, WrittenConfig& config) {
  Json layers = Json::object();
  for (const Layer& written : model.layers) {
    Json& layer = layers[module_of(written.name)] = {{"format", format_of(written)}};
    if (written.coding.rotation == 0) continue;
    layer["convrot"] = true;
    layer["convrot_groupsize"] = written.coding.rotation;
  }
  config.metadata_key = key;
  config.metadata_text = Json{{"format_version", "1.0"}, {"layers", std::move(layers)}}.dump();
}

}  // namespace tensorcast::quantized
