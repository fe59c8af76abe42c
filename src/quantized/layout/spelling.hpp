// SPDX-License-Identifier: Apache-2.0
// Finds the layers of quantized checkpoints. Each way to spell them has one file and one row in spelling.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quantized/layer/layer.hpp"
#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/config_text.hpp"
#include "quantized/layout/model_architecture.hpp"

namespace tensorcast::quantized {

struct Description;  // config.hpp
struct KnownKey;     // known_keys.hpp

struct Spelling {
  std::string_view name;
  // Methods of descriptions that mean it.
  std::vector<std::string_view> methods;
  // What its descriptions may say.
  std::span<const KnownKey> (*keys)() = nullptr;
  // Whether its names and types alone tell all that decoding needs, so that no description must name it.
  bool describes_itself = false;
  // Appends the layers that the tensors have. `description` is null if the spelling describes itself and nothing does.
  void (*find)(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) = nullptr;
};

[[nodiscard]] std::span<const Spelling> all_spellings();

// A way to quantize that is known and not decoded. Returns why not; "": it is not known.
[[nodiscard]] std::string_view reason_not_decoded(std::string_view method);

struct FoundLayers {
  std::vector<Layer> layers;                         // none has a tensor of another
  std::vector<std::optional<std::size_t>> layer_of;  // of each tensor
  std::string source;                 // of the description: "config.json"; "": nothing describes the model
  std::string method;                 // that it names
  std::vector<std::string> excluded;  // weights of layers that the description lists as not quantized
  std::string refusal;                // why nothing is decoded: the method is not known, or not decoded; mostly ""
  ModelArchitecture architecture;     // that the model's files name

  [[nodiscard]] bool any() const noexcept { return !layers.empty(); }
};

// Finds the layers of a model: all its tensors, and what its files say. A layer that contradicts its description, its
// names, shapes or types has a `problem`. Memory and time: proportional to the number of tensors.
[[nodiscard]] FoundLayers find_layers(std::span<const TensorInfo> tensors, std::span<const ConfigText> texts,
                                      const ReadTensor& read);

// Adds what only activations need of the module `module`: input_scale and the like.
void add_activations(LayerBuilder& builder, const std::string& module);

// What descriptions of each spelling may say, in the file of its name.
[[nodiscard]] std::span<const KnownKey> deepseek_keys();
[[nodiscard]] std::span<const KnownKey> transformers_mxfp8_keys();
[[nodiscard]] std::span<const KnownKey> compressed_tensors_keys();
[[nodiscard]] std::span<const KnownKey> modelopt_keys();
[[nodiscard]] std::span<const KnownKey> gpt_oss_keys();
[[nodiscard]] std::span<const KnownKey> comfyui_keys();
[[nodiscard]] std::span<const KnownKey> gptq_keys();
[[nodiscard]] std::span<const KnownKey> awq_keys();
[[nodiscard]] std::span<const KnownKey> auto_round_keys();
[[nodiscard]] std::span<const KnownKey> bitsandbytes_keys();
[[nodiscard]] std::span<const KnownKey> quark_keys();
[[nodiscard]] std::span<const KnownKey> mlx_keys();
[[nodiscard]] std::span<const KnownKey> mistral_keys();

// The spellings. Each is in the file of its name.
void find_deepseek(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_transformers_mxfp8(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_compressed_tensors(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_modelopt(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_gpt_oss(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_comfyui(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_gptq(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_awq(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_auto_round(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_bitsandbytes(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_gguf(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_quark(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_mistral(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);
void find_mlx(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers);

}  // namespace tensorcast::quantized
