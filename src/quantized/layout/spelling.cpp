// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/spelling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "dtype/lookup.hpp"
#include "dtype/lower_case.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/unread_tensors.hpp"
#include "quantized/names/name_list.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::quantized {
namespace {

struct KnownMethod {
  std::string_view name;
  std::string_view reason;
};

// Methods of transformers and others that are known and not decoded.
constexpr auto known_methods = std::to_array<KnownMethod>({
    {"aqlm", "its codes are those of learned codebooks"},
    {"vptq", "its codes are those of learned codebooks"},
    {"quanto", "its tensors are laid out by optimum-quanto"},
    {"fouroversix", "its blocks choose between two scales"},
    {"fp_quant", "its weights are rotated by a Hadamard transform"},
    {"eetq", "its codes are in the order of a GPU kernel"},
    {"higgs", "its codes are those of a grid, and its weights are rotated"},
    {"hqq", "its zero points are fractions"},
    {"fbgemm_fp8", "its codes are laid out by FBGEMM"},
    {"bitnet", "its codes have three values"},
    {"spqr", "its outliers are in a sparse matrix"},
    {"nvfp4", "transformers quantizes while it loads, and writes no such folder"},
    {"sinq", "it has scales of rows and columns"},
    {"gemma", "its layout is that of Gemma's own quantizer"},
    {"gguf", "the weights are in a GGUF file"},
    {"svdquant", "its weights are sums of codes and low-rank factors, in the order of a GPU kernel"},
    {"exl2", "its codes have several widths, in the order of a GPU kernel"},
    {"exl3", "its codes are those of a trellis, and its weights are rotated"},
});

// Tensors that change the basis of a weight beside its codes, after the name of its module.
constexpr auto basis_changes = std::to_array<std::string_view>(
    {"pre_quant_scale", "svdquant_lora_a", "svdquant_lora_b", "svdquant_smooth_factor"});

const Spelling* spelling_of(std::string_view method) {
  for (const Spelling* spelling : all_spellings()) {
    if (find_row(spelling->methods, &Method::name, method) != nullptr) return spelling;
  }
  return nullptr;
}

// The config decides: without a word in it, bytes named e4m3 are e4m3.
bool has_ue5m3(const Json& section) {
  if (section.is_string()) return lower_case(section.get<std::string>()).find("ue5m3") != std::string::npos;
  return section.is_structured() && std::ranges::any_of(section, has_ue5m3);
}

class Search {
 public:
  Search(std::span<const TensorInfo> tensors, const ReadTensor& read, AcceptedWords accepted)
      : tensors_(tensors, read, accepted) {
    found_.layer_of.assign(tensors.size(), std::nullopt);
  }

  FoundLayers run(std::vector<Description> descriptions) {
    const auto chosen = std::ranges::find_if(descriptions, [](const auto& one) { return !one.method.empty(); });
    if (chosen != descriptions.end()) {
      describe(*chosen, descriptions);
    } else {
      for (const Spelling* spelling : all_spellings()) {
        if (spelling->describes_itself) search(*spelling, nullptr);
      }
    }
    for (Layer& layer : found_.layers) refuse_other_basis(layer);
    refuse_unread(tensors_, found_);
    if (chosen != descriptions.end() && found_.refusal.empty() && found_.any()) note_lone_codes(*chosen);
    return std::move(found_);
  }

 private:
  void describe(const Description& description, std::span<Description> all) {
    found_.source = description.source;
    found_.method = description.method;
    const Spelling* spelling = spelling_of(description.method);
    if (spelling == nullptr) {
      const std::string_view reason = reason_not_decoded(description.method);
      found_.refusal = reason.empty() ? fmt::format("{} names the quantization \"{}\", which is not known",
                                                    description.source, description.method)
                                      : fmt::format("{} names the quantization \"{}\", which is not decoded: {}",
                                                    description.source, description.method, reason);
      return;
    }
    if (std::ranges::any_of(all, [](const Description& one) { return has_ue5m3(one.section); })) {
      problem_ = fmt::format(
          "{} says that its scales are UE5M3 bytes, whatever their type is named, and these are "
          "not decoded",
          description.source);
    }
    const Description whole = merged(description, all, spelling->keys);
    search(*spelling, &whole);
    // Experts of gpt-oss may stand beside others, and ComfyUI's files describe themselves.
    for (const Spelling* other : all_spellings()) {
      if (other->describes_itself && other != spelling) search(*other, nullptr);
    }
    note_excluded(whole);
    note_cache(whole.section);
    if (problem_.empty()) return;
    // What is wrong with the description comes before what follows from it.
    for (Layer& layer : found_.layers) {
      layer.problem = problem_;
      layer.problem_tensor = tensors_[layer.codes()].name;
    }
  }

  // Several files may describe a model, each in part: config.json and hf_quant_config.json of ModelOpt.
  Description merged(const Description& chosen, std::span<Description> all, std::span<const KnownKey> keys) {
    const auto say = [this](std::string problem) {
      if (problem_.empty()) problem_ = std::move(problem);
    };
    Description whole{
        .source = chosen.source, .method = chosen.method, .section = Json::object(), .is_in_file = chosen.is_in_file};
    for (Description& one : all) {
      if (!one.method.empty() && one.method != chosen.method) {
        say(fmt::format("{} names the quantization \"{}\", and {} names \"{}\"", chosen.source, chosen.method,
                        one.source, one.method));
        continue;
      }
      say(key_problem(one.section, keys, one.source, tensors_.accepted()));
      say(use_usual_names(one.section, keys, one.source));
      say(merge(whole, one, keys));
    }
    return whole;
  }

  void note_excluded(const Description& description) {
    const NameList names(unquantized_in(description.section));
    for (const Layer& layer : found_.layers) {
      if (names.has(module_of(layer.name))) found_.excluded.push_back(layer.name);
    }
  }

