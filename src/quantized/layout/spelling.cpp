// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/spelling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "dtype/lower_case.hpp"
#include "quantized/layout/config.hpp"
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
    {"fp_quant", "its weights are turned by a Hadamard transform"},
    {"eetq", "its codes are in the order of a GPU kernel"},
    {"higgs", "its codes are those of a grid, and its weights are turned"},
    {"hqq", "its zero points are fractions"},
    {"fbgemm_fp8", "its codes are laid out by FBGEMM"},
    {"torchao", "its tensors are subclasses of PyTorch's"},
    {"bitnet", "its codes have three values"},
    {"spqr", "its outliers are in a sparse matrix"},
    {"nvfp4", "transformers quantizes while it loads, and writes no such folder"},
    {"sinq", "it has scales of rows and columns"},
    {"gemma", "its layout is that of Gemma's own quantizer"},
    {"gguf", "the weights are in a GGUF file"},
});

// Tensors that change the basis of a weight beside its codes, after the name of its module.
constexpr auto basis_changes = std::to_array<std::string_view>(
    {"pre_quant_scale", "svdquant_lora_a", "svdquant_lora_b", "svdquant_smooth_factor"});

// What decides how codes are read, by its names. Other members, such as a way of calibration, may differ.
constexpr auto deciding_keys = std::to_array<std::array<std::string_view, 2>>(
    {{"bits", "w_bit"}, {"group_size", "q_group_size"}, {"checkpoint_format", ""}, {"weight_block_size", ""}});

struct Member {
  std::string_view key;
  const Json* value = nullptr;  // null: there is none

  [[nodiscard]] std::string text() const {
    constexpr std::size_t most = 40;
    return fmt::format("{} {}", key, value->dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, most));
  }
};
Member member_of(const Json& section, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    const auto found = section.find(key);
    if (found != section.end() && !found->is_null()) return {key, &*found};
  }
  return {};
}

