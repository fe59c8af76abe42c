// SPDX-License-Identifier: Apache-2.0
// GPTQ, AWQ and auto-round: qweight, qzeros, scales, g_idx of a transposed weight. Version 1 of GPTQ stores zero points
// less one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "block/format/code_packing.hpp"
#include "dtype/lookup.hpp"
#include "dtype/lower_case.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/module_settings.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::int64_t gptq_word_bits = 32;

// Keys of GPTQModel, AutoGPTQ, optimum, AutoAWQ and auto-round that say how codes were found, not what they mean.
constexpr auto tuning_keys = keys_of<
    "damp_percent damp_auto_increment static_groups true_sequential model_name_or_path model_file_base_name dataset "
    "tokenizer batch_size block_name_to_quantize module_name_preceding_first_block modules_in_block_to_quantize "
    "use_cuda_fp16 use_exllama exllama_config max_input_length cache_block_outputs model_seqlen pad_token_id "
    "disable_exllama backend parallel_packing mse offload_to_disk offload_to_disk_path hyb_act act_group_aware lm_head "
    "gptaq gptaq_alpha v2 v2_alpha failsafe pack_impl adapter device do_fuse fuse_max_seq_len modules_to_fuse meta "
    "iters lr minmax_lr nsamples seqlen amp low_gpu_mem_usage low_cpu_mem_usage enable_quanted_input "
    "enable_minmax_tuning enable_norm_bias_tuning gradient_accumulate_steps act_bits act_data_type act_group_size "
    "act_sym act_dynamic to_quant_block_names quant_block_list quant_lm_head supported_types scale_dtype "
    "static_kv_dtype static_attention_dtype static_attention_granularity static_kv_granularity "
    "attention_input_activations autoround_version export_format enable_torch_compile not_use_best_mse dynamic_max_gap "
    "nblocks lr_scheduler sampler use_quant_input truncation disable_opt_rtn enable_alg_ext model_dtype "
    "fp8_dtype_flavor device_map">(KeyType::any);
// What codes mean.
constexpr auto integer_keys =
    joined(deciding_keys<"bits group_size">(KeyType::integer),
           deciding_keys<"sym zero_point desc_act is_marlin_format">(KeyType::flag),
           deciding_keys<"pack_dtype data_type">(KeyType::text),
           std::to_array<KnownKey>({{.name = "w_bit", .type = KeyType::integer, .means = "bits"},
                                    {.name = "q_group_size", .type = KeyType::integer, .means = "group_size"}}));
constexpr auto module_keys = joined(integer_keys, tuning_keys);
constexpr auto keys_of_gptq = joined(
    module_keys, deciding_keys<"checkpoint_format">(KeyType::text),
    std::to_array<KnownKey>({{.name = "format", .type = KeyType::text, .means = "checkpoint_format"},
                             {.name = "dynamic", .type = KeyType::groups, .decides = true, .members = module_keys}}));
constexpr auto keys_of_awq = joined(
    module_keys, keys_with_only<"pack_method">(KeyType::text, "reorder"), deciding_keys<"version">(KeyType::text),
    std::to_array<KnownKey>({{.name = "format", .type = KeyType::text, .means = "version"},
                             {.name = "checkpoint_format", .type = KeyType::text, .means = "version"}}));
constexpr auto keys_of_auto_round = joined(
    module_keys, deciding_keys<"packing_format">(KeyType::text), deciding_keys<"hadamard_config">(KeyType::object),
    deciding_keys<"rotation_configs weight_block_size">(KeyType::list),
    keys_with_only<"super_bits super_group_size">(KeyType::integer, "null"), keys_of<"version">(KeyType::text),
    deciding_keys<"desc_act">(KeyType::flag),
    std::to_array<KnownKey>({{.name = "extra_config", .type = KeyType::groups, .decides = true, .members = module_keys},
                             {.name = "regex_config", .type = KeyType::groups, .members = module_keys}}));

bool is_width(std::int64_t bits) { return bits == 2 || bits == 3 || bits == 4 || bits == 8; }

