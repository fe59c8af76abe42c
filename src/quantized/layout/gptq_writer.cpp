// SPDX-License-Identifier: Apache-2.0
// Writes GPTQ, AWQ and auto-round: qweight, qzeros, scales of a transposed weight. What gptq.cpp reads.
#include "quantized/layout/gptq_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/spelling.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::int64_t column_word_bits = 32;

// How one spelling packs a layer.
struct ColumnLayout {
  std::string_view scheme;  // of layers, before their bits
  BlockPacking packing = BlockPacking::words_down;
  int zero_added = 0;
  bool has_index = false;
};

void spell_columns(const ColumnLayout& layout, const LayerContent& content, WrittenLayer& written) {
  const bool is_awq = layout.packing == BlockPacking::awq;
  const int bits = content.coding.bits;
  const bool has_bits = bits == 4 || (!is_awq && (bits == 2 || bits == 3 || bits == 8));
  if (!is_integer(content.coding.element) || !has_bits) {
    return refuse_scheme(content, written, is_awq ? "integers of 4 bits" : "integers of 2, 3, 4 and 8 bits");
  }
  if (content.shape.size() != 2) {
    written.refusal =
        fmt::format("{} has matrices, and the weight is {}", written.layer.spelling, shape_text(content.shape));
    return;
  }
  if (content.block_rows != 1 || content.block_columns < 1) {
    written.refusal =
        fmt::format("{} has scales for each output, and this is {}", written.layer.spelling, content.scheme);
    return;
  }
  const std::int64_t outputs = content.shape[0], inputs = content.shape[1];
  const std::int64_t group = std::min(content.block_columns, std::max<std::int64_t>(inputs, 1));
  need_whole_groups(content, group, written);
  if (written.ok() && outputs * bits % column_word_bits != 0) {
    written.refusal = fmt::format("{} outputs of {} bits are not whole words of 32 bits", outputs, bits);
  } else if (written.ok() && inputs * bits % column_word_bits != 0) {
    written.refusal = fmt::format("{} inputs of {} bits are not whole words of 32 bits", inputs, bits);
  }
  if (!written.ok()) return;
  const std::string module = module_of(content.name);
  Layer& layer = written.layer;
  layer.name = tensor_of(module, "weight");
  layer.scheme = fmt::format("{}-{}bit", layout.scheme, bits);
  layer.block_columns = group;
  layer.symmetric = !content.zero_points;
  layer.coding.packing = layout.packing;
  layer.coding.element = DType::uint8;
  layer.coding.zero_added = layout.zero_added;
  const std::int64_t groups = inputs == 0 ? 0 : inputs / group, zero_words = outputs * bits / column_word_bits;
  add_tensor(written, PartRole::codes, tensor_of(module, "qweight"), DType::int32,
             is_awq ? std::vector{inputs, zero_words} : std::vector{inputs * bits / column_word_bits, outputs});
  const DType scales = content.exact_scales == DType::undefined ? content.scales() : content.exact_scales;
  add_tensor(written, PartRole::scales, tensor_of(module, "scales"), scales, {groups, outputs});
  add_tensor(written, PartRole::zero_points, tensor_of(module, "qzeros"), DType::int32, {groups, zero_words});
  if (!layout.has_index) return;
  WrittenTensor& index = add_tensor(written, PartRole::group_index, tensor_of(module, "g_idx"), DType::int32, {inputs});
  std::vector<std::int32_t> of_inputs(static_cast<std::size_t>(inputs));
  for (std::int64_t i = 0; i < inputs; ++i)
    of_inputs[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i / group);
  const auto bytes = std::as_bytes(std::span(of_inputs));
  index.constant.assign(bytes.begin(), bytes.end());
}

// What a configuration says of layers: bits, and the size of groups; -1: one for all inputs.
using ColumnSettings = std::pair<int, std::int64_t>;

ColumnSettings settings_of(const Layer& layer) {
  return {layer.coding.bits, layer.block_columns >= layer.shape.back() ? -1 : layer.block_columns};
}

// Whether a layer reads the same with `settings` as with its own: a group of 128 is all of 128 inputs.
bool reads_with(const Layer& layer, const ColumnSettings& settings) {
  const bool is_whole = layer.block_columns >= layer.shape.back() && settings.second >= layer.shape.back();
  return layer.coding.bits == settings.first && (settings_of(layer) == settings || is_whole);
}

// The settings of most layers; of groups, if there are any.
ColumnSettings usual_settings(const WrittenModel& model) {
  std::map<ColumnSettings, std::size_t> counts;
  for (const Layer& layer : model.layers) ++counts[settings_of(layer)];
  return std::ranges::max_element(counts, {},
                                  [](const auto& row) { return std::pair(row.first.second > 0, row.second); })
      ->first;
}

bool is_symmetric(const WrittenModel& model) {
  return std::ranges::all_of(model.layers, [](const Layer& layer) { return layer.symmetric; });
}

Json settings_json(const ColumnSettings& settings) {
  return {{"bits", settings.first}, {"group_size", settings.second}};
}