const Spelling* spelling_of(std::string_view method) {
  for (const Spelling& spelling : all_spellings()) {
    if (std::ranges::find(spelling.methods, method) != spelling.methods.end()) return &spelling;
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
  Search(std::span<const TensorInfo> tensors, const ReadTensor& read) : tensors_(tensors, read) {
    found_.layer_of.assign(tensors.size(), SIZE_MAX);
  }

  FoundLayers run(std::vector<Description> descriptions) {
    // config.json and hf_quant_config.json may both describe a model of ModelOpt.
    const Description* chosen = nullptr;
    for (const Description& description : descriptions) {
      if (description.method.empty()) continue;
      if (chosen == nullptr) chosen = &description;
      check_agreement(*chosen, description);
    }
    if (chosen != nullptr) {
      describe(*chosen);
    } else {
      for (const Spelling& spelling : all_spellings()) {
        if (spelling.describes_itself) search(spelling, nullptr);
      }
    }
    for (Layer& layer : found_.layers) refuse_other_basis(layer);
    if (chosen != nullptr && found_.refusal.empty() && found_.any()) note_lone_codes(*chosen);
    return std::move(found_);
  }

 private:
  void describe(const Description& description) {
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
    Description whole = description;
    if (whole.method == "modelopt" && !algorithm_.empty()) whole.section["quant_algo"] = algorithm_;
    search(*spelling, &whole);
    // Experts of gpt-oss may stand beside others, and ComfyUI's files describe themselves.
    for (const Spelling& other : all_spellings()) {
      if (other.describes_itself && &other != spelling) search(other, nullptr);
    }
    note_excluded(description);
    if (disagreement_.empty() && has_ue5m3(description.section)) {
      disagreement_ = fmt::format(
          "{} says that its scales are UE5M3 bytes, whatever their type is named, and these are "
          "not decoded",
          description.source);
    }
    if (disagreement_.empty()) return;
    for (Layer& layer : found_.layers) {
      if (!layer.problem.empty()) continue;
      layer.problem = disagreement_;
      layer.problem_tensor = tensors_[layer.codes()].name;
    }
  }

  void note_excluded(const Description& description) {
    std::vector<std::string> listed;
    for (const std::string_view key : unquantized_lists()) {
      for (std::string& entry : texts_in(description.section, key)) listed.push_back(std::move(entry));
    }
    const NameList names(listed);
    for (const Layer& layer : found_.layers) {
      if (names.has(module_of(layer.name))) found_.excluded.push_back(layer.name);
    }
  }

  void check_agreement(const Description& first, const Description& other) {
    if (first.method != other.method) {
      disagreement_ = fmt::format("{} names the quantization \"{}\", and {} names \"{}\"", first.source, first.method,
                                  other.source, other.method);
      return;
    }
    const std::string algorithm = text_in(other.section, "quant_algo");
    if (algorithm_.empty()) algorithm_ = algorithm;
    if (!algorithm.empty() && algorithm != algorithm_) {
      disagreement_ = fmt::format("{} names {}, and {} names {}", first.source, algorithm_, other.source, algorithm);
    }
    for (const auto& keys : deciding_keys) {
      const Member one = member_of(first.section, keys), two = member_of(other.section, keys);
      if (one.value == nullptr || two.value == nullptr || *one.value == *two.value) continue;
      disagreement_ = fmt::format("{} names {}, and {} names {}", first.source, one.text(), other.source, two.text());
    }
  }

  // Keeps layers whose tensors belong to no layer yet.
  void search(const Spelling& spelling, const Description* description) {
    std::vector<Layer> layers;
    spelling.find(tensors_, description, layers);
    for (Layer& layer : layers) {
      const bool free =
          std::ranges::all_of(layer.parts, [&](const Part& part) { return found_.layer_of[part.tensor] == SIZE_MAX; });
      if (!free) continue;
      for (const Part& part : layer.parts) found_.layer_of[part.tensor] = found_.layers.size();
      found_.layers.push_back(std::move(layer));
    }
  }

  void refuse_other_basis(Layer& layer) {
    const std::string module = module_of(layer.name);
    for (const std::string_view word : basis_changes) {
      const std::size_t tensor = tensors_.find(tensor_of(module, word));
      if (tensor == SIZE_MAX || found_.layer_of[tensor] != SIZE_MAX) continue;
      found_.layer_of[tensor] = found_.layer_of[layer.codes()];
      layer.parts.push_back({.role = PartRole::state, .tensor = tensor});
      if (!layer.problem.empty()) continue;
      layer.problem = fmt::format("\"{}\" changes the weight beside its codes, and is not undone", word);
      layer.problem_tensor = tensors_[tensor].name;
      layer.other_basis = true;
    }
  }

  // Codes of float8 or float4 without scales, in a model that is quantized.
  void note_lone_codes(const Description& description) {
    for (std::size_t i = 0; i < tensors_.all().size(); ++i) {
      const TensorInfo& tensor = tensors_[i];
      if (found_.layer_of[i] != SIZE_MAX || !module_with(tensor.name, "weight") || tensor.shape.size() < 2) continue;
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
  std::string algorithm_;     // of ModelOpt
  std::string disagreement_;  // of descriptions
};

}  // namespace

// The one table of spellings.
std::span<const Spelling> all_spellings() {
  static const std::vector<Spelling> spellings = {
      {.name = "deepseek", .methods = {"fp8"}, .describes_itself = false, .find = find_deepseek},
      {.name = "transformers-mxfp8", .methods = {"mxfp8"}, .describes_itself = false, .find = find_transformers_mxfp8},
      {.name = "compressed-tensors",
       .methods = {"compressed-tensors"},
       .describes_itself = false,
       .find = find_compressed_tensors},
      {.name = "modelopt", .methods = {"modelopt", "modelopt_fp4"}, .describes_itself = false, .find = find_modelopt},
      {.name = "gpt-oss", .methods = {"mxfp4"}, .describes_itself = true, .find = find_gpt_oss},
      {.name = "gptq", .methods = {"gptq"}, .describes_itself = false, .find = find_gptq},
      {.name = "awq", .methods = {"awq"}, .describes_itself = false, .find = find_awq},
      {.name = "auto-round", .methods = {"auto-round"}, .describes_itself = false, .find = find_auto_round},
      {.name = "bitsandbytes",
       .methods = {"bitsandbytes", "bitsandbytes_4bit", "bitsandbytes_8bit"},
       .describes_itself = true,
       .find = find_bitsandbytes},
      {.name = "quark", .methods = {"quark"}, .describes_itself = false, .find = find_quark},
      {.name = "mlx", .methods = {"mlx", "metal"}, .describes_itself = false, .find = find_mlx},
      {.name = "gguf", .methods = {}, .describes_itself = true, .find = find_gguf},
      {.name = "comfyui", .methods = {"comfyui"}, .describes_itself = true, .find = find_comfyui},
  };
  return spellings;
}

std::string_view reason_not_decoded(std::string_view method) {
  const auto found = std::ranges::find(known_methods, method, &KnownMethod::name);
  return found == known_methods.end() ? std::string_view() : found->reason;
}

FoundLayers find_layers(std::span<const TensorInfo> tensors, std::span<const ConfigText> texts,
                        const ReadTensor& read) {
  return Search(tensors, read).run(read_descriptions(texts));
}

void add_activations(LayerBuilder& builder, const std::string& module) {
  constexpr auto words = std::to_array<std::string_view>({"input_scale", "input_global_scale", "input_zero_point",
                                                          "output_scale", "output_zero_point", "activation_scale"});
  for (const std::string_view word : words) builder.add(tensor_of(module, word), PartRole::activations);
}

}  // namespace tensorcast::quantized
