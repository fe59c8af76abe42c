// SPDX-License-Identifier: Apache-2.0
// Finds the layers of quantized checkpoints. Each way to spell them has one file, whose row tells how such layers are
// found and written.
#pragma once

#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quantized/layer/layer.hpp"
#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/config_text.hpp"
#include "quantized/layout/model_architecture.hpp"

namespace tensorcast::quantized {

struct Description;   // config.hpp
struct KnownKey;      // known_keys.hpp
struct LayerContent;  // written_layer.hpp
struct WrittenLayer;
struct WrittenModel;
struct WrittenConfig;

// Whether the configuration has loaders quantize the inputs of layers while the model runs.
enum class DynamicActivations : std::uint8_t { never, choice, always };

// A method that descriptions name, and the list in them of the modules that are not quantized.
struct Method {
  std::string_view name;
  std::string_view list = {};      // its key; "": there is none
  bool list_is_open = false;       // loaders take each module that it names for one of plain numbers
  bool rest_is_quantized = false;  // and expect codes of every linear layer that it does not name
  bool skips_head = false;         // except lm_head
};

struct Spelling {
  std::string_view name;
  // Methods of descriptions that mean it.
  Method methods[3] = {};
  // What its descriptions may say.
  std::span<const KnownKey> keys = {};
  // Whether its names and types alone tell all that decoding needs, so that no description must name it.
  bool describes_itself = false;
  // Appends the layers that the tensors have. `description` is null if the spelling describes itself and nothing does.
  void (*find)(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) = nullptr;
  // Appends the tensors of a layer, which has the content's name, scheme, shape, blocks, element and bits. Null: the
  // spelling is only read.
  void (*spell)(const LayerContent& content, WrittenLayer& written) = nullptr;
  // Makes the configuration of a model. Null: the tensors say all.
  void (*describe)(const WrittenModel& model, WrittenConfig& config) = nullptr;
  // What the configuration says of the inputs of layers of these schemes; of others it says nothing.
  DynamicActivations activations = DynamicActivations::never;
  std::string_view activations_schemes = {};  // list_words()
  // Of those that are a choice: "fp8-channel:compressed-tensors", which recipes mean quantized inputs, or "fp8-block",
  // whatever the recipe.
  std::string_view activations_recipes = {};
  bool has_rotations = false;           // LayerContent::rotation
  bool has_kernels = false;             // weights of more than three dimensions
  bool is_of_gguf = false;              // its tensors have types of GGUF, so only such files have it
  bool joins_weights = true;            // loaders join weights such as q, k and v
  bool joins_scales = false;            // and have one scale of the tensor for the whole
  bool names_cache = false;             // its description says how keys and values are stored: as float8, or not at all
  bool has_transposed_experts = false;  // experts that lie as [experts, inputs, outputs]
};

[[nodiscard]] std::span<const Spelling* const> all_spellings() noexcept;
// The spellings that are written, too.
[[nodiscard]] inline auto all_writers() noexcept {
  return all_spellings() | std::views::filter([](const Spelling* spelling) { return spelling->spell != nullptr; }) |
         std::views::transform([](const Spelling* spelling) -> const Spelling& { return *spelling; });
}
// One of them by the name of `--spelling` and `--respell`. Returns null if there is none.
[[nodiscard]] const Spelling* find_writer(std::string_view name) noexcept;

// Returns null if no spelling has it.
[[nodiscard]] const Method* find_method(std::string_view name) noexcept;

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
  bool float8_cache = false;          // the description has keys and values stored as float8, one scale a tensor
  std::string other_cache;            // another way, as it says it: {"num_bits":8,"type":"int"}; mostly ""
  bool leaves_cache = false;          // which is accepted as harmless, and left out of what is written

  [[nodiscard]] bool any() const noexcept { return !layers.empty(); }
};

// Finds the layers of a model: all its tensors, and what its files say. A layer that contradicts its description, its
// names, shapes or types has a `problem`. Memory and time: proportional to the number of tensors.
[[nodiscard]] FoundLayers find_layers(std::span<const TensorInfo> tensors, std::span<const ConfigText> texts,
                                      const ReadTensor& read);

// Adds what only activations need of the module `module`: input_scale and the like.
void add_activations(LayerBuilder& builder, const std::string& module);

// The rows, each in the file of its name.
namespace layouts {
extern const Spelling deepseek, transformers_mxfp8, compressed_tensors, modelopt, gpt_oss, gptq, gptq_v2, awq,
    auto_round, auto_round_awq, bitsandbytes, quark, mlx, mistral, torchao, gguf, comfyui;
}

}  // namespace tensorcast::quantized