// Symmetric codes have the middle for all their zero points, which some loaders do not even read.
void check_symmetric(const ModelTensors& tensors, std::optional<std::size_t> zeros, int bits, unsigned middle,
                     std::string_view said, const Description& description, LayerBuilder& builder) {
  constexpr std::uint64_t most = std::uint64_t{64} << 20;
  if (!builder.ok() || !zeros) return;
  const Result<std::vector<std::byte>> words = tensors.read(*zeros, most);
  if (!words) return builder.fail(words.error().message, zeros);
  const std::size_t width = static_cast<std::size_t>(bits), piece = 1024 * width;  // bytes of whole codes
  for (std::size_t begin = 0; begin < words->size(); begin += piece) {
    const auto packed = std::span(*words).subspan(begin, std::min(piece, words->size() - begin));
    std::vector<std::uint8_t> codes(packed.size() * 8 / width);
    block::unpack_stream(bits, packed.data(), codes);
    const auto other = std::ranges::find_if(codes, [=](std::uint8_t zero) { return zero != middle; });
    if (other == codes.end()) continue;
    return builder.fail(fmt::format("{} says {}, which stores zero points of {}, and here is one of {}",
                                    description.source, said, middle, *other),
                        zeros);
  }
}

// Checks qzeros and scales, of which both spellings have one row for each group.
void check_groups(const ModelTensors& tensors, std::optional<std::size_t> scales, std::optional<std::size_t> zeros,
                  std::int64_t outputs, std::int64_t groups, std::int64_t bits, LayerBuilder& builder) {
  if (!builder.ok()) return;
  const std::vector<std::int64_t> scale_shape = {groups, outputs},
                                  zero_shape = {groups, outputs * bits / gptq_word_bits};
  builder.expect(is_plain_float(tensors[*scales].dtype) && tensors[*scales].shape == scale_shape, scales,
                 "its groups have scales of {}", shape_text(scale_shape));
  builder.expect(tensors[*zeros].dtype == DType::int32 && tensors[*zeros].shape == zero_shape, zeros,
                 "its groups have zero points of int32 {}", shape_text(zero_shape));
}

// Sets the size of groups along the inputs; -1: one for all.
void set_group(std::optional<std::int64_t> size, std::int64_t inputs, const Description& description,
               LayerBuilder& builder) {
  Layer& layer = builder.layer();
  layer.block_rows = 1;
  layer.block_columns = !size || *size == -1 ? std::max<std::int64_t>(inputs, 1) : *size;
  if (layer.block_columns < 1) {
    builder.fail(fmt::format("the group size that {} names is not a whole number above 0", description.source));
  }
}

// A file without g_idx has its groups in order. All inputs in group 0 of several is what some tools write for that, and
// others take by its word.
void check_index(const ModelTensors& tensors, std::optional<std::size_t> index, const ModuleSection& section,
                 std::int64_t inputs, const Description& description, LayerBuilder& builder) {
  const bool several = builder.layer().block_columns < inputs;
  // auto-round has no act order.
  const bool in_order = description.method != layouts::gptq.name || !section.is("desc_act", true);
  if (!index && several && !in_order) {
    return builder.fail(fmt::format("{} {}, groups in an order that g_idx tells, which is missing", description.source,
                                    section.is("desc_act") ? "names desc_act" : "does not say that desc_act is false"));
  }
  if (!index || !builder.ok()) return;
  const bool fits = tensors[*index].dtype == DType::int32 && tensors[*index].shape == std::vector{inputs};
  if (!builder.expect(fits, index, "{} inputs have as many groups of int32", inputs)) return;
  constexpr std::uint64_t most = std::uint64_t{64} << 20;
  const Result<std::vector<std::byte>> groups = tensors.read(*index, most);
  if (!groups) return builder.fail(groups.error().message, index);
  if (several && std::ranges::all_of(*groups, [](std::byte byte) { return byte == std::byte{}; })) {
    builder.fail("all inputs are of group 0, which tools read in two ways", index);
  }
}

// What modules may say of the words that both spellings have.
void check_packing(const ModuleSection& section, LayerBuilder& builder) {
  const std::string type = section.text("data_type"), words = section.text("pack_dtype");
  if (section.is("is_marlin_format")) builder.fail("the layout \"marlin\" is not decoded");
  if ((!type.empty() && type != "int") || (!words.empty() && words != "int32")) {
    builder.fail(fmt::format("codes of {} in words of {} are not decoded", type.empty() ? "int" : type,
                             words.empty() ? "int32" : words));
  }
}

constexpr std::array<std::string_view, 2> gptq_versions = {"gptq", "gptq_v2"};

