// SPDX-License-Identifier: Apache-2.0
// ComfyUI's files: a description for each layer in the metadata (`_quantization_metadata`) or in a tensor
// (comfy_quant), and before that scale_weight with the marker scaled_fp8.
#include <fmt/format.h>

#include "block/scale_tiles.hpp"
#include "quantized/layer/hadamard.hpp"
#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {
namespace {

// Of a layer.
constexpr auto keys_of_layers = std::to_array<KnownKey>({{.name = "format", .type = KeyType::text},
                                                         {.name = "convrot", .type = KeyType::flag},
                                                         {.name = "convrot_groupsize", .type = KeyType::integer},
                                                         {.name = "full_precision_matrix_mult", .type = KeyType::flag},
                                                         {.name = "orig_dtype", .type = KeyType::text}});
constexpr auto keys_of_comfyui =
    std::to_array<KnownKey>({{.name = "format_version"}, {.name = "layers", .type = KeyType::object, .decides = true}});
constexpr std::string_view marker = "scaled_fp8";
constexpr std::string_view metadata_key = "_quantization_metadata";

// One scale for the tensor or for each row. `kind`: "fp8" or "int8".
void complete_plain(const ModelTensors& tensors, std::optional<std::size_t> scales, std::string_view kind,
                    LayerBuilder& builder) {
  Layer& layer = builder.layer();
  layer.scheme = fmt::format("{}-tensor", kind);
  layer.shape = builder.codes().shape;
  if (kind == "int8") {
    layer.coding = {.element = DType::int8};
    builder.need_codes_of({DType::int8});
  } else {
    layer.coding = {.element = builder.codes().dtype == DType::float8_e5m2 ? DType::float8_e5m2 : DType::float8_e4m3fn};
    builder.need_codes_of({DType::float8_e4m3fn, DType::float8_e5m2});
  }
  if (scales && tensors[*scales].count > 1 && layer.shape.size() == 2) {
    layer.scheme = fmt::format("{}-channel", kind);
    layer.block_rows = 1;
    layer.block_columns = whole_row(layer.shape);
  }
  builder.check_scales(scales, false, "its description");
}

// Blocks of 16 or 32 whose scales are in tiles of 128 x 4, padded with zeros.
void complete_swizzled(const ModelTensors& tensors, std::optional<std::size_t> scales, bool nv, LayerBuilder& builder) {
  constexpr std::int64_t nv_block = 16, mx_block = 32;
  Layer& layer = builder.layer();
  layer.scheme = nv ? "nvfp4" : "mxfp8";
  layer.coding = nv ? Coding{.element = DType::float4_e2m1fn,
                             .bits = 4,
                             .packing = Packing::high_nibble_first,
                             .scales = DType::float8_e4m3fn,
                             .global = GlobalScale::factor,
                             .swizzled = true}
                    : Coding{.element = DType::float8_e4m3fn, .scales = DType::float8_e8m0fnu, .swizzled = true};
  layer.block_rows = 1;
  layer.block_columns = nv ? nv_block : mx_block;
  if (nv) {
    builder.need_codes_of({DType::uint8}, 2);
  } else {
    builder.need_codes_of({DType::float8_e4m3fn}, 2);
  }
  builder.set_shape(1, nv ? 2 : 1);
  builder.check_scale_type(scales, !nv);
  if (!builder.ok() || !scales) return;
  const auto size = [](std::int64_t length) { return static_cast<std::size_t>(length); };
  const std::size_t wanted =
      block::scales_in_tiles(size(layer.shape[0]), size(blocks_of(layer.shape[1], layer.block_columns)));
  if (!std::cmp_equal(tensors[*scales].count, wanted)) {
    builder.fail(fmt::format("a weight of {} has {} scales in tiles of 128 x 4, and these are {}",
                             shape_text(layer.shape), wanted, type_and_shape(tensors[*scales])),
                 scales);
  }
}

// ConvRot rotated groups of inputs before the codes were made.
void read_rotation(const Json& description, LayerBuilder& builder) {
  constexpr std::int64_t usual = 256;
  Layer& layer = builder.layer();
  const std::int64_t size = size_in(description, "convrot_groupsize").value_or(usual);
  if (!is_rotation_size(size) || size > largest_rotation_undone || layer.shape.empty() ||
      layer.shape.back() % size != 0) {
    return builder.fail("ConvRot rotates groups of a power of 4 inputs, and its description names another size");
  }
  layer.coding.rotation = size;
}

void complete(const ModelTensors& tensors, const std::string& module, const Json& description, LayerBuilder& builder) {
  if (std::string problem = key_problem(description, keys_of_layers, "its description", tensors.accepted());
      !problem.empty()) {
    return builder.fail(std::move(problem));
  }
  const std::string format = text_in(description, "format");
  const std::optional<std::size_t> scales = builder.need(tensor_of(module, "weight_scale"), PartRole::scales);
  if (format == "float8_e4m3fn" || format == "float8_e5m2") {
    complete_plain(tensors, scales, "fp8", builder);
  } else if (format == "nvfp4") {
    complete_swizzled(tensors, scales, true, builder);
    builder.check_global(builder.need(tensor_of(module, "weight_scale_2"), PartRole::global_scale));
  } else if (format == "mxfp8") {
    complete_swizzled(tensors, scales, false, builder);
  } else if (format == "int8_tensorwise") {
    complete_plain(tensors, scales, "int8", builder);
    if (is_true(description, "convrot")) read_rotation(description, builder);
  } else {
    builder.layer().scheme = format;
    builder.fail(fmt::format("the format \"{}\" of ComfyUI is not decoded", format));
  }
}

// What the metadata says of a layer; null: nothing.
const Json* described(const Description* description, const std::string& module) {
  const Json* layers = description == nullptr ? nullptr : object_in(description->section, "layers");
  return layers == nullptr ? nullptr : object_in(*layers, module);
}

// What the tensor comfy_quant says; null: it is not there, or cannot be read.
Json stored_description(const ModelTensors& tensors, std::optional<std::size_t> state) {
  if (!state) return nullptr;
  const Result<std::vector<std::byte>> bytes = tensors.read(*state);
  if (!bytes) return nullptr;
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return Json::parse(text, nullptr, false);
}

bool has_marker(const ModelTensors& tensors) {
  for (const TensorInfo& tensor : tensors.all()) {
    if (tensor.name == marker || tensor.name.ends_with("." + std::string(marker))) return true;
  }
  return false;
}

void find_comfyui(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  const bool marked = has_marker(tensors);
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    const std::string& name = tensors[i].name;
    if (const std::optional<std::string> scaled = module_with(name, "scale_weight"); marked && scaled) {
      const std::string& module = *scaled;
      const std::optional<std::size_t> codes = tensors.find(tensor_of(module, "weight"));
      if (!codes || bit_width(tensors[*codes].dtype) > 8) continue;
      LayerBuilder builder(tensors, "comfyui", tensor_of(module, "weight"), *codes);
      builder.layer().parts.push_back({.role = PartRole::scales, .tensor = i});
      complete_plain(tensors, i, "fp8", builder);
      if (const std::optional<std::size_t> other = tensors.find(tensor_of(module, "weight_scale")); other) {
        builder.fail("it has a scale_weight, too, and nothing tells which of them is the scale", other);
      }
      builder.add(tensor_of(module, "scale_input"), PartRole::activations);
      layers.push_back(std::move(builder).done());
      continue;
    }
    const std::optional<std::string> weight = module_with(name, "weight");
    if (!weight) continue;
    const std::string& module = *weight;
    const std::optional<std::size_t> state = tensors.find(tensor_of(module, "comfy_quant"));
    const Json stored = stored_description(tensors, state);
    const Json* outside = described(description, module);
    const Json own = outside != nullptr ? *outside : stored;
    if (!own.is_object() && !state) continue;
    LayerBuilder builder(tensors, "comfyui", name, i);
    if (state) builder.layer().parts.push_back({.role = PartRole::state, .tensor = *state});
    if (!own.is_object()) {
      builder.layer().scheme = "codes";
      builder.fail("its description is not a JSON object", state);
    } else if (outside != nullptr && stored.is_object() && stored != own) {
      builder.fail("the file's metadata and comfy_quant describe it in two ways", state);
    }
    complete(tensors, module, own, builder);
    add_activations(builder, module);
    layers.push_back(std::move(builder).done());
  }
}

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
  if (is_integer(layer.coding.element)) return "int8_tensorwise";
  return name(layer.coding.element);
}

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
  } else if (content.scheme == "mxfp8" && content.element == DType::float8_e4m3fn) {
    need_whole_groups(content, 32, written);
    add_tensor(written, PartRole::codes, weight, DType::float8_e4m3fn, content.shape);
    add_swizzled(content, written, DType::float8_e8m0fnu);
  } else if (content.scheme == "fp8-tensor" && number) {
    add_tensor(written, PartRole::codes, weight, content.element, content.shape);
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
  config.metadata_key = metadata_key;
  config.metadata_text = Json{{"format_version", "1.0"}, {"layers", std::move(layers)}}.dump();
}

}  // namespace

constinit const Spelling layouts::comfyui = {
    .name = "comfyui",
    .methods = {{.name = "comfyui"}},
    .keys = keys_of_comfyui,
    .describes_itself = true,
    .find = find_comfyui,
    .spell = spell_comfyui,
    .describe = describe_comfyui,
    .has_rotations = true,
};

}  // namespace tensorcast::quantized
