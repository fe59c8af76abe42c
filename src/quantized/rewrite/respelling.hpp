// SPDX-License-Identifier: Apache-2.0
// Plans how the layers of a model become those of another spelling, and checks what must hold before anything is
// written.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quantized/layout/model_architecture.hpp"
#include "quantized/layout/spelling.hpp"
#include "quantized/layout/written_layer.hpp"
#include "quantized/rewrite/quantizing.hpp"
#include "quantized/rewrite/respelled_codes.hpp"

namespace tensorcast::quantized {

struct RespelledLayer {
  const Spelling* writer = nullptr;  // null: the layer does not change
  // Its numbers are quantized, whatever it was; none: its codes stay.
  std::optional<Quantizing> quantizing;
  std::string recipe;                           // its name, also if it is the default
  std::string choice;                           // as TensorOutcome
  int passes = 0;                               // as TensorOutcome
  std::vector<std::size_t> siblings;            // layers that share its tensor scale, indices into FoundLayers::layers
  std::shared_ptr<const LayerContent> content;  // as it was, if its codes stay
  LayerContent becomes;                         // what is written: other scales if they change
  ScaleChange change;
  // The bytes of tensors of written() that `becomes` does not give: scales of whole tensors, by their places.
  std::map<std::size_t, std::vector<std::byte>> constants;
  std::vector<std::size_t> sources;  // of each written tensor: the tensor that it comes from, or the codes
  std::vector<std::size_t> kept;     // tensors of the layer that stay as they are: pre_quant_scale

  [[nodiscard]] bool changes() const noexcept { return writer != nullptr; }
  // What is written. Made at each call, as that of all layers of a model takes much memory. Precondition: changes().
  [[nodiscard]] WrittenLayer written() const;
};

struct Respelling {
  std::string spelling;                // "": nothing is respelled
  std::vector<RespelledLayer> layers;  // as FoundLayers::layers
  // Weights that were to be quantized and stay as they are, and why: "cannot be nvfp4: 250 inputs are ...".
  std::map<std::size_t, std::string> unfit;
  WrittenConfig config;
  std::vector<std::string> warnings;

  [[nodiscard]] bool any() const noexcept { return !spelling.empty(); }
};

struct RespellRequest {
  std::string spelling;
  bool exact = false;  // a scale whose reciprocal is not exact is an error
  // Whether a tensor or weight of this name is written.
  std::function<bool(const std::string&)> writes;
};

// What the configuration says of the layers of `plan` that are written.
[[nodiscard]] WrittenConfig describe_layers(const Spelling& writer, const FoundLayers& found,
                                            std::span<const formats::TensorInfo> tensors, const Respelling& plan,
                                            const std::function<bool(const std::string&)>& writes,
                                            const ModelArchitecture& architecture, WrittenModel model);

// The spelling of a name. Errors: invalid_argument (there is none).
[[nodiscard]] Result<const Spelling*> writer_named(const std::string& spelling);

// `texts`: what the model's files say. Reads scales of whole tensors, zero points and indices of groups, and all scales
// of layers between MXFP4 and NVFP4.
// Errors: invalid_argument (no such spelling), unsupported (what the spelling cannot hold, naming the tensor), those of
// reading.
[[nodiscard]] Result<Respelling> plan_respelling(const FoundLayers& found, std::span<const ConfigText> texts,
                                                 formats::Reader& reader, const RespellRequest& request);

}  // namespace tensorcast::quantized
