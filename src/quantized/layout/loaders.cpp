// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/loaders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dtype/lookup.hpp"
#include "quantized/names/module_name.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/quantized_file.hpp"

namespace tensorcast::quantized {
namespace {

// Loaders that scripts/checks/loaders runs have their versions.
constexpr auto loaders = std::to_array<Loader>({
    {"compressed-tensors", "transformers 5.24 (compressed-tensors 0.20.1)",
     "fp8-tensor fp8-channel fp8-block mxfp8 mxfp6 mxfp4 nvfp4 int8-channel int4-group"},
    {"compressed-tensors", "vLLM", "fp8-tensor fp8-channel fp8-block mxfp8 mxfp4 nvfp4 int8-channel int4-group"},
    {"compressed-tensors", "SGLang", "fp8-tensor fp8-channel fp8-block nvfp4 int8-channel int4-group"},
    {"modelopt", "vLLM", ""},
    {"modelopt", "SGLang", "fp8-tensor nvfp4"},
    {"modelopt", "TensorRT-LLM", "fp8-tensor fp8-block nvfp4"},
    {"deepseek", "transformers 5.24", "fp8-tensor fp8-block"},
    {"deepseek", "vLLM", "fp8-block mxfp4"},
    {"deepseek", "SGLang", "fp8-block mxfp4"},
    {"deepseek", "TensorRT-LLM", "fp8-block"},
    {"transformers-mxfp8", "transformers 5.24", ""},
    {"transformers-mxfp8", "SGLang", ""},
    {"gpt-oss", "transformers 5.24", ""},
    {"gpt-oss", "vLLM", ""},
    {"gpt-oss", "SGLang", ""},
    {"gpt-oss", "TensorRT-LLM", ""},
    {"quark", "vLLM", ""},
    {"comfyui", "ComfyUI", ""},
    {"gguf", "llama.cpp", ""},
    {"mlx", "MLX", ""},
    {"awq", "vLLM", ""},
    {"awq", "SGLang", ""},
    {"gptq", "vLLM", ""},
    {"gptq", "SGLang", ""},
    {"gptq-v2", "vLLM", ""},
    {"auto-round", "vLLM", ""},
    {"auto-round-awq", "vLLM", ""},
    {"bitsandbytes", "transformers 5.24", ""},
});

constexpr std::string_view by_modules =
    "compressed-tensors modelopt deepseek transformers-mxfp8 gpt-oss quark gptq gptq-v2 awq auto-round auto-round-awq";
// Of names of PEFT and of diffusers.
constexpr std::string_view adapter_words[] = {".lora_A.", ".lora_B.", ".lora_down.", ".lora_up."};
constexpr std::string_view transformers = "transformers 5.24";
constexpr std::string_view with_tensors = "transformers 5.24 with compressed-tensors 0.20.1";

constexpr auto limits = std::to_array<LoaderLimit>({
    {by_modules, "", WeightTrait::embedding, 0, LimitEffect::leave, "all",
     "only linear layers are quantized, and the codes of an embedding are taken for its numbers"},
    {by_modules, "", WeightTrait::conv1d, 0, LimitEffect::leave, "all",
     "Conv1D, whose weight lies as [inputs, outputs], is no linear layer"},
    {by_modules, "", WeightTrait::adapter, 0, LimitEffect::leave, "all",
     "loaders of adapters take their weights as numbers, and pass over scales"},
    {"", "", WeightTrait::dense_module, 0, LimitEffect::leave, "sentence-transformers",
     "the weight of a Dense module is read as numbers"},
    {"gpt-oss", "", WeightTrait::no_fused_expert, 0, LimitEffect::leave, "all",
     "only experts in one tensor are read as MXFP4"},
    {by_modules, "", WeightTrait::plain_float8, 0, LimitEffect::leave, "all",
     "float8 without scales is taken for codes whose scales are missing"},
    {"compressed-tensors modelopt transformers-mxfp8", "mxfp8", WeightTrait::ragged_inputs, 32, LimitEffect::leave,
     "all", "inputs are not whole groups of 32"},
    {"modelopt", "fp8-block", WeightTrait::ragged_outputs, 128, LimitEffect::leave, "vLLM",
     "outputs are not whole blocks of 128"},
    {"modelopt", "fp8-block", WeightTrait::ragged_inputs, 128, LimitEffect::leave, "vLLM",
     "inputs are not whole blocks of 128"},
    {"deepseek transformers-mxfp8", "", WeightTrait::kept_float32, 0, LimitEffect::leave, transformers,
     "the module stays in float32, and the codes are taken for its numbers"},
    {"deepseek", "fp8-block", WeightTrait::short_last_block, 128, LimitEffect::warn, transformers,
     "the size of blocks is taken from the number of scales, so that a shorter last block gives wrong numbers"},
    {"compressed-tensors", "mxfp6 mxfp4 nvfp4 int4-group", WeightTrait::read_by_model, 0, LimitEffect::warn,
     with_tensors, "the model reads this weight itself, and fails where it is packed"},
    {"compressed-tensors", "nvfp4", WeightTrait::expert, 0, LimitEffect::warn, with_tensors,
     "experts of nvfp4 are loaded with wrong numbers"},
    {"compressed-tensors", "fp8-block mxfp8 int8-channel", WeightTrait::expert, 0, LimitEffect::warn, with_tensors,
     "experts of this scheme are not loaded"},
    {"modelopt", "fp8-block fp8-channel", WeightTrait::expert, 0, LimitEffect::warn, "vLLM",
     "there is no layer for experts of this scheme"},
});

bool has_trait(const LoadedWeight& weight, const LoaderLimit& limit, const ModelArchitecture& architecture) {
  const std::size_t rank = weight.shape.size();
  if (rank < 2) return false;
  if (limit.trait == WeightTrait::plain_float8) return weight.is_plain_float8;
  if (weight.scheme.empty()) return false;
  const TensorKind kind = tensor_kind(weight.name, rank);
  switch (limit.trait) {
    case WeightTrait::ragged_inputs:
      return weight.shape[weight.is_transposed ? rank - 2 : rank - 1] % limit.size != 0;
    case WeightTrait::ragged_outputs:
      return rank == 2 && weight.shape[0] % limit.size != 0;
    case WeightTrait::short_last_block:
      return std::ranges::any_of(weight.shape.last(2),
                                 [&](std::int64_t size) { return size > limit.size && size % limit.size != 0; });
    case WeightTrait::embedding:
      return kind == TensorKind::embedding;
    case WeightTrait::read_by_model:
      return architecture.reads_weight(module_of(weight.name));
    case WeightTrait::conv1d:
      return architecture.is_conv1d(module_of(weight.name));
    case WeightTrait::kept_float32:
      return !architecture.keeps_float32(weight.name, DType::float16).empty();
    case WeightTrait::expert:
      return kind == TensorKind::expert && weight.name.find("shared_expert") == std::string_view::npos;
    case WeightTrait::no_fused_expert:
      return !weight.is_transposed && (weight.beside_fused_experts || !architecture.model_type().empty());
    case WeightTrait::adapter:
      return std::ranges::any_of(
          adapter_words, [&](std::string_view word) { return weight.name.find(word) != std::string_view::npos; });
    case WeightTrait::dense_module:
      return architecture.is_dense_module();
    case WeightTrait::plain_float8:
      break;
  }
  return false;
}

}  // namespace

std::span<const Loader> all_loaders() noexcept { return loaders; }
std::span<const LoaderLimit> all_limits() noexcept { return limits; }

std::vector<const LoaderLimit*> limits_of(std::string_view layout, const LoadedWeight& weight,
                                          const ModelArchitecture& architecture) {
  std::vector<const LoaderLimit*> beyond;
  for (const LoaderLimit& limit : limits) {
    const bool is_meant = (limit.layouts.empty() || lists(limit.layouts, layout)) &&
                          (limit.schemes.empty() || lists(limit.schemes, weight.scheme));
    if (is_meant && has_trait(weight, limit, architecture)) beyond.push_back(&limit);
  }
  return beyond;
}

std::string text_of(const LoaderLimit& limit) {
  return limit.loaders == "all" ? std::string(limit.reason) : fmt::format("{}: {}", limit.loaders, limit.reason);
}

}  // namespace tensorcast::quantized

namespace tensorcast {
inline namespace TENSORCAST_ABI {

std::vector<std::string> known_loaders(std::span<const QuantizedLayer> layers) {
  std::vector<std::string> names;
  for (const quantized::Loader& loader : quantized::loaders) {
    const auto is_taken = [&](const QuantizedLayer& layer) {
      return std::ranges::any_of(quantized::loaders, [&](const quantized::Loader& row) {
        return row.name == loader.name && row.layout == layer.spelling &&
               (row.schemes.empty() || quantized::lists(row.schemes, layer.scheme));
      });
    };
    const bool is_new = !contains(names, loader.name);
    if (is_new && !layers.empty() && std::ranges::all_of(layers, is_taken)) names.emplace_back(loader.name);
  }
  return names;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
