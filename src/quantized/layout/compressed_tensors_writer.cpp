// SPDX-License-Identifier: Apache-2.0
// Writes compressed-tensors: a group of its configuration for each scheme.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>

#include "dtype/lookup.hpp"
#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/compressed_tensors_schemes.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/names/tensor_kind.hpp"

namespace tensorcast::quantized {
namespace {

// The tool packs no groups with a shorter last one.
void need_groups(const LayerContent& content, WrittenLayer& written) {
  const bool groups =
      content.block_rows == 1 && content.block_columns > 0 && content.block_columns != content.shape.back();
  if (groups) need_whole_groups(content, content.block_columns, written);
}

// weight, weight_scale; int8 perhaps with zero points.
void spell_bytes(const LayerContent& content, WrittenLayer& written) {
  const std::string module = module_of(content.name);
  const bool integer = is_integer(content.coding.element);
  std::vector<std::int64_t> shape = grid_shape(content);
  if (content.block_rows == 0) shape = {1};
  add_tensor(written, PartRole::codes, tensor_of(module, "weight"), integer ? DType::int8 : DType::float8_e4m3fn,
             content.shape);
  add_tensor(written, PartRole::scales, tensor_of(module, "weight_scale"), content.stored_scales(), shape);
  if (content.zero_points) {
    add_tensor(written, PartRole::zero_points, tensor_of(module, "weight_zero_point"), DType::int8, std::move(shape));
  }
}

// weight_packed in words, weight_scale, weight_shape, weight_zero_point.
void spell_packed_integers(const LayerContent& content, WrittenLayer& written) {
  const std::string module = module_of(content.name);
  BlockCoding& coding = written.layer.coding;
  need_groups(content, written);
  coding.element = DType::uint8;
  coding.offset = 1 << (content.coding.bits - 1);
  add_tensor(written, PartRole::codes, tensor_of(module, "weight_packed"), DType::int32,
             packed_shape(content, 32, content.coding.bits));
  add_tensor(written, PartRole::scales, tensor_of(module, "weight_scale"), content.stored_scales(),
             grid_shape(content));
  const auto rank = static_cast<std::int64_t>(content.shape.size());
  WrittenTensor& shape = add_tensor(written, PartRole::state, tensor_of(module, "weight_shape"), DType::int64, {rank});
  const auto lengths = std::as_bytes(std::span(content.shape));
  shape.constant.assign(lengths.begin(), lengths.end());
  if (!content.zero_points) return;
  std::vector<std::int64_t> zeros = grid_shape(content);
  written.need(zeros.size() == 2, "zero points of 3-D weights are not known");
  zeros[0] = blocks_of(zeros[0] * content.coding.bits, 32);
  add_tensor(written, PartRole::zero_points, tensor_of(module, "weight_zero_point"), DType::int32, std::move(zeros));
}

const StoredScheme* stored_of(const Layer& layer) {
  return find_row(stored_by_compressed_tensors, &StoredScheme::scheme, layer.scheme);
}

std::string written_format(const Layer& layer) {
  if (const StoredScheme* const stored = stored_of(layer)) return std::string(stored->word);
  if (layer.coding.element == DType::uint8) return "pack-quantized";
  return is_integer(layer.coding.element) ? "int-quantized" : "float-quantized";
}

// The arguments of a scheme's weights, as version 0.20 writes them. Loaders do not read the observer, which
// llm-compressor always names.
Json weights_of(const Layer& layer) {
  const bool integer = is_integer(layer.coding.element);
  Json weights = {{"num_bits", layer.coding.bits},
                  {"type", integer ? "int" : "float"},
                  {"symmetric", !layer.find(PartRole::zero_points)},
                  {"dynamic", false},
                  {"group_size", nullptr},
                  {"observer", "memoryless_minmax"}};
  const bool channel = layer.block_rows == 1 && layer.block_columns >= layer.shape.back();
  if (const StoredScheme* const stored = stored_of(layer)) {
    weights["strategy"] = stored->global.empty() ? "group" : "tensor_group";
    weights["group_size"] = layer.block_columns;
    weights["scale_dtype"] = stored->global.empty() ? "torch.uint8" : "torch.float8_e4m3fn";
  } else if (layer.block_rows == 0) {
    weights["strategy"] = "tensor";
  } else if (layer.block_rows > 1) {
    weights["strategy"] = "block";
    weights["block_structure"] = {layer.block_rows, layer.block_columns};
  } else if (channel && layer.scheme.ends_with("channel")) {
    weights["strategy"] = "channel";
  } else {
    weights["strategy"] = "group";
    weights["group_size"] = layer.block_columns;
  }
  return weights;
}

// How activations are quantized: with a scale that is there, or while the model runs, as the presets of
// compressed-tensors have it: FP8_DYNAMIC, FP8_BLOCK, INT8, MXFP8, MXFP6A8, and MXFP4XFP8 for weights of 4 bits.
Json activations_of(const Layer& layer) {
  const bool fixed = layer.find(PartRole::activations).has_value(), integer = is_integer(layer.coding.element);
  const StoredScheme* const stored = stored_of(layer);
  const bool has_global = stored != nullptr && !stored->global.empty(), is_mx = stored != nullptr && !has_global;
  const bool is_fixed_kind = has_global || (!integer && !is_mx);
  if (!(fixed && is_fixed_kind) && !layer.dynamic_activations) return nullptr;
  Json inputs = {{"num_bits", 8},         {"type", integer ? "int" : "float"},
                 {"symmetric", true},     {"dynamic", !fixed},
                 {"group_size", nullptr}, {"strategy", fixed ? "tensor" : "token"}};
  if (has_global) {
    inputs["num_bits"] = 4;
    inputs["strategy"] = "tensor_group";
    inputs["group_size"] = layer.block_columns;
    inputs["dynamic"] = "local";
    inputs["scale_dtype"] = "torch.float8_e4m3fn";
  } else if (!fixed && (is_mx || layer.scheme == "fp8-block")) {
    constexpr int float8_group = 128;
    inputs["strategy"] = "group";
    inputs["group_size"] = is_mx && layer.coding.bits == 4 ? float8_group : layer.block_columns;
    if (is_mx && layer.coding.bits > 4) inputs["scale_dtype"] = "torch.uint8";
  }
  return inputs;
}

// Multimodal models keep modules elsewhere than files name them: transformers moves "language_model.model.layers.0" to
// "model.language_model.layers.0". Loaders match the names of modules, so both are written.
std::vector<std::string> with_moved_names(std::vector<std::string> modules, bool has_towers) {
  struct Move {
    std::string_view from, to;
    bool beside_towers;  // plain models have such names, too
  };
  constexpr Move moves[] = {{"language_model.model.", "model.language_model.", false},
                            {"language_model.lm_head", "lm_head", false},
                            {"model.layers.", "model.language_model.layers.", true}};
  const std::size_t count = modules.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (const Move& move : moves) {
      if (!modules[i].starts_with(move.from) || (move.beside_towers && !has_towers)) continue;
      std::string moved = std::string(move.to) + modules[i].substr(move.from.size());
      if (std::ranges::find(modules, moved) == modules.end()) modules.push_back(std::move(moved));
    }
  }
  return modules;
}

// Patterns for towers, and experts of a layer, of which nothing is quantized, wherever loaders have them. For experts
// in one tensor, too, vLLM looks for the modules that single ones would have: "experts.0.gate_proj".
std::set<std::string> patterns_of_wholes(const std::vector<std::string>& unquantized,
                                         const std::vector<std::string>& quantized) {
  std::set<std::string> patterns;
  const auto add = [&](const std::string& part, const std::string& pattern) {
    const auto inside = [&](const std::string& other) { return other.find(part) != std::string::npos; };
    if (!part.empty() && std::ranges::none_of(quantized, inside)) patterns.insert("re:.*" + pattern + ".*");
  };
  for (const std::string& module : unquantized) {
    const std::string tower(file_conversion::tower_of(module).part);
    add(tower, tower);
    const std::string inside_of = module + ".";
    if (experts_module(inside_of) != module) continue;
    const std::size_t layers = inside_of.find("layers.");
    const std::string experts = inside_of.substr(layers == std::string::npos ? 0 : layers);
    add(experts, literal_pattern(experts));
  }
  return patterns;
}

}  // namespace

