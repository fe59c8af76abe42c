// SPDX-License-Identifier: Apache-2.0
// Slots: type variables of nodes and types of values, which convert together or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/ir/schema.hpp"
#include "models/onnx/precision/operator_types.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {

// What a conversion does.
struct PrecisionSettings {
  DType to = DType::undefined;
  std::uint64_t from = 0;  // as has_type() takes it
  const ::tensorcast::onnx::ConvertRequest* request = nullptr;
  std::vector<bool> blocked = {};  // by node, or empty: the request keeps it
  std::map<std::string, DType, std::less<>> io_elements = {};
  std::vector<OperatorTypes> operators = {};
  bool quantizes = false;  // weights become codes with scales, and all else keeps its type
  [[nodiscard]] bool converts(const ValueType& type) const noexcept {
    return type.element != to && has_type(from, type.element);
  }
};

// How strictly a slot keeps its type. Values at the edge of the model still change for `runtime`.
enum class Hold : std::uint8_t { free, runtime, rule };

using SlotId = std::uint32_t;
inline constexpr SlotId any_type = UINT32_MAX;        // takes the value in whatever type it has
inline constexpr SlotId exact_type = UINT32_MAX - 1;  // takes the value in its old type only

class Slots {
 public:
  struct Slot {
    SlotId parent = 0;
    Hold hold = Hold::free;
    std::string_view reason = {};
  };

  SlotId add(Hold hold = Hold::free, std::string_view reason = {});
  [[nodiscard]] SlotId root(SlotId slot) const;
  [[nodiscard]] const Slot& at(SlotId slot) const { return slots_[root(slot)]; }
  void unite(SlotId a, SlotId b);
  // A weaker hold than the slot has changes nothing.
  void hold(SlotId slot, Hold how, std::string_view reason);
  [[nodiscard]] std::size_t holds() const noexcept { return holds_; }  // so far

  std::vector<SlotId> of_values;
  std::vector<std::vector<SlotId>> node_inputs;    // by node
  std::vector<std::vector<SlotId>> graph_outputs;  // by graph
  std::vector<std::vector<SlotId>> uses;           // by value: in which each consumer takes it

 private:
  mutable std::vector<Slot> slots_;  // root() shortens paths
  std::size_t holds_ = 0;
};

// Makes them from the schemas, and holds those that rules keep.
[[nodiscard]] Slots build_slots(const Model& model, const PrecisionSettings& settings);

// Holds values whose digits count whatever their consumers are: sizes, indices, lengths, angles, whole numbers.
void hold_exact_numbers(const Model& model, const PrecisionSettings& settings, Slots& slots);

// Whether the request keeps the type of this input or output of the model.
[[nodiscard]] bool keeps_edge(const Model& model, const PrecisionSettings& settings, const Declaration& edge);

}  // namespace tensorcast::models::onnx
