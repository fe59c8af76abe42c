// SPDX-License-Identifier: Apache-2.0
// Writes what NVIDIA's ModelOpt exports: weight, weight_scale, weight_scale_2, input_scale, and both configurations.
#include <fmt/format.h>

#include <map>

#include "quantized/layout/config.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {
namespace {

// ModelOpt's name of a method. NVFP4 without a scale of activations must say that only weights are quantized: vLLM
// takes a missing scale for zero.
std::string written_algorithm(const Layer& layer) {
  const std::string& scheme = layer.scheme;
  if (scheme == "nvfp4") return !layer.find(PartRole::activations) ? "W4A16_NVFP4" : "NVFP4";
  if (scheme == "mxfp8") return "MXFP8";
  if (scheme == "fp8-channel") return "FP8_PER_CHANNEL_PER_TOKEN";
  return scheme == "fp8-block" ? "FP8_PB_WO" : "FP8";
}

std::int64_t group_size_of(const Layer& layer) {
  const std::string& scheme = layer.scheme;
  return scheme == "nvfp4" || scheme == "mxfp8" || scheme == "fp8-block" ? layer.block_columns : 0;
}

Json weights_of(const Layer& layer) {
  Json weights = {{"dynamic", false}, {"num_bits", layer.coding.bits}, {"type", "float"}};
  if (const std::int64_t size = group_size_of(layer); size != 0) weights["group_size"] = size;
  return weights;
}

Json method_of(const std::string& algorithm, std::int64_t group_size) {
  Json method = {{"quant_algo", algorithm}};
  if (group_size != 0) method["group_size"] = group_size;
  return method;
}

}  // namespace

void spell_modelopt(const LayerContent& content, WrittenLayer& written) {
  const std::string module = module_of(content.name);
  const std::string weight = tensor_of(module, "weight");
  const std::string scale = tensor_of(module, "weight_scale");
  written.layer.name = weight;
  Coding& coding = written.layer.coding;
  if (content.scheme == "nvfp4") {
    need_whole_groups(content, content.block_columns, written);
    coding.packing = Packing::low_nibble_first;
    coding.global = GlobalScale::factor;
    coding.positive_zero = true;
    add_tensor(written, PartRole::codes, weight, DType::uint8, packed_shape(content, 2, 1));
    add_tensor(written, PartRole::scales, scale, DType::float8_e4m3fn, grid_shape(content));
    const auto globals = static_cast<std::int64_t>(content.globals);
    add_tensor(written, PartRole::global_scale, tensor_of(module, "weight_scale_2"), DType::float32,
               globals == 1 ? std::vector<std::int64_t>() : std::vector<std::int64_t>{globals});
  } else if (content.element != Element::e4m3) {
    return refuse_scheme(content, written, "fp8, mxfp8 and nvfp4");
  } else if (content.scheme == "mxfp8") {
    add_tensor(written, PartRole::codes, weight, DType::float8_e4m3fn, content.shape);
    add_tensor(written, PartRole::scales, scale, DType::uint8, grid_shape(content));
  } else if (content.scheme == "fp8-tensor" || content.scheme == "fp8-channel") {
    std::vector<std::int64_t> shape;
    if (content.scheme == "fp8-channel") shape.assign(content.shape.begin(), content.shape.end() - 1);
    add_tensor(written, PartRole::codes, weight, DType::float8_e4m3fn, content.shape);
    add_tensor(written, PartRole::scales, scale, content.scales, std::move(shape));
  } else if (content.scheme == "fp8-block" && content.block_rows == 128 && content.block_columns == 128 &&
             content.shape.size() == 2) {
    const std::vector<std::int64_t> grid = grid_shape(content);
    add_tensor(written, PartRole::codes, weight, DType::float8_e4m3fn, content.shape);
    add_tensor(written, PartRole::scales, scale, content.scales, {grid[0], 1, grid[1], 1});
  } else {
    return refuse_scheme(content, written, "fp8-tensor, fp8-channel, fp8-block of 128 x 128, mxfp8 and nvfp4");
  }
  if (content.scheme == "fp8-tensor" && content.input_scale == GlobalScale::none && written.ok()) {
    written.refusal =
        "modelopt has fp8-tensor only with a calibrated scale of activations, without which loaders divide by almost "
        "zero, and this weight has none; fp8-channel needs none";
  }
  if (content.input_scale != GlobalScale::none) {
    add_tensor(written, PartRole::activations, tensor_of(module, "input_scale"), DType::float32, {});
  }
}

void describe_modelopt(const WrittenModel& model, WrittenConfig& config) {
  std::map<std::string, std::vector<const Layer*>> algorithms;
  for (const Layer& layer : model.layers) algorithms[written_algorithm(layer)].push_back(&layer);
  const bool mixed = algorithms.size() > 1;
  const std::string algorithm = mixed ? "MIXED_PRECISION" : algorithms.begin()->first;
  const std::int64_t size = mixed ? 0 : group_size_of(*algorithms.begin()->second.front());
  const Json producer = {{"name", "modelopt"}};
  const Json cache = model.float8_cache ? Json("FP8") : Json(nullptr);
  Json quantization = method_of(algorithm, size);
  quantization["kv_cache_quant_algo"] = cache;
  quantization["exclude_modules"] = model.unquantized;
  Json groups = Json::object();
  Json layers = Json::object();
  for (const auto& [name, members] : algorithms) {
    const Layer& first = *members.front();
    Json group = {{"weights", weights_of(first)}, {"targets", {"Linear"}}};
    if (name == "NVFP4" || name == "FP8") group["input_activations"] = weights_of(first);
    if (mixed) {
      group["targets"] = Json::array();
      for (const Layer* layer : members) {
        const std::string module = module_of(layer->name);
        group["targets"].push_back(module);
        layers[module] = method_of(name, group_size_of(*layer));
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

}  // namespace tensorcast::quantized
