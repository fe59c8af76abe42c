// SPDX-License-Identifier: Apache-2.0
// ComfyUI's files: a description for each layer in the metadata (`_quantization_metadata`) or in a tensor
// (comfy_quant), and before that scale_weight with the marker scaled_fp8.
#include <fmt/format.h>

#include <algorithm>

#include "dtype/lookup.hpp"
#include "quantized/layer/hadamard.hpp"
#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/stored_scheme.hpp"

namespace tensorcast::quantized {
namespace {

// Of a layer.
constexpr auto keys_of_layers =
    joined(keys_of<"format orig_dtype">(KeyType::text), keys_of<"convrot full_precision_matrix_mult">(KeyType::flag),
           keys_of<"convrot_groupsize">(KeyType::integer));
constexpr auto keys_of_comfyui =
    joined(keys_of<"format_version">(KeyType::any), deciding_keys<"layers">(KeyType::object));
constexpr std::string_view marker = "scaled_fp8";
constexpr std::string_view metadata_key = "_quantization_metadata";

constexpr BlockCoding swizzled(BlockCoding coding) {
  coding.swizzled = true;
  return coding;
}

// By the formats that descriptions name.
constexpr StoredScheme stored_by_comfyui[] = {
    {.scheme = "nvfp4",
     .word = "nvfp4",
     .coding = swizzled(nvfp4_coding(GlobalScale::factor, BlockPacking::high_nibble_first)),
     .global = "weight_scale_2"},
    {.scheme = "mxfp8",
     .word = "mxfp8",
     .coding = swizzled(mx_coding(DType::float8_e4m3fn, 8)),
     .e8m0_type = DType::float8_e8m0fnu},
    {.scheme = "fp8-tensor", .word = "float8_e4m3fn"},
    {.scheme = "fp8-tensor", .word = "float8_e5m2", .coding = {.element = DType::float8_e5m2}},
    {.scheme = "int8-tensor", .word = "int8_tensorwise", .coding = {.element = DType::int8}},
    {.scheme = "int8-channel", .word = "int8_tensorwise", .coding = {.element = DType::int8}}};

// One scale for the tensor or for each row. `kind`: "fp8" or "int8".
void complete_plain(const ModelTensors& tensors, std::optional<std::size_t> scales, std::string_view kind,
                    DType element, LayerBuilder& builder) {
  Layer& layer = builder.layer();
  layer.scheme = fmt::format("{}-tensor", kind);
  layer.shape = builder.codes().shape;
  layer.coding = {.element = element};
  builder.need_codes_of({element});
  if (scales && tensors[*scales].count > 1 && layer.shape.size() == 2) {
    layer.scheme = fmt::format("{}-channel", kind);
    layer.block_rows = 1;
    layer.block_columns = whole_row(layer.shape);
  }
  builder.check_scales(scales, false, "its description");
}

// Blocks of 16 or 32 whose scales are in tiles of 128 x 4, padded with zeros.
void complete_swizzled(std::optional<std::size_t> scales, const StoredScheme& stored, LayerBuilder& builder) {
  constexpr std::size_t most_dimensions = 2;
  read_as(stored, builder, most_dimensions);
  builder.check_scale_type(scales, stored.coding.scale == DType::float8_e8m0fnu);
  builder.check_tiles(scales);
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
  layer.deviations.rotation = size;
}

void complete_comfyui(const ModelTensors& tensors, const std::string& module, const Json& description,
                      LayerBuilder& builder) {
  if (std::string problem = key_problem(description, keys_of_layers, "its description", tensors.accepted());
      !problem.empty()) {
    return builder.fail(std::move(problem));
  }
  const std::string format = text_in(description, "format");
  const std::optional<std::size_t> scales = builder.need(tensor_of(module, "weight_scale"), PartRole::scales);
  const StoredScheme* const stored = find_row(stored_by_comfyui, &StoredScheme::word, format);
  if (stored == nullptr) {
    builder.layer().scheme = format;
    return builder.fail(fmt::format("the format \"{}\" of ComfyUI is not decoded", format));
  }
  const bool integers = is_integer(stored->coding.element);
  if (!stored->coding.swizzled) {
    complete_plain(tensors, scales, integers ? "int8" : "fp8", stored->coding.element, builder);
    if (integers && is_true(description, "convrot")) read_rotation(description, builder);
    return;
  }
  complete_swizzled(scales, *stored, builder);
  if (stored->global.empty()) return;
  builder.check_global(builder.need(tensor_of(module, stored->global), PartRole::global_scale));
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

// Markers of a file's models: "scaled_fp8" and "text_encoders.t5.scaled_fp8".
std::vector<std::size_t> markers_of(const ModelTensors& tensors) {
  std::vector<std::size_t> markers;
  for (const ModelTensors::OfModule& found : tensors.of_modules(marker)) markers.push_back(found.tensor);
  return markers;
}

// The marker's type is that of the codes to which it applies: of names that begin as its own.
void check_marker(const ModelTensors& tensors, std::span<const std::size_t> markers, LayerBuilder& builder) {
  for (const std::size_t index : markers) {
    const TensorInfo& found = tensors[index];
    const std::string_view prefix = std::string_view(found.name).substr(0, found.name.size() - marker.size());
    const bool is_type = found.dtype == DType::float8_e4m3fn || found.dtype == DType::float8_e5m2;
    if (!is_type || !builder.codes().name.starts_with(prefix) || found.dtype == builder.codes().dtype) continue;
    builder.fail(fmt::format("it says that codes are {}, and those of \"{}\" are {}", name(found.dtype),
                             builder.codes().name, name(builder.codes().dtype)),
                 index);
  }
}

void find_comfyui(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  const std::vector<std::size_t> markers = markers_of(tensors);
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    const std::string& name = tensors[i].name;
    if (const std::optional<std::string> scaled = module_with(name, "scale_weight"); !markers.empty() && scaled) {
      const std::string& module = *scaled;
      const std::optional<std::size_t> codes = tensors.find(tensor_of(module, "weight"));
      if (!codes || bit_width(tensors[*codes].dtype) > 8) continue;
      LayerBuilder builder(tensors, "comfyui", tensor_of(module, "weight"), *codes, i);
      const bool e5m2 = builder.codes().dtype == DType::float8_e5m2;
      complete_plain(tensors, i, "fp8", e5m2 ? DType::float8_e5m2 : DType::float8_e4m3fn, builder);
      check_marker(tensors, markers, builder);
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
    complete_comfyui(tensors, module, own, builder);
    add_activations(builder, module);
    layers.push_back(std::move(builder).done());
  }
}

void spell_comfyui(const LayerContent& content, WrittenLayer& written) {
  const StoredScheme* const stored = find_stored(stored_by_comfyui, content);
  const bool has_plain_scales = bit_width(content.scales()) > 8;
  if (stored == nullptr || content.zero_points || (!stored->coding.swizzled && !has_plain_scales)) {
    return refuse_scheme(content, written, "fp8-tensor, mxfp8, nvfp4 and symmetric int8");
  }
  spell_as(*stored, content, written);
  add_input_scale(content, written);
}

std::string_view format_of(const Layer& layer) {
  const auto is_of_layer = [&](const StoredScheme& stored) {
    return stored.scheme == layer.scheme && stored.coding.element == layer.coding.element;
  };
  return std::ranges::find_if(stored_by_comfyui, is_of_layer)->word;
}

void describe_comfyui(const WrittenModel& model, WrittenConfig& config) {
  Json layers = Json::object();
  for (const Layer& written : model.layers) {
    Json& layer = layers[module_of(written.name)] = {{"format", format_of(written)}};
    if (written.deviations.rotation == 0) continue;
    layer["convrot"] = true;
    layer["convrot_groupsize"] = written.deviations.rotation;
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
    .joins_weights = false,
};

}  // namespace tensorcast::quantized