  // kv_cache_scheme, or ModelOpt's kv_cache_quant_algo.
  void note_cache(const Json& section) {
    const auto note = [this](const char* key, bool is_float8, const Json& value) {
      if (is_float8) {
        found_.float8_cache = true;
      } else if (found_.other_cache.empty()) {
        found_.leaves_cache = is_accepted(tensors_.accepted(), key);
        found_.other_cache = value.dump(-1, ' ', true, Json::error_handler_t::replace);
      }
    };
    if (const Json* scheme = object_in(section, "kv_cache_scheme"); scheme != nullptr && !scheme->empty()) {
      const std::string strategy = text_in(*scheme, "strategy");
      const bool is_byte = size_in(*scheme, "num_bits") == 8 && text_in(*scheme, "type") == "float";
      note("kv_cache_scheme", is_byte && !is_true(*scheme, "dynamic") && (strategy.empty() || strategy == "tensor"),
           *scheme);
    }
    const std::string algorithm = lower_case(text_in(section, "kv_cache_quant_algo"));
    if (!algorithm.empty() && algorithm != "none")
      note("kv_cache_quant_algo", algorithm == "fp8", section["kv_cache_quant_algo"]);
  }

  // Keeps layers whose tensors belong to no layer yet.
  void search(const Spelling& spelling, const Description* description) {
    std::vector<Layer> layers;
    spelling.find(tensors_, description, layers);
    for (Layer& layer : layers) {
      const bool free =
          std::ranges::all_of(layer.parts, [&](const Part& part) { return !found_.layer_of[part.tensor]; });
      if (!free) continue;
      for (const Part& part : layer.parts) found_.layer_of[part.tensor] = found_.layers.size();
      found_.layers.push_back(std::move(layer));
    }
  }

  void refuse_other_basis(Layer& layer) {
    const std::string module = module_of(layer.name);
    for (const std::string_view word : basis_changes) {
      const std::optional<std::size_t> tensor = tensors_.find(tensor_of(module, word));
      if (!tensor || found_.layer_of[*tensor]) continue;
      found_.layer_of[*tensor] = found_.layer_of[layer.codes()];
      layer.parts.push_back({.role = PartRole::state, .tensor = *tensor});
      if (!layer.problem.empty()) continue;
      layer.problem = fmt::format("\"{}\" changes the weight beside its codes, and is not undone", word);
      layer.problem_tensor = tensors_[*tensor].name;
      layer.other_basis = true;
    }
  }

  // Codes of float8 or float4 without scales, in a model that is quantized.
  void note_lone_codes(const Description& description) {
    for (std::size_t i = 0; i < tensors_.all().size(); ++i) {
      const TensorInfo& tensor = tensors_[i];
      if (found_.layer_of[i] || !module_with(tensor.name, "weight") || tensor.shape.size() < 2) continue;
      if (!is_castable(tensor.dtype) || family(tensor.dtype) != Family::floating || bit_width(tensor.dtype) > 8)
        continue;
      Layer layer;
      layer.name = tensor.name;
      layer.spelling = spelling_of(description.method)->name;
      layer.scheme = "codes";
      layer.shape = tensor.shape;
      layer.parts.push_back({.role = PartRole::codes, .tensor = i});
      layer.problem = "it holds codes, and the tensor with their scales is missing";
      layer.problem_tensor = tensor.name;
      found_.layer_of[i] = found_.layers.size();
      found_.layers.push_back(std::move(layer));
    }
  }

  ModelTensors tensors_;
  FoundLayers found_;
  std::string problem_;  // of descriptions
};

}  // namespace

// The one table of spellings, in the order of the search and of messages.
std::span<const Spelling* const> all_spellings() noexcept {
  using namespace layouts;
  static constexpr auto spellings = std::to_array<const Spelling*>(
      {&deepseek, &transformers_mxfp8, &compressed_tensors, &modelopt, &gpt_oss, &comfyui, &gptq, &gptq_v2, &awq,
       &auto_round, &auto_round_awq, &bitsandbytes, &quark, &mlx, &mistral, &torchao, &gguf});
  return spellings;
}

const Method* find_method(std::string_view name) noexcept {
  const Spelling* const spelling = name.empty() ? nullptr : spelling_of(name);
  return spelling == nullptr ? nullptr : find_row(spelling->methods, &Method::name, name);
}

const Spelling* find_writer(std::string_view name) noexcept {
  for (const Spelling& writer : all_writers()) {
    if (is_same_name(writer.name, name)) return &writer;
  }
  return nullptr;
}

std::string_view reason_not_decoded(std::string_view method) {
  const auto found = std::ranges::find(known_methods, method, &KnownMethod::name);
  return found == known_methods.end() ? std::string_view() : found->reason;
}

FoundLayers find_layers(std::span<const TensorInfo> tensors, std::span<const ConfigText> texts,
                        const ReadTensor& read) {
  std::vector<std::string> accepted;
  for (const ConfigText& config : texts) {
    if (config.name != accepted_words) continue;
    for (const auto word : std::views::split(config.text, '\n')) accepted.emplace_back(word.begin(), word.end());
  }
  FoundLayers found = Search(tensors, read, accepted).run(read_descriptions(texts));
  found.architecture = ModelArchitecture::of(texts);
  return found;
}

void add_activations(LayerBuilder& builder, const std::string& module) {
  constexpr auto words =
      std::to_array<std::string_view>({"input_scale", "input_global_scale", "input_zero_point", "output_scale",
                                       "output_zero_point", "activation_scale", "qscale_act"});
  for (const std::string_view word : words) builder.add(tensor_of(module, word), PartRole::activations);
}

}  // namespace tensorcast::quantized
