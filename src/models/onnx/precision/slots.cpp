// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/slots.hpp"

#include <utility>

#include "dtype/lookup.hpp"

namespace tensorcast::models::onnx {

SlotId Slots::add(Hold hold, std::string_view reason) {
  const auto id = static_cast<SlotId>(slots_.size());
  slots_.push_back({.parent = id, .hold = hold, .reason = reason});
  return id;
}

SlotId Slots::root(SlotId slot) const {
  while (slots_[slot].parent != slot) slot = slots_[slot].parent = slots_[slots_[slot].parent].parent;
  return slot;
}

void Slots::unite(SlotId a, SlotId b) {
  a = root(a);
  b = root(b);
  if (a == b) return;
  // The older one stays the root, so that results do not depend on the order of calls.
  if (b < a) std::swap(a, b);
  hold(a, slots_[b].hold, slots_[b].reason);
  slots_[b].parent = a;
}

void Slots::hold(SlotId slot, Hold how, std::string_view reason) {
  Slot& held = slots_[root(slot)];
  if (how <= held.hold) return;
  ++holds_;
  held.hold = how;
  held.reason = reason;
}

// An input with a default is an initializer: before IR version 4 every initializer had to be an input, too. One that is
// also an output keeps its type with the other outputs.
bool keeps_edge(const Model& model, const PrecisionSettings& settings, const Declaration& edge) {
  const ::tensorcast::onnx::ConvertRequest& request = *settings.request;
  if (const auto given = settings.io_elements.find(edge.name); given != settings.io_elements.end()) {
    return given->second == model.values[edge.value].type.element;
  }
  if (contains(request.keep_io_names, edge.name)) return true;
  const Value& value = model.values[edge.value];
  if (value.is_input && value.initializer != nullptr && !value.is_output) return false;
  return request.keep_io_types || request.weights_only;
}

}  // namespace tensorcast::models::onnx
