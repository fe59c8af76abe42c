// SPDX-License-Identifier: Apache-2.0
// NVIDIA's ModelOpt: weight, weight_scale, weight_scale_2, input_scale; the method is in config.json or
// hf_quant_config.json.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::quantized {
namespace {

constexpr auto layer_keys = std::to_array<KnownKey>({{.name = "quant_algo", .type = KeyType::text, .decides = true},
                                                     {.name = "group_size", .type = KeyType::integer, .decides = true},
                                                     {.name = "has_zero_point", .type = KeyType::flag, .decides = true},
                                                     {.name = "pre_quant_scale", .type = KeyType::flag},
                                                     {.name = "smoothquant_val"},
                                                     {.name = "awq_block_size"},
                                                     {.name = "lora_rank", .type = KeyType::integer},
                                                     {.name = "format", .type = KeyType::text}});
constexpr auto keys_of_modelopt = joined(
    layer_keys, std::to_array<KnownKey>(
                    {{.name = "quantized_layers", .type = KeyType::groups, .decides = true, .members = layer_keys},
                     {.name = "config_groups", .type = KeyType::object},
                     {.name = "quant_lib"},
                     {.name = "version", .type = KeyType::text}}));

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

void complete_nvfp4(const std::string& module, std::size_t scales, const Description& description,
                    LayerBuilder& builder) {
  constexpr std::int64_t block = 16;
  Layer& layer = builder.layer();
  layer.scheme = "nvfp4";
  layer.coding = {.element = Element::e2m1,
                  .bits = 4,
                  .packing = Packing::low_nibble_first,
                  .scales = ScaleType::e4m3,
                  .global = GlobalScale::factor,
                  .positive_zero = true};
  layer.block_rows = 1;
  layer.block_columns = size_in(description.section, "group_size").value_or(block);
  if (layer.block_columns != block) {
    builder.fail(fmt::format("blocks of nvfp4 have 16 elements, and {} names another number", description.source));
  }
  builder.need_codes_of({DType::uint8});
  builder.set_shape(1, 2);
  builder.check_scales(scales, false, description.source);
  builder.check_global(builder.need(tensor_of(module, "weight_scale_2"), PartRole::global_scale));
}

void complete_float8(const ModelTensors& tensors, std::size_t scales, const std::string& algorithm,
                     const Description& description, LayerBuilder& builder) {
  constexpr std::int64_t mx_block = 32, pb_block = 128;
  Layer& layer = builder.layer();
  layer.coding = {.element = Element::e4m3};
  builder.need_codes_of({DType::float8_e4m3fn});
  builder.set_shape(1, 1);
  if (algorithm == "MXFP8" || tensors[scales].dtype == DType::uint8) {
    layer.scheme = "mxfp8";
    layer.coding.scales = ScaleType::e8m0;
    layer.block_rows = 1;
    layer.block_columns = mx_block;
  } else if (algorithm == "FP8_PB_WO" || algorithm == "FP8_PB_REAL") {
    layer.scheme = "fp8-block";
    layer.block_rows = layer.block_columns = pb_block;
  } else if (algorithm == "FP8_PER_CHANNEL_PER_TOKEN" && layer.shape.size() > 1) {
    layer.scheme = "fp8-channel";
    layer.block_rows = 1;
    layer.block_columns = whole_row(layer.shape);
  } else {
    layer.scheme = "fp8-tensor";
  }
  builder.check_scales(scales, false, description.source);
}

void find_modelopt(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  for (const auto& [i, module] : tensors.of_modules("weight_scale")) {
    const std::optional<std::size_t> codes = tensors.find(tensor_of(module, "weight"));
    if (!codes) continue;
    LayerBuilder builder(tensors, "modelopt", tensor_of(module, "weight"), *codes);
    builder.layer().parts.push_back({.role = PartRole::scales, .tensor = i});
    const std::string algorithm = algorithm_of(description->section, module);
    const DType type = tensors[*codes].dtype;
    const bool int4 = algorithm.find("AWQ") != std::string::npos && algorithm.find("NVFP4") == std::string::npos;
    const bool ggml = is_ggml(algorithm);
    if (ggml || int4 || algorithm.starts_with("W4A8") || algorithm == "W8A8_SQ_PER_CHANNEL" || algorithm == "W8A16" ||
        algorithm == "NVFP4_SVD") {
      builder.layer().scheme = algorithm;
      builder.fail(fmt::format("{} of ModelOpt is known, and not decoded", algorithm));
    } else if (type == DType::uint8 && tensors[i].dtype == DType::float8_e4m3fn) {
      complete_nvfp4(module, i, *description, builder);
      if (!algorithm.empty() && algorithm.find("NVFP4") == std::string::npos && algorithm != "MIXED_PRECISION") {
        builder.fail(
            fmt::format("{} names {}, and codes and scales are those of NVFP4", description->source, algorithm));
      }
    } else if (type == DType::float8_e4m3fn) {
      complete_float8(tensors, i, algorithm, *description, builder);
      const bool is_known =
          algorithm.empty() || algorithm.starts_with("FP8") || algorithm == "MXFP8" || algorithm == "MIXED_PRECISION";
      if (!is_known) {
        builder.fail(fmt::format("{} names {}, and the codes are {}", description->source, algorithm,
                                 type_and_shape(tensors[*codes])));
      }
    } else {
      builder.layer().scheme = algorithm.empty() ? "ModelOpt's" : algorithm;
      builder.fail(fmt::format("codes of {} and scales of {} are of no method of ModelOpt that is known",
                               type_and_shape(tensors[*codes]), type_and_shape(tensors[i])));
    }
    add_activations(builder, module);
    layers.push_back(std::move(builder).done());
  }
}

}  // namespace

constinit const Spelling layouts::modelopt = {
    .name = "modelopt", .methods = {"modelopt", "modelopt_fp4"}, .keys = keys_of_modelopt, .find = find_modelopt};

}  // namespace tensorcast::quantized