void complete_gptq(const ModelTensors& tensors, const std::string& module, const ModuleSection& section,
                   const Description& description, LayerBuilder& builder) {
  const std::int64_t bits = section.size("bits").value_or(not_a_size);
  const std::string version = lower_case(section.text("checkpoint_format"));
  Layer& layer = builder.layer();
  layer.scheme = fmt::format("gptq-{}bit", bits);
  const std::optional<std::size_t> scales = builder.need(tensor_of(module, "scales"), PartRole::scales);
  const std::optional<std::size_t> zeros = builder.need(tensor_of(module, "qzeros"), PartRole::zero_points);
  const std::optional<std::size_t> index = builder.add(tensor_of(module, "g_idx"), PartRole::group_index);
  if (!is_width(bits)) {
    layer.scheme = "gptq";
    builder.fail(fmt::format("{} names another width than 2, 3, 4 and 8 bits", description.source));
  }
  if (!version.empty() && !contains(gptq_versions, version)) {
    builder.fail(fmt::format("the layout \"{}\" of GPTQ is not decoded", version));
  }
  check_packing(section, builder);
  builder.need_codes_of({DType::int32}, 2);
  if (!builder.ok()) return;
  const std::int64_t outputs = builder.codes().shape[1];
  std::int64_t inputs = 0;
  if (__builtin_mul_overflow(builder.codes().shape[0], gptq_word_bits, &inputs)) builder.fail("its shape is too large");
  inputs /= bits;
  if (builder.codes().shape[0] % bits * gptq_word_bits % bits != 0)
    builder.fail("its rows are not whole groups of codes");
  const bool second = version == gptq_versions.back();
  if (second && layer.spelling == layouts::gptq.name) layer.spelling = layouts::gptq_v2.name;
  layer.shape = {outputs, inputs};
  layer.coding = {.element = DType::uint8,
                  .bits = static_cast<int>(bits),
                  .packing = BlockPacking::words_down,
                  .zero_added = second ? 0 : 1};
  set_group(section.size("group_size", -1), inputs, description, builder);
  if (outputs * bits % gptq_word_bits != 0) builder.fail("zero points of its columns are not whole words");
  if (builder.ok()) {
    check_groups(tensors, scales, zeros, outputs, blocks_of(inputs, layer.block_columns), bits, builder);
  }
  check_index(tensors, index, section, inputs, description, builder);
  if (section.is("sym")) {
    const unsigned middle = (1u << (bits - 1)) - (second ? 0 : 1);
    check_symmetric(tensors, zeros, static_cast<int>(bits), middle,
                    fmt::format("sym and {}", second ? "gptq_v2" : "no gptq_v2"), description, builder);
  }
}

void complete_awq(const ModelTensors& tensors, const std::string& module, const ModuleSection& section,
                  const Description& description, LayerBuilder& builder) {
  constexpr std::int64_t bits = 4, per_word = 8;
  constexpr unsigned middle = 8;
  const std::string version = lower_case(section.text("version"));
  Layer& layer = builder.layer();
  layer.scheme = "awq-4bit";
  const std::optional<std::size_t> scales = builder.need(tensor_of(module, "scales"), PartRole::scales);
  const std::optional<std::size_t> zeros = builder.need(tensor_of(module, "qzeros"), PartRole::zero_points);
  if (section.size("bits").value_or(bits) != bits) {
    builder.fail(fmt::format("{} names another width than 4 bits", description.source));
  }
  if (!version.empty() && version != "gemm") {
    builder.fail(fmt::format("the layout \"{}\" of AWQ is not decoded", version));
  }
  check_packing(section, builder);
  if (section.is("desc_act")) builder.fail("AWQ has no groups in an order of their own, as desc_act names");
  if (lower_case(section.text("backend")) == "llm-awq") {
    builder.fail("the layout of llm-awq, which is that of a GPU kernel, is not decoded");
  }
  builder.need_codes_of({DType::int32}, 2);
  if (!builder.ok()) return;
  const std::int64_t inputs = builder.codes().shape[0];
  std::int64_t outputs = 0;
  if (__builtin_mul_overflow(builder.codes().shape[1], per_word, &outputs)) builder.fail("its shape is too large");
  layer.shape = {outputs, inputs};
  layer.coding = {.element = DType::uint8, .bits = bits, .packing = BlockPacking::awq};
  set_group(section.size("group_size", -1), inputs, description, builder);
  if (!builder.ok()) return;
  check_groups(tensors, scales, zeros, outputs, blocks_of(inputs, layer.block_columns), bits, builder);
  if (!section.is("zero_point", true)) {
    check_symmetric(tensors, zeros, bits, middle, "zero_point false", description, builder);
  }
}

