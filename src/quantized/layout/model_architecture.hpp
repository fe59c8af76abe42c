// SPDX-License-Identifier: Apache-2.0
// The architecture of a model: those that its config.json names, and what is known of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quantized/layout/config_text.hpp"
#include "quantized/names/architectures.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::quantized {

class ModelArchitecture {
 public:
  // Nothing is known.
  ModelArchitecture() = default;
  // Reads every model_type of config.json: a multimodal model has one for each of its parts.
  [[nodiscard]] static ModelArchitecture of(std::span<const ConfigText> texts);

  // That of the whole model; "": no configuration names one.
  [[nodiscard]] const std::string& model_type() const noexcept { return model_type_; }
  // Whether this is no model of transformers, but a Dense module behind one, of sentence-transformers.
  [[nodiscard]] bool is_dense_module() const noexcept { return is_dense_module_; }
  // The part of the model that keeps a tensor in float32 if the others become `to`, by its model_type; "": none does.
  [[nodiscard]] std::string_view keeps_float32(std::string_view tensor, DType to) const;
  // Modules that may have no weight of their own, as it is the embedding's.
  [[nodiscard]] std::vector<std::string> tied_heads() const;
  // Whether the weight of a module lies as [inputs, outputs].
  [[nodiscard]] bool is_conv1d(std::string_view module) const;
  // Whether the model reads the weight of a module itself, beside calling the module.
  [[nodiscard]] bool reads_weight(std::string_view module) const;

 private:
  std::string model_type_;
  bool is_dense_module_ = false;
  std::vector<const Architecture*> rows_;
};

}  // namespace tensorcast::quantized
