// SPDX-License-Identifier: Apache-2.0
// NVIDIA's ModelOpt: weight, weight_scale, weight_scale_2, input_scale; the method is in config.json or
// hf_quant_config.json.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "dtype/lookup.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/stored_scheme.hpp"

namespace tensorcast::quantized {
namespace {

constexpr auto layer_keys =
    joined(deciding_keys<"quant_algo">(KeyType::text), deciding_keys<"group_size">(KeyType::integer),
           deciding_keys<"has_zero_point">(KeyType::flag), keys_of<"pre_quant_scale">(KeyType::flag),
           keys_of<"smoothquant_val awq_block_size">(KeyType::any), keys_of<"lora_rank">(KeyType::integer),
           keys_of<"format">(KeyType::text));
constexpr auto modelopt_weight_keys =
    joined(keys_of<"num_bits group_size">(KeyType::integer),
           keys_of<"type strategy scale_dtype zp_dtype">(KeyType::text), keys_of<"dynamic symmetric">(KeyType::flag),
           keys_of<"block_structure actorder observer observer_kwargs">(KeyType::any));
constexpr auto modelopt_group_keys = joined(
    keys_of<"targets">(KeyType::list), keys_of<"input_activations output_activations">(KeyType::any),
    keys_of<"quant_algo format packing">(KeyType::text), keys_of<"group_size block_payload_bytes">(KeyType::integer),
    std::to_array<KnownKey>({{.name = "weights", .type = KeyType::object, .members = modelopt_weight_keys}}));
constexpr auto keys_of_modelopt =
    joined(layer_keys, keys_of<"quant_lib">(KeyType::any), keys_of<"version">(KeyType::text),
           std::to_array<KnownKey>(
               {{.name = "quantized_layers", .type = KeyType::groups, .decides = true, .members = layer_keys},
                {.name = "config_groups", .type = KeyType::groups, .decides = true, .members = modelopt_group_keys}}));

// Versions write names of methods in small letters, too.
std::string upper_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

// ModelOpt 0.48 stores ggml's blocks under their names.
bool is_ggml(std::string_view algorithm) {
  const bool is_q = algorithm.starts_with("IQ") || algorithm.starts_with("TQ") || algorithm.starts_with("Q");
  return is_q && algorithm.find('_') != std::string_view::npos;
}

// The name of the method of a module: of the model, or with MIXED_PRECISION its own.
std::string algorithm_of(const Json& section, const std::string& module) {
  std::string algorithm = upper_case(text_in(section, "quant_algo"));
  if (algorithm != "MIXED_PRECISION") return algorithm;
  const Json* layers = object_in(section, "quantized_layers");
  const Json* layer = layers == nullptr ? nullptr : object_in(*layers, module);
  return layer == nullptr ? algorithm : upper_case(text_in(*layer, "quant_algo"));
}

constexpr BlockCoding modelopt_nvfp4() {
  BlockCoding coding = nvfp4_coding(GlobalScale::factor);
  coding.positive_zero = true;
  return coding;
}

// By ModelOpt's names of methods.
constexpr StoredScheme stored_by_modelopt[] = {
    {.scheme = "nvfp4", .word = "NVFP4", .coding = modelopt_nvfp4(), .global = "weight_scale_2"},
    {.scheme = "mxfp8", .word = "MXFP8", .coding = mx_coding(DType::float8_e4m3fn, 8)},
    {.scheme = "fp8-channel", .word = "FP8_PER_CHANNEL_PER_TOKEN", .scale_shape = ScaleShape::rows},
    {.scheme = "fp8-block", .word = "FP8_PB_WO", .scale_shape = ScaleShape::with_ones},
    {.scheme = "fp8-tensor", .word = "FP8"}};
constexpr const StoredScheme& nvfp4_of_modelopt = stored_by_modelopt[0];

void complete_nvfp4(const ModelTensors& tensors, const std::string& module, std::size_t scales,
                    const Description& description, LayerBuilder& builder) {
  // Nothing else tells such a file of ModelOpt 0.47, and whole tiles have the shape of rows.
  constexpr std::string_view metadata = "quantization_config";
  if (description.is_in_file && !is_accepted(tensors.accepted(), metadata)) {
    builder.fail(
        fmt::format("ModelOpt's \"{0}\" is in the file's metadata, where it puts it when it pads weights or stores "
                    "scales in tiles of a GPU; `accept` {0} reads scales that lie in rows",
                    metadata));
  }
  const StoredScheme& stored = nvfp4_of_modelopt;
  const std::int64_t size = size_in(description.section, "group_size").value_or(stored.block());
  if (size != stored.block()) {
    builder.fail(fmt::format("blocks of nvfp4 have 16 elements, and {} names another number", description.source));
  }
  read_as(stored, builder);
  builder.layer().block_columns = size;
  builder.check_scales(scales, false, description.source);
  builder.check_global(builder.need(tensor_of(module, stored.global), PartRole::global_scale));
}

void complete_float8(const ModelTensors& tensors, std::size_t scales, const std::string& algorithm,
                     const Description& description, LayerBuilder& builder) {
  constexpr std::int64_t mx_block = 32, pb_block = 128;
  Layer& layer = builder.layer();
  layer.coding = {.element = DType::float8_e4m3fn};
  builder.need_codes_of({DType::float8_e4m3fn});
  builder.set_shape(1, 1);
  const StoredScheme* const named = find_row(stored_by_modelopt, &StoredScheme::word, algorithm);
  const ScaleShape shape = named == nullptr ? ScaleShape::grid : named->scale_shape;
  if ((named != nullptr && named->coding.scale == DType::float8_e8m0fnu) || tensors[scales].dtype == DType::uint8) {
    layer.scheme = "mxfp8";
    layer.coding.scale = DType::float8_e8m0fnu;
    layer.block_rows = 1;
    layer.block_columns = mx_block;
  } else if (shape == ScaleShape::with_ones || algorithm == "FP8_PB_REAL") {
    layer.scheme = "fp8-block";
    layer.block_rows = layer.block_columns = pb_block;
  } else if (shape == ScaleShape::rows && layer.shape.size() > 1) {
    layer.scheme = "fp8-channel";
    layer.block_rows = 1;
    layer.block_columns = whole_row(layer.shape);
  } else {
    layer.scheme = "fp8-tensor";
  }
  builder.check_scales(scales, false, description.source);
}

// Fails if config_groups, which say again what quant_algo does, contradict the layer.
void check_group(const Json& section, const std::string& module, const Description& description,
                 LayerBuilder& builder) {
  const Json* groups = object_in(section, "config_groups");
  if (groups == nullptr) return;
  const Layer& layer = builder.layer();
  for (const auto& [name, group] : groups->items()) {
    const std::vector<std::string> targets = texts_in(group, "targets");
    const Json* weights = object_in(group, "weights");
    const bool is_of_it = contains(targets, module) || (groups->size() == 1 && contains(targets, "Linear"));
    if (!is_of_it || weights == nullptr) continue;
    const std::string type = text_in(*weights, "type");
    const std::int64_t bits = size_in(*weights, "num_bits").value_or(layer.coding.bits),
                       size = size_in(*weights, "group_size").value_or(layer.block_columns);
    const bool in_groups = layer.block_rows == 1 && layer.block_columns != whole_row(layer.shape);
    if ((type.empty() || type == "float") && bits == layer.coding.bits && (!in_groups || size == layer.block_columns))
      continue;
    builder.fail(fmt::format("{} has {} bits, the type \"{}\" and groups of {} in {}, and the codes are those of {}",
                             description.source, bits, type, size, name, layer.scheme));
  }
}

void find_modelopt(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  for (const auto& [i, codes, module] : tensors.scaled_modules("weight_scale")) {
    LayerBuilder builder(tensors, "modelopt", tensor_of(module, "weight"), codes, i);
    const std::string algorithm = algorithm_of(description->section, module);
    const DType type = tensors[codes].dtype;
    const bool int4 = algorithm.find("AWQ") != std::string::npos && algorithm.find("NVFP4") == std::string::npos;
    const bool ggml = is_ggml(algorithm);
    if (ggml || int4 || algorithm.starts_with("W4A8") || algorithm == "W8A8_SQ_PER_CHANNEL" || algorithm == "W8A16" ||
        algorithm == "NVFP4_SVD") {
      builder.layer().scheme = algorithm;
      builder.fail(fmt::format("{} of ModelOpt is known, and not decoded", algorithm));
    } else if (type == DType::uint8 && tensors[i].dtype == DType::float8_e4m3fn) {
      complete_nvfp4(tensors, module, i, *description, builder);
      if (!algorithm.empty() && algorithm.find("NVFP4") == std::string::npos && algorithm != "MIXED_PRECISION") {
        builder.fail(
            fmt::format("{} names {}, and codes and scales are those of NVFP4", description->source, algorithm));
      }
    } else if (type == DType::float8_e4m3fn) {
      complete_float8(tensors, i, algorithm, *description, builder);
      const StoredScheme* const named = find_row(stored_by_modelopt, &StoredScheme::word, algorithm);
      const bool is_known = algorithm.empty() || algorithm.starts_with("FP8") || algorithm == "MIXED_PRECISION" ||
                            (named != nullptr && named->coding.bits == 8);
      if (!is_known) {
        builder.fail(fmt::format("{} names {}, and the codes are {}", description->source, algorithm,
                                 type_and_shape(tensors[codes])));
      }
    } else {
      builder.layer().scheme = algorithm.empty() ? "ModelOpt's" : algorithm;
      builder.fail(fmt::format("codes of {} and scales of {} are of no method of ModelOpt that is known",
                               type_and_shape(tensors[codes]), type_and_shape(tensors[i])));
    }
    check_group(description->section, module, *description, builder);
    if (is_true(description->section, "has_zero_point") && algorithm.find("AWQ") == std::string::npos) {
      builder.fail(fmt::format("{} names zero points, which {} does not have", description->source, algorithm));
    }
    add_activations(builder, module);
    layers.push_back(std::move(builder).done());
  }
}

// ModelOpt's name of a method. NVFP4 without a scale of activations must say that only weights are quantized: vLLM
// takes a missing scale for zero.
std::string written_algorithm(const Layer& layer) {
  const std::string word(find_row(stored_by_modelopt, &StoredScheme::scheme, layer.scheme)->word);
  const bool lacks_scale = word == nvfp4_of_modelopt.word && !layer.find(PartRole::activations);
  return lacks_scale ? "W4A16_" + word : word;
}

std::int64_t columns_of_group(const Layer& layer) {
  const StoredScheme* const stored = find_row(stored_by_modelopt, &StoredScheme::scheme, layer.scheme);
  return layer.block_rows == 0 || stored->scale_shape == ScaleShape::rows ? 0 : layer.block_columns;
}

Json modelopt_weights(const Layer& layer) {
  Json weights = {{"dynamic", false}, {"num_bits", layer.coding.bits}, {"type", "float"}};
  if (const std::int64_t size = columns_of_group(layer); size != 0) weights["group_size"] = size;
  return weights;
}

Json modelopt_method(const std::string& algorithm, std::int64_t group_size) {
  Json method = {{"quant_algo", algorithm}};
  if (group_size != 0) method["group_size"] = group_size;
  return method;
}

void spell_modelopt(const LayerContent& content, WrittenLayer& written) {
  constexpr std::int64_t pb_block = 128;
  const StoredScheme* const stored = find_stored(stored_by_modelopt, content);
  if (stored == nullptr && content.coding.element != DType::float8_e4m3fn) {
    return refuse_scheme(content, written, "fp8, mxfp8 and nvfp4");
  }
  const bool is_odd =
      stored != nullptr && stored->scale_shape == ScaleShape::with_ones &&
      (content.block_rows != pb_block || content.block_columns != pb_block || content.shape.size() != 2);
  if (stored == nullptr || is_odd) {
    return refuse_scheme(content, written, "fp8-tensor, fp8-channel, fp8-block of 128 x 128, mxfp8 and nvfp4");
  }
  spell_as(*stored, content, written);
  written.need(content.block_rows != 0 || content.input_scale != GlobalScale::none,
               "modelopt has fp8-tensor only with a calibrated scale of activations, without which loaders divide by "
               "almost zero, and this weight has none; fp8-channel needs none");
  add_input_scale(content, written);
}

void describe_modelopt(const WrittenModel& model, WrittenConfig& config) {
  std::map<std::string, std::vector<const Layer*>> algorithms;
  for (const Layer& layer : model.layers) algorithms[written_algorithm(layer)].push_back(&layer);
  const bool mixed = algorithms.size() > 1;
  const std::string algorithm = mixed ? "MIXED_PRECISION" : algorithms.begin()->first;
  const std::int64_t size = mixed ? 0 : columns_of_group(*algorithms.begin()->second.front());
  const Json producer = {{"name", "modelopt"}};
  const Json cache = model.float8_cache ? Json("FP8") : Json(nullptr);
  Json quantization = modelopt_method(algorithm, size);
  quantization["kv_cache_quant_algo"] = cache;
  quantization["exclude_modules"] = model.unquantized;
  Json groups = Json::object();
  Json layers = Json::object();
  for (const auto& [name, members] : algorithms) {
    const Layer& first = *members.front();
    Json group = {{"weights", modelopt_weights(first)}, {"targets", {"Linear"}}};
    const bool has_inputs = first.block_rows == 0 || first.coding.scale == DType::float8_e4m3fn;
    if (has_inputs && first.find(PartRole::activations)) group["input_activations"] = modelopt_weights(first);
    if (mixed) {
      group["targets"] = Json::array();
      for (const Layer* layer : members) {
        const std::string module = module_of(layer->name);
        group["targets"].push_back(module);
        layers[module] = modelopt_method(name, columns_of_group(*layer));
      }
    }
    groups[fmt::format("group_{}", groups.size())] = std::move(group);
  }
  if (mixed) quantization["quantized_layers"] = layers;
  constexpr int indent = 4;
  config.own_file = Json{{"producer", producer}, {"quantization", std::move(quantization)}}.dump(indent) + "\n";
  Json section = {{"config_groups", std::move(groups)}, {"ignore", model.unquantized}, {"quant_algo", algorithm},
                  {"kv_cache_scheme", nullptr},         {"producer", producer},        {"quant_method", "modelopt"}};
  if (model.float8_cache) section["kv_cache_scheme"] = {{"dynamic", false}, {"num_bits", 8}, {"type", "float"}};
  if (mixed) section["quantized_layers"] = std::move(layers);
  config.section = section.dump();
}

}  // namespace

constinit const Spelling layouts::modelopt = {
    .name = "modelopt",
    .methods = {{.name = "modelopt", .list = "ignore", .list_is_open = true, .rest_is_quantized = true},
                {.name = "modelopt_fp4", .list = "ignore", .rest_is_quantized = true}},
    .keys = keys_of_modelopt,
    .find = find_modelopt,
    .spell = spell_modelopt,
    .describe = describe_modelopt,
    .activations = DynamicActivations::always,
    .activations_schemes = "fp8-channel mxfp8",
    .joins_scales = true,
    .names_cache = true,
};

}  // namespace tensorcast::quantized
