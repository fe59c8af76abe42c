// Decides the type of every value: type variables of nodes are slots, which convert together or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/precision/operator_types.hpp"
#include "models/onnx/precision/weight_quantization.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {

// How strictly a slot keeps its type. Values at the edge of the model still change for `runtime`.
enum class Hold : std::uint8_t { free, runtime, rule };

// What becomes of the numbers of an initializer or Constant.
enum class Fit : std::uint8_t { cast, clamp };

using SlotId = std::uint32_t;
inline constexpr SlotId any_type = UINT32_MAX;        // takes the value in whatever type it has
inline constexpr SlotId exact_type = UINT32_MAX - 1;  // takes the value in its old type only

class PrecisionPlan {
 public:
  struct Settings {
    std::uint32_t to = 0;
    std::uint64_t from = 0;  // bit N: TensorProto.DataType N
    const ::tensorcast::onnx::ConvertRequest* request = nullptr;
    std::vector<bool> blocked = {};  // by node, or empty: the request keeps it
    std::map<std::string, std::uint32_t, std::less<>> io_elements = {};
    std::vector<OperatorTypes> operators = {};
    [[nodiscard]] bool converts(const ValueType& type) const noexcept {
      return type.element != to && type.element < 64 && (from >> type.element & 1) != 0;
    }
  };

  PrecisionPlan(const Model& model, const Settings& settings);
  // Decided: every value keeps its type.
  [[nodiscard]] static PrecisionPlan unchanged(const Model& model);

  // The type in which the value is made, and in which a consumer takes it.
  [[nodiscard]] std::uint32_t produced(ValueId id) const { return produced_[id]; }
  [[nodiscard]] std::uint32_t taken(const Node& node, std::size_t input) const;
  [[nodiscard]] std::uint32_t given_back(const Graph& graph, std::size_t output) const;
  // Whether a conversion of the result would give this output of the model another type, if `source` made it.
  [[nodiscard]] bool unsettles(ValueId output, ValueId source) const;
  // Of an initializer: also stored in the target type, under another name.
  [[nodiscard]] bool has_copy(ValueId id) const { return copied_[id]; }
  [[nodiscard]] Fit fit(ValueId id) const { return fits_[id]; }
  // Of a weight that becomes int8; else null.
  [[nodiscard]] const std::shared_ptr<const Quantization>& quantization(ValueId id) const { return quantizations_[id]; }
  [[nodiscard]] ::tensorcast::onnx::NodeDecision explain(const Node& node) const;

  [[nodiscard]] std::vector<::tensorcast::onnx::KeptNode> kept_nodes() const;
  [[nodiscard]] bool is_converted(const Node& node) const;
  [[nodiscard]] const Model& model() const noexcept { return model_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  // First step, by the constructor: slots, and what the rules hold. Then the survey of numbers asks which values may
  // change, and says how; then decide().
  [[nodiscard]] bool may_change(ValueId id) const;
  void set_fit(ValueId id, Fit fit) { fits_[id] = fit; }
  void set_quantization(ValueId id, std::shared_ptr<const Quantization> found) {
    quantizations_[id] = std::move(found);
  }
  void keep_high(ValueId id, std::string_view reason);
  void decide();

 private:
  friend class SlotBuilder;

  struct Slot {
    SlotId parent = 0;
    Hold hold = Hold::free;
    std::string_view reason = {};
  };
  struct Use {
    SlotId slot = any_type;
  };

  [[nodiscard]] SlotId root(SlotId slot) const;
  [[nodiscard]] const Slot& at(SlotId slot) const { return slots_[root(slot)]; }
  void unite(SlotId a, SlotId b);
  void hold(SlotId slot, Hold hold, std::string_view reason);
  [[nodiscard]] std::uint32_t element_in(SlotId slot, ValueId id) const;
  [[nodiscard]] bool keeps_edge(const Declaration& edge) const;
  void hold_movers(const Graph& graph);
  void hold_adapting(const Graph& graph);
  void decide_sources();
  void decide_edges();
  void decide_outputs();
  [[nodiscard]] std::string_view reason_of(SlotId slot, ValueId id) const;

  const Model& model_;
  Settings settings_;
  mutable std::vector<Slot> slots_;                 // root() shortens paths
  std::size_t held_slots_ = 0;                      // holds so far
  std::vector<SlotId> value_slots_;                 // by value
  std::vector<std::vector<SlotId>> node_inputs_;    // by node
  std::vector<std::vector<SlotId>> graph_outputs_;  // by graph
  std::vector<std::vector<Use>> uses_;              // by value
  std::vector<std::uint32_t> produced_;             // by value
  std::vector<std::uint32_t> model_outputs_;        // types of the main graph's outputs
  std::vector<bool> copied_;
  std::vector<Fit> fits_;
  std::vector<std::shared_ptr<const Quantization>> quantizations_;  // by value
};

}  // namespace tensorcast::models::onnx
