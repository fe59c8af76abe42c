// SPDX-License-Identifier: Apache-2.0
// Decides the type of every value, by the slots of a model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/precision/slots.hpp"
#include "models/onnx/precision/weight_quantization.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {

// What becomes of the numbers of an initializer or Constant.
enum class Fit : std::uint8_t { cast, clamp };

class PrecisionPlan {
 public:
  using Settings = PrecisionSettings;

  PrecisionPlan(const Model& model, const Settings& settings);
  // Decided: every value keeps its type.
  [[nodiscard]] static PrecisionPlan unchanged(const Model& model);

  // Returns the type in which the value is made, and the one in which a consumer reads it.
  [[nodiscard]] DType produced(ValueId id) const { return produced_[id]; }
  [[nodiscard]] DType taken(const Node& node, std::size_t input) const;
  [[nodiscard]] DType given_back(const Graph& graph, std::size_t output) const;
  // Whether a conversion of the result would give this output of the model another type, if `source` made it.
  [[nodiscard]] bool unsettles(ValueId output, ValueId source) const;
  // Reports whether an initializer is also stored in the target type, under another name.
  [[nodiscard]] bool has_copy(ValueId id) const { return copied_[id]; }
  [[nodiscard]] Fit fit(ValueId id) const { return fits_[id]; }
  // Returns how a weight is quantized; null for others.
  [[nodiscard]] const std::shared_ptr<const Quantization>& quantization(ValueId id) const { return quantizations_[id]; }
  [[nodiscard]] ::tensorcast::onnx::NodeDecision explain(const Node& node) const;

  [[nodiscard]] std::vector<::tensorcast::onnx::KeptNode> kept_nodes() const;
  [[nodiscard]] bool is_converted(const Node& node) const;
  [[nodiscard]] const Model& model() const noexcept { return model_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  // The slots hold what the rules keep. Then the survey of numbers asks which values may
  // change, and says how; then decide().
  [[nodiscard]] bool may_change(ValueId id) const;
  void set_fit(ValueId id, Fit fit) { fits_[id] = fit; }
  void set_quantization(ValueId id, std::shared_ptr<const Quantization> found) {
    quantizations_[id] = std::move(found);
  }
  void keep_high(ValueId id, std::string_view reason);
  void keep_value(ValueId id, std::string_view reason) { slots_.hold(slots_.of_values[id], Hold::rule, reason); }
  void keep_input(const Node& node, std::size_t input, std::string_view reason);
  void decide();

 private:
  [[nodiscard]] DType element_in(SlotId slot, ValueId id) const;
  void hold_movers(const Graph& graph);
  void hold_adapting(const Graph& graph);
  void decide_sources();
  void decide_edges();
  void decide_outputs();
  [[nodiscard]] std::string_view reason_of(SlotId slot, ValueId id) const;

  const Model& model_;
  Settings settings_;
  Slots slots_;
  std::vector<DType> produced_;       // by value
  std::vector<DType> model_outputs_;  // types of the main graph's outputs
  std::vector<bool> copied_;
  std::vector<Fit> fits_;
  std::vector<std::shared_ptr<const Quantization>> quantizations_;  // by value
};

}  // namespace tensorcast::models::onnx