void spell_compressed_tensors(const LayerContent& content, WrittenLayer& written) {
  const std::string module = module_of(content.name);
  written.layer.name = tensor_of(module, "weight");
  const bool integer = is_integer(content.coding.element);
  // Loaders read groups of integers in words alone.
  const bool in_groups =
      content.block_rows == 1 && content.block_columns > 0 && content.block_columns < content.shape.back();
  const StoredScheme* const stored = find_stored(stored_by_compressed_tensors, content);
  if (stored != nullptr) {
    spell_as(*stored, content, written);
  } else if ((content.coding.bits == 8 && integer && !in_groups) ||
             (content.coding.element == DType::float8_e4m3fn && content.scheme != "codes")) {
    spell_bytes(content, written);
  } else if (integer) {
    spell_packed_integers(content, written);
  } else {
    return refuse_scheme(content, written, "float8_e4m3fn, mxfp4, mxfp6 (e2m3), mxfp8, nvfp4 and integers");
  }
  if (integer) return;
  add_input_scale(content, written,
                  written.layer.coding.global == GlobalScale::divisor ? "input_global_scale" : "input_scale", {1});
}

void describe_compressed_tensors(const WrittenModel& model, WrittenConfig& config) {
  // The layers of each group, by what it says.
  std::map<std::string, std::vector<std::string>> groups;
  std::map<std::string, Json> bodies;
  for (const Layer& layer : model.layers) {
    Json body = {{"weights", weights_of(layer)},
                 {"input_activations", activations_of(layer)},
                 {"output_activations", nullptr},
                 {"format", written_format(layer)}};
    const std::string key = body.dump();
    bodies.emplace(key, std::move(body));
    groups[key].push_back(module_of(layer.name));
  }
  Json list = Json::object();
  std::vector<std::string> quantized;
  const bool has_towers = std::ranges::any_of(
      model.unquantized, [](const std::string& module) { return !file_conversion::tower_of(module).part.empty(); });
  for (auto& [key, modules] : groups) {
    Json body = bodies.at(key);
    if (groups.size() == 1) {
      body["targets"] = {"Linear"};
      // vLLM's class for a head is no Linear, so that it goes by its name.
      std::ranges::copy_if(with_moved_names(modules, has_towers), std::back_inserter(body["targets"]), is_head);
    } else {
      std::vector<std::string> others = model.unquantized;
      for (const auto& [other, names] : groups) {
        if (other != key) others.insert(others.end(), names.begin(), names.end());
      }
      body["targets"] = module_targets(with_moved_names(modules, has_towers), others);
    }
    quantized.insert(quantized.end(), modules.begin(), modules.end());
    list[fmt::format("group_{}", list.size())] = std::move(body);
  }
  std::vector<std::string> ignore = module_targets(with_moved_names(model.unquantized, has_towers), quantized);
  for (const std::string& pattern : patterns_of_wholes(model.unquantized, quantized)) ignore.push_back(pattern);
  const Json format = groups.size() == 1 ? bodies.begin()->second.at("format") : Json("mixed-precision");
  Json section = {{"quant_method", "compressed-tensors"}, {"format", format},
                  {"quantization_status", "compressed"},  {"global_compression_ratio", nullptr},
                  {"kv_cache_scheme", nullptr},           {"ignore", std::move(ignore)},
                  {"config_groups", std::move(list)},     {"sparsity_config", Json::object()},
                  {"transform_config", Json::object()},   {"moe_sparsity_config", nullptr}};
  if (model.float8_cache) {
    section["kv_cache_scheme"] = {
        {"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}, {"symmetric", true}, {"dynamic", false}};
  }
  config.section = section.dump();
}

}  // namespace tensorcast::quantized