// GPTQModel matches the beginning of a module's name.
std::string pattern_of_module(const std::string& target) {
  if (target.starts_with("re:")) return "^" + target.substr(3);
  std::string pattern = "^";
  for (const char c : target) {
    if (std::string_view(".*+?^$()[]{}|\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "$";
}

void describe_gptq_version(const WrittenModel& model, std::string_view version, WrittenConfig& config) {
  const ColumnSettings usual = usual_settings(model);
  std::map<ColumnSettings, std::vector<std::string>> others;
  std::vector<std::string> quantized, excluded;
  bool has_head = false;
  for (const Layer& layer : model.layers) {
    const std::string module = module_of(layer.name);
    has_head = has_head || is_head(module);
    if (!reads_with(layer, usual)) others[settings_of(layer)].push_back(module);
    quantized.push_back(module);
  }
  // `lm_head` speaks for heads.
  std::ranges::copy_if(model.unquantized, std::back_inserter(excluded),
                       [](const auto& name) { return !is_head(name); });
  Json dynamic = Json::object();
  for (const auto& [settings, modules] : others) {
    std::vector<std::string> rest = model.unquantized;
    std::ranges::copy_if(quantized, std::back_inserter(rest),
                         [&](const auto& name) { return std::ranges::find(modules, name) == modules.end(); });
    for (const std::string& target : module_targets(modules, rest)) {
      dynamic["+:" + pattern_of_module(target)] = settings_json(settings);
    }
  }
  for (const std::string& target : module_targets(excluded, quantized)) {
    dynamic["-:" + pattern_of_module(target)] = Json::object();
  }
  Json section = settings_json(usual);
  section.update({{"quant_method", "gptq"},
                  {"sym", is_symmetric(model)},
                  {"desc_act", false},
                  {"lm_head", has_head},
                  {"checkpoint_format", version},
                  {"pack_dtype", "int32"}});
  if (!dynamic.empty()) section["dynamic"] = std::move(dynamic);
  config.section = section.dump();
}

void describe_auto_round_packing(const WrittenModel& model, std::string_view packing, WrittenConfig& config) {
  const ColumnSettings usual = usual_settings(model);
  Json own = Json::object();
  for (const Layer& layer : model.layers) {
    if (!reads_with(layer, usual)) own[module_of(layer.name)] = settings_json(settings_of(layer));
  }
  for (const std::string& module : model.unquantized) own[module] = {{"bits", 16}, {"data_type", "float"}};
  Json section = settings_json(usual);
  section.update({{"quant_method", "auto-round"},
                  {"sym", is_symmetric(model)},
                  {"data_type", "int"},
                  {"packing_format", packing}});
  if (!own.empty()) section["extra_config"] = std::move(own);
  config.section = section.dump();
}

}  // namespace

void spell_gptq(const LayerContent& content, WrittenLayer& written) {
  spell_columns({.scheme = "gptq", .zero_added = 1, .has_index = true}, content, written);
}
void spell_awq(const LayerContent& content, WrittenLayer& written) {
  spell_columns({.scheme = "awq", .packing = BlockPacking::awq}, content, written);
}
void spell_auto_round(const LayerContent& content, WrittenLayer& written) {
  spell_columns({.scheme = "gptq", .zero_added = 1}, content, written);
}

void describe_gptq(const WrittenModel& model, WrittenConfig& config) { describe_gptq_version(model, "gptq", config); }
void describe_auto_round(const WrittenModel& model, WrittenConfig& config) {
  describe_auto_round_packing(model, "auto_round:auto_gptq", config);
}

// AWQ's loaders take zero points, whether or not all are the middle.
void describe_awq(const WrittenModel& model, WrittenConfig& config) {
  const ColumnSettings usual = usual_settings(model);
  for (const Layer& layer : model.layers) {
    if (reads_with(layer, usual)) continue;
    config.refusal = fmt::format("awq has one size of groups for all layers, and this has {}, where others have {}",
                                 layer.block_columns, usual.second);
    config.refused_layer = layer.name;
    return;
  }
  Json section = settings_json(usual);
  section.update({{"quant_method", "awq"},
                  {"zero_point", true},
                  {"version", "gemm"},
                  {"modules_to_not_convert", model.unquantized}});
  config.section = section.dump();
}

// What is found again as gptq and auto-round.
constinit const Spelling layouts::gptq_v2 = {
    .name = "gptq-v2",
    .spell = [](const LayerContent& content,
                WrittenLayer& written) { spell_columns({.scheme = "gptq", .has_index = true}, content, written); },
    .describe = [](const WrittenModel& model,
                   WrittenConfig& config) { describe_gptq_version(model, "gptq_v2", config); }};

constinit const Spelling layouts::auto_round_awq = {
    .name = "auto-round-awq", .spell = spell_awq, .describe = [](const WrittenModel& model, WrittenConfig& config) {
      describe_auto_round_packing(model, "auto_round:auto_awq", config);
    }};

}  // namespace tensorcast::quantized
