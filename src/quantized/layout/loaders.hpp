// SPDX-License-Identifier: Apache-2.0
// What known loaders of each layout take, from their sources and from loading what tcast writes (docs/loaders.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quantized/layer/layer.hpp"
#include "quantized/layout/model_architecture.hpp"

namespace tensorcast::quantized {

struct Loader {
  std::string_view layout;   // as Spelling::name
  std::string_view name;     // with its version, if it was tried
  std::string_view schemes;  // that it loads as this layout, between spaces; "": all that the layout has
};
[[nodiscard]] std::span<const Loader> all_loaders() noexcept;

// A kind of weight that loaders do not take as it is.
enum class WeightTrait : std::uint8_t {
  ragged_inputs,     // they are not whole groups of LoaderLimit::size
  ragged_outputs,    // the same of outputs
  short_last_block,  // inputs or outputs are several blocks of LoaderLimit::size, of which the last is shorter
  embedding,
  conv1d,           // it lies as [inputs, outputs]
  kept_float32,     // its model keeps it in float32, and loaders make no quantized layer of its module
  expert,           // a module of its own, or one tensor of all experts
  no_fused_expert,  // anything but one tensor of all experts
  read_by_model,    // the model reads the weight itself, beside calling its module
  adapter,          // a factor of a LoRA, which is added to a weight
  dense_module,     // of a module of sentence-transformers behind the model
  plain_float8,     // float8 numbers without scales, beside quantized weights
};

enum class LimitEffect : std::uint8_t {
  leave,  // the weight stays as it is; an error if a rule names it
  warn,   // it is quantized, and a warning names the loader
};

struct LoaderLimit {
  std::string_view layouts;  // between spaces; "": all
  std::string_view schemes;  // the same
  WeightTrait trait = WeightTrait::embedding;
  std::int64_t size = 0;
  LimitEffect effect = LimitEffect::leave;
  std::string_view loaders;  // that do not take it
  std::string_view reason;   // what the loaders do with such a weight, or want instead
};
[[nodiscard]] std::span<const LoaderLimit> all_limits() noexcept;

// A weight that is quantized, or is to be.
struct LoadedWeight {
  std::string_view name = {};
  std::string_view scheme = {};  // "": numbers stay numbers
  std::span<const std::int64_t> shape = {};
  bool is_transposed = false;         // experts as [experts, inputs, outputs]
  bool beside_fused_experts = false;  // the model has such experts
  bool is_plain_float8 = false;
};

// A layer that has, or is to have, `scheme`. Borrows both.
[[nodiscard]] inline LoadedWeight loaded_weight(const Layer& layer, std::string_view scheme) {
  return {.name = layer.name, .scheme = scheme, .shape = layer.shape, .is_transposed = layer.is_transposed()};
}

// Returns the limits that a weight of a layout goes beyond, in their order.
[[nodiscard]] std::vector<const LoaderLimit*> limits_of(std::string_view layout, const LoadedWeight& weight,
                                                        const ModelArchitecture& architecture);
// "vLLM: inputs are not whole groups of 32".
[[nodiscard]] std::string text_of(const LoaderLimit& limit);

}  // namespace tensorcast::quantized
