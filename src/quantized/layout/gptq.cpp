// SPDX-License-Identifier: Apache-2.0
// GPTQ: qweight, qzeros, scales, g_idx of a transposed weight. Version 1 stores zero points less one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "block/format/code_packing.hpp"
#include "dtype/lookup.hpp"
#include "dtype/lower_case.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/gptq_writer.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/module_settings.hpp"
#include "quantized/layout/spelling.hpp"

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
    module_keys,
    std::to_array<KnownKey>({{.name = "checkpoint_format", .type = KeyType::text, .decides = true},
                             {.name = "format", .type = KeyType::text, .means = "checkpoint_format"},
                             {.name = "dynamic", .type = KeyType::groups, .decides = true, .members = module_keys}}));
constexpr auto keys_of_awq =
    joined(module_keys, keys_with_only<"pack_method">(KeyType::text, "reorder"),
           std::to_array<KnownKey>({{.name = "version", .type = KeyType::text, .decides = true},
                                    {.name = "format", .type = KeyType::text, .means = "version"},
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
  if (builder.codes().shape[0] * gptq_word_bits % bits != 0) builder.fail("its rows are not whole groups of codes");
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

}  // namespace

constinit const Spelling layouts::gptq = {.name = "gptq",
                                          .methods = {{.name = "gptq"}},
                                          .keys = keys_of_gptq,
                                          .find = find_gptq,
                                          .spell = spell_gptq,
                                          .describe = describe_gptq};

constinit const Spelling layouts::awq = {.name = "awq",
                                         .methods = {{.name = "awq",
                                                      .list = "modules_to_not_convert",
                                                      .list_is_open = true,
                                                      .rest_is_quantized = true,
                                                      .skips_head = true}},
                                         .keys = keys_of_awq,
                                         .find = find_awq,
                                         .spell = spell_awq,
                                         .describe = describe_awq};

constinit const Spelling layouts::auto_round = {.name = "auto-round",
                                                .methods = {{.name = "auto-round"}},
                                                .keys = keys_of_auto_round,
                                                .find = find_auto_round,
                                                .spell = spell_auto_round,
                                                .describe = describe_auto_round};

}  // namespace tensorcast::quantized