using Complete = void (*)(const ModelTensors&, const std::string&, const ModuleSection&, const Description&,
                          LayerBuilder&);

// Codes of the modules that have a qweight.
void add_all(const ModelTensors& tensors, const Description& description, const ModuleSettings& settings,
             std::string_view spelling, Complete complete, std::vector<Layer>& layers) {
  for (const auto& [i, module] : tensors.of_modules("qweight")) {
    LayerBuilder builder(tensors, spelling, tensor_of(module, "weight"), i);
    builder.layer().scheme = complete == complete_awq ? "awq" : "gptq";
    if (const Result<ModuleSection> section = settings.section_of(description.section, module)) {
      complete(tensors, module, *section, description, builder);
    } else {
      builder.fail(fmt::format("{}: {}", description.source, section.error().message));
    }
    layers.push_back(std::move(builder).done());
  }
}

void find_gptq(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  const Json* dynamic = object_in(description->section, "dynamic");
  const Json* meta = object_in(description->section, "meta");  // where GPTQModel had it first
  if (dynamic == nullptr && meta != nullptr) dynamic = object_in(*meta, "dynamic");
  add_all(tensors, *description, ModuleSettings::of_gptq(dynamic), "gptq", complete_gptq, layers);
}

void find_awq(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  add_all(tensors, *description, {}, "awq", complete_awq, layers);
}

void find_auto_round(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  constexpr std::string_view prefix = "auto_round:";
  Description all = *description;
  const Json& section = all.section;
  std::string packing = text_in(section, "packing_format");
  if (packing.starts_with(prefix)) packing = packing.substr(prefix.size());
  const std::size_t before = layers.size();
  const bool awq = packing == "auto_awq";
  Json of_modules = Json::object();
  for (const char* key : {"regex_config", "extra_config"}) {
    if (const Json* some = object_in(section, key)) of_modules.update(*some);
  }
  const auto settings = ModuleSettings::of_auto_round(&of_modules);
  add_all(tensors, all, settings, awq ? "auto-round-awq" : "auto-round", awq ? complete_awq : complete_gptq, layers);
  const bool known = awq || packing == "auto_gptq";
  for (const char* key : {"hadamard_config", "rotation_configs"}) {
    const auto change = section.find(key);
    if (change == section.end() || change->is_null() || change->empty()) continue;
    for (std::size_t i = before; i < layers.size(); ++i) {
      if (!layers[i].problem.empty()) continue;
      layers[i].problem =
          fmt::format("{} has a {}, which changes the weights beside their codes and is not undone", all.source, key);
      layers[i].problem_tensor = tensors[layers[i].codes()].name;
    }
  }
  for (std::size_t i = before; i < layers.size() && !known; ++i) {
    if (!layers[i].problem.empty()) continue;
    layers[i].problem =
        fmt::format("the packing_format \"{}\" of auto-round is not decoded", text_in(section, "packing_format"));
    layers[i].problem_tensor = tensors[layers[i].codes()].name;
  }
  // Layers of DeepSeek's that stayed as they were.
  constexpr std::int64_t block = 128;
  if (all.section["weight_block_size"].is_null()) all.section["weight_block_size"] = {block, block};
  layouts::deepseek.find(tensors, &all, layers);
}

// --- Writing

// How the spellings pack a layer.
struct ColumnLayout {
  std::string_view spelling;
  BlockPacking packing = BlockPacking::words_down;
  int zero_added = 0;
  bool has_index = false;
  std::string_view word = {};  // checkpoint_format or packing_format
};
constexpr ColumnLayout column_layouts[] = {
    {.spelling = "gptq", .zero_added = 1, .has_index = true, .word = gptq_versions.front()},
    {.spelling = "gptq-v2", .has_index = true, .word = gptq_versions.back()},
    {.spelling = "awq", .packing = BlockPacking::awq},
    {.spelling = "auto-round", .zero_added = 1, .word = "auto_round:auto_gptq"},
    {.spelling = "auto-round-awq", .packing = BlockPacking::awq, .word = "auto_round:auto_awq"}};

