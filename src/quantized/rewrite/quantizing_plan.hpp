// SPDX-License-Identifier: Apache-2.0
// Plans which scheme and spelling weights of a model get.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "quantized/rewrite/respelling.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::quantized {

struct ChosenWeight {
  std::size_t layer = 0;  // in FoundLayers::layers: a layer, or a weight that add_weight() made one
  std::string scheme;
  std::string recipe = {};  // "": that of the targets, if the scheme has it, else the scheme's default
  std::string choice = {};  // as TensorOutcome
  std::string unfit = {};   // why it cannot have its scheme, or any of the candidates, and stays as it is; "": it can
};

// Whether it has experts as transformers has gpt-oss, [experts, inputs, outputs]: their bias tells the outputs.
[[nodiscard]] bool are_transposed_experts(const TensorInfo& tensor, std::span<const TensorInfo> tensors);

// Makes a plain tensor a layer, which is to be quantized; returns its index.
std::size_t add_weight(FoundLayers& found, std::span<const TensorInfo> tensors, std::size_t index);

struct QuantizeRequest {
  QuantizeTargets targets;
  bool to_gguf = false;  // the output is GGUF: so are its layouts
  // Whether a tensor or weight of this name is written.
  std::function<bool(const std::string&)> writes;
  ModelArchitecture architecture = {};
  std::shared_ptr<const ImportanceFile> importance = {};  // that of the targets
  // Why loaders of the spelling would not take a weight of a scheme; "": they do. Null: not asked.
  std::function<std::string(const Layer&, std::string_view)> why_not_loaded = {};
};

// A weight as a scheme of a spelling, before any number is read.
struct PlannedWeight {
  Quantizing quantizing;
  block::SharedLayout layout;
  LayerContent becomes;
  WrittenLayer written;

  // Of all its tensors.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
};

// Errors: invalid_argument (no such scheme, recipe or size), unsupported (the spelling, or GGUF, cannot hold it).
[[nodiscard]] Result<PlannedWeight> plan_weight(const Layer& layer, const ChosenWeight& weight,
                                                std::span<const TensorInfo> tensors, const QuantizeRequest& request,
                                                const Spelling& writer, bool beside_mxfp4);

// Reports whether an error of plan_weight() is of this weight alone, which can stay as it is: of its shape.
[[nodiscard]] bool is_unfit(const Error& error, const Layer& layer, const std::string& scheme,
                            const QuantizeRequest& request, const Spelling& writer);

// Makes weights unfit that loaders join with one that is: q, k and v have one scheme or none.
void leave_joined(std::span<ChosenWeight> weights, const FoundLayers& found, const Spelling& writer);

// Errors: invalid_argument: an option of a scheme that is not among `schemes`.
[[nodiscard]] Result<void> check_scheme_options(const QuantizeTargets& targets,
                                                std::span<const std::string_view> schemes);

// The spelling of a scheme unless another is asked for; one without a writer if no loader reads the scheme.
[[nodiscard]] std::string_view usual_spelling(const QuantizeRecipe& recipe);

// The spelling that was asked for, or that of the schemes if all have the same. Errors: as plan_quantizing().
[[nodiscard]] Result<const Spelling*> choose_spelling(std::span<const std::string> schemes,
                                                      const QuantizeRequest& request);

// Spells out what becomes of the weights; the others' layers of the result have no tensors. Weights that cannot have
// their scheme are Respelling::unfit. Reads nothing.
// Errors: invalid_argument (schemes, recipes and options that do not exist, or together), unsupported (what the
// spelling cannot hold, naming the tensor: experts that it has no names for, a scheme that fits no weight, or all
// weights that do not fit if `strict_schemes`).
[[nodiscard]] Result<Respelling> plan_quantizing(const FoundLayers& found, std::span<const ChosenWeight> chosen,
                                                 std::span<const TensorInfo> tensors, const QuantizeRequest& request);

}  // namespace tensorcast::quantized