const ColumnLayout& column_layout_of(const Layer& layer) {
  return *find_row(column_layouts, &ColumnLayout::spelling, layer.spelling);
}

void spell_columns(const LayerContent& content, WrittenLayer& written) {
  Layer& layer = written.layer;
  const ColumnLayout& layout = column_layout_of(layer);
  const bool is_awq = layout.packing == BlockPacking::awq;
  const int bits = content.coding.bits;
  if (!is_integer(content.coding.element) || !(is_awq ? bits == 4 : is_width(bits))) {
    return refuse_scheme(content, written, is_awq ? "integers of 4 bits" : "integers of 2, 3, 4 and 8 bits");
  }
  written.need(content.shape.size() == 2, "{} has matrices, and the weight is {}", layer.spelling,
               shape_text(content.shape));
  const bool has_scales = content.block_rows == 1 && content.block_columns >= 1;
  if (!written.need(has_scales, "{} has scales for each output, and this is {}", layer.spelling, content.scheme))
    return;
  const std::int64_t outputs = content.shape[0], inputs = content.shape[1];
  const std::int64_t group = std::min(content.block_columns, std::max<std::int64_t>(inputs, 1));
  need_whole_groups(content, group, written);
  for (const auto& [size, what] : {std::pair(outputs, "outputs"), std::pair(inputs, "inputs")}) {
    written.need(size * bits % gptq_word_bits == 0, "{} {} of {} bits are not whole words of 32 bits", size, what,
                 bits);
  }
  if (!written.ok()) return;
  const std::string module = module_of(content.name);
  layer.name = tensor_of(module, "weight");
  layer.scheme = fmt::format("{}-{}bit", is_awq ? "awq" : "gptq", bits);
  layer.block_columns = group;
  layer.symmetric = !content.zero_points;
  layer.coding.packing = layout.packing;
  layer.coding.element = DType::uint8;
  layer.coding.zero_added = layout.zero_added;
  const std::int64_t groups = inputs == 0 ? 0 : inputs / group, zero_words = outputs * bits / gptq_word_bits;
  add_tensor(written, PartRole::codes, tensor_of(module, "qweight"), DType::int32,
             is_awq ? std::vector{inputs, zero_words} : std::vector{inputs * bits / gptq_word_bits, outputs});
  add_tensor(written, PartRole::scales, tensor_of(module, "scales"), content.stored_scales(), {groups, outputs});
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
  return "^" + (target.starts_with("re:") ? target.substr(3) : literal_pattern(target) + "$");
}

void describe_gptq(const WrittenModel& model, WrittenConfig& config) {
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
                  {"checkpoint_format", column_layout_of(model.layers.front()).word},
                  {"pack_dtype", "int32"}});
  if (!dynamic.empty()) section["dynamic"] = std::move(dynamic);
  config.section = section.dump();
}

void describe_auto_round(const WrittenModel& model, WrittenConfig& config) {
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
                  {"packing_format", column_layout_of(model.layers.front()).word}});
  if (!own.empty()) section["extra_config"] = std::move(own);
  config.section = section.dump();
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

}  // namespace

constinit const Spelling layouts::gptq = {.name = "gptq",
                                          .methods = {{.name = "gptq"}},
                                          .keys = keys_of_gptq,
                                          .find = find_gptq,
                                          .spell = spell_columns,
                                          .describe = describe_gptq};

constinit const Spelling layouts::awq = {.name = "awq",
                                         .methods = {{.name = "awq",
                                                      .list = "modules_to_not_convert",
                                                      .list_is_open = true,
                                                      .rest_is_quantized = true,
                                                      .skips_head = true}},
                                         .keys = keys_of_awq,
                                         .find = find_awq,
                                         .spell = spell_columns,
                                         .describe = describe_awq};

constinit const Spelling layouts::auto_round = {.name = "auto-round",
                                                .methods = {{.name = "auto-round"}},
                                                .keys = keys_of_auto_round,
                                                .find = find_auto_round,
                                                .spell = spell_columns,
                                                .describe = describe_auto_round};

// What is found again as gptq and auto-round.
constinit const Spelling layouts::gptq_v2 = {.name = "gptq-v2", .spell = spell_columns, .describe = describe_gptq};
constinit const Spelling layouts::auto_round_awq = {
    .name = "auto-round-awq", .spell = spell_columns, .describe = describe_auto_round};

}  // namespace tensorcast::quantized
