// SPDX-License-Identifier: Apache-2.0
// Holds values whose digits count: sizes and indices that are floats, lengths, whole numbers that are compared, angles.
#include <algorithm>
#include <map>
#include <vector>

#include "dtype/lookup.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/precision/slots.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr std::string_view of_sizes = "it computes sizes or indices";
constexpr std::string_view of_angles = "it computes angles of whole numbers, whose digits the type does not have";
constexpr std::string_view of_compared = "it compares whole numbers, of which the type does not have all";
constexpr std::string_view of_lengths = "it computes with lengths or positions, which may be beyond the type's range";

// What numbers a value is made of: a set.
using Origins = std::uint16_t;
constexpr Origins of_constants = 1, of_cast_constants = 2 /* integers */, of_integers = 4, of_shapes = 8,
                  of_inputs = 16, of_others = 32, is_scaled = 64 /* by a product */,
                  is_narrowed = 128 /* by a root or logarithm */, in_progress = 256;

bool has_any(Origins origins, Origins wanted) { return (origins & wanted) != 0; }
bool is_whole(Origins origins) {
  return has_any(origins, of_integers | of_shapes) && !has_any(origins, of_inputs | of_others);
}
bool is_length(Origins origins) {
  return has_any(origins, of_shapes) && !has_any(origins, of_integers | of_inputs | of_others);
}
bool narrows(std::string_view op) { return op == "Exp" || op == "Log" || op == "Reciprocal" || op == "Sqrt"; }
// Positions, and times that are an input: numbers of any size.
bool is_angle(Origins origins) {
  const bool is_scaled_input =
      has_any(origins, of_inputs) && has_any(origins, is_scaled) && !has_any(origins, of_others);
  return has_any(origins, of_cast_constants | of_integers | of_shapes) || is_scaled_input;
}

bool is_constant_number(Origins origins) {
  return !has_any(origins, Origins(~(of_constants | is_scaled | is_narrowed)));
}

// Why a walk back from a value holds what computes it.
enum class Walk : std::uint8_t { sizes = 1, compared = 2, angles = 4 };

bool is_cast_node(const Node& node) { return node.op_type == "Cast" || node.op_type == "CastLike"; }

// Gives elements that it takes, of some of its inputs.
bool selects_elements(const Node& node) {
  constexpr std::string_view selectors[] = {"GlobalMaxPool", "MaxPool", "TopK", "Unique"};
  return only_moves_elements(node.op_type) || is_container_operator(node.op_type) || contains(selectors, node.op_type);
}

class ExactNumbers {
 public:
  ExactNumbers(const Model& model, const PrecisionSettings& settings, Slots& slots)
      : model_(model),
        settings_(settings),
        slots_(slots),
        sources_(model.values.size()),
        origins_(model.values.size()),
        walked_(model.values.size()) {}

  void hold() {
    // A function has the same types in all calls, most of which may have nothing to do with what one of them computes.
    std::map<const Function*, std::size_t> calls;
    each_graph(model_, [&](const Graph& graph) {
      for (const Node& node : graph.nodes) ++calls[model_.function(node)];
    });
    each_graph(model_, [&](const Graph& graph) {
      for (const Node& node : graph.nodes) {
        const Function* const function = model_.function(node);
        if (function != nullptr && calls[function] > 1) continue;
        each_alias(model_, graph, node, [&](ValueId from, ValueId to) { sources_[to].push_back(from); });
      }
    });
    each_node([&](const Node& node) { hold_sizes(node); });
    if (settings_.to == DType::float16) hold_lengths();
    if (settings_.to != DType::float16 && settings_.to != DType::bfloat16) return;
    each_node([&](const Node& node) { hold_angle(node); });
    each_node([&](const Node& node) { hold_compared(node); });
  }

 private:
  static constexpr int max_chain = 48;

  [[nodiscard]] const ValueType& type(ValueId id) const { return model_.values[id].type; }
  [[nodiscard]] bool converts(ValueId id) const { return id != no_value && settings_.converts(type(id)); }
  [[nodiscard]] bool is_float(ValueId id) const {
    return id != no_value && is_onnx(type(id).element) && family(type(id).element) == Family::floating;
  }
  [[nodiscard]] bool is_integer(ValueId id) const { return id != no_value && is_wide_integer(type(id).element); }

  template <class Visit>
  void each_node(const Visit& visit) {
    each_graph(model_, [&](const Graph& graph) {
      for (const Node& node : graph.nodes) {
        if (node.domain.empty() && !node.inputs.empty() && !node.outputs.empty()) visit(node);
      }
    });
  }

  void hold_value(ValueId id, std::string_view reason) {
    if (converts(id)) slots_.hold(slots_.of_values[id], Hold::rule, reason);
  }

  // Floats that become sizes, indices or text stay exact: everything that computes them, back to the first operator
  // that computes something else.
  void hold_sizes(const Node& node) {
    const bool makes_sizes = is_wide_integer(cast_target(node));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (makes_sizes || is_size_input(node.op_type, i)) hold_back(node.inputs[i], Walk::sizes);
    }
  }

  // Lengths and positions of a tensor have no bound that is known: what a Cast makes of them, and what is computed from
  // them and constants alone, up to a root or logarithm, stays exact, and so does a quotient by them.
  void hold_lengths() {
    const auto is_long = [&](ValueId id) {
      return is_float(id) && is_length(origins(id)) && !has_any(origins(id), is_narrowed);
    };
    for (ValueId id = 0; id < model_.values.size(); ++id) {
      if (is_long(id)) hold_value(id, of_lengths);
    }
    each_node([&](const Node& node) {
      const bool is_quotient = node.op_type == "Div" && node.inputs.size() == 2 && is_long(node.inputs[1]);
      if (is_quotient || (narrows(node.op_type) && is_long(node.inputs[0]))) hold_value(node.outputs[0], of_lengths);
    });
  }

  // Positions and times are whole numbers, of which 16 bits hold those up to 2048 or 256, and their angles need digits
  // behind the point, too: from the Cast of an integer to Sin or Cos, as rotary embeddings have them, all stays exact.
  // A time may also be an input of the model that is only scaled.
  void hold_angle(const Node& node) {
    if ((node.op_type != "Sin" && node.op_type != "Cos") || !converts(node.outputs[0])) return;
    if (!is_float(node.inputs[0]) || !is_angle(origins(node.inputs[0]))) return;
    hold_back(node.inputs[0], Walk::angles);
    hold_value(node.outputs[0], of_angles);
  }

  // Equal, Less and others of a whole number, such as an identifier or a length, and the place of the largest one. What
  // it is compared with is a whole number, too, whatever computes it.
  void hold_compared(const Node& node) {
    constexpr std::string_view comparing[] = {"ArgMax",         "ArgMin", "Equal",      "Greater",
                                              "GreaterOrEqual", "Less",   "LessOrEqual"};
    if (!contains(comparing, node.op_type)) return;
    const auto is_of_integers = [&](ValueId id) { return is_float(id) && is_whole(origins(id)); };
    if (std::ranges::none_of(node.inputs, is_of_integers)) return;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      hold_back(node.inputs[i], Walk::compared);
      const SlotId slot = slots_.node_inputs[node.id][i];
      if (converts(node.inputs[i]) && slot < exact_type) slots_.hold(slot, Hold::rule, of_compared);
    }
  }

  // Whether the value is one of those that a walk looks for: a size, a whole number or an angle.
  bool goes_on(ValueId id, Walk walk, bool is_first) {
    const Node* const node = model_.values[id].producer;
    const bool has_sources = !sources_[id].empty();
    if (!has_sources && (node == nullptr || !node->domain.empty())) return false;
    if (walk == Walk::angles) return has_any(origins(id), of_cast_constants | of_integers | of_shapes | of_inputs);
    // A causal mask, to which a mask of integers is added, can have the new type.
    if (walk == Walk::compared && !is_first && is_constant_number(origins(id))) return false;
    return has_sources || selects_elements(*node) || may_compute_sizes(node->op_type) || is_whole(origins(id));
  }

  // Holds a value and what it is computed from, also under other names.
  void hold_back(ValueId first, Walk walk) {
    const auto mark = static_cast<std::uint8_t>(walk);
    const std::string_view reason = walk == Walk::sizes ? of_sizes : walk == Walk::compared ? of_compared : of_angles;
    std::vector<ValueId> left = {first};
    while (!left.empty()) {
      const ValueId id = left.back();
      left.pop_back();
      if (!converts(id) || (walked_[id] & mark) != 0) continue;
      walked_[id] |= mark;
      if (!goes_on(id, walk, id == first)) continue;
      hold_value(id, reason);
      const std::vector<ValueId>& from = sources_[id].empty() ? model_.values[id].producer->inputs : sources_[id];
      left.insert(left.end(), from.begin(), from.end());
    }
  }

  Origins origins(ValueId id, int steps = max_chain) {
    if (id == no_value) return 0;
    if (has_any(origins_[id], in_progress)) return 0;  // a Loop carries it, or the model is malformed
    if (origins_[id] != 0) return origins_[id];
    if (steps == 0) return of_others;
    origins_[id] = in_progress;
    return origins_[id] = find_origins(id, steps - 1);
  }

  Origins find_origins(ValueId id, int steps) {
    const Value& value = model_.values[id];
    if (value.initializer != nullptr || is_constant_node(value.producer)) return of_constants;
    if (!sources_[id].empty()) {
      Origins found = 0;
      for (const ValueId source : sources_[id]) found |= origins(source, steps);
      return found == 0 ? of_others : found;
    }
    if (is_integer(id)) return integer_origins(value.producer, steps);
    if (value.producer == nullptr) return value.graph == model_.graph.get() ? of_inputs : of_others;
    const Node& node = *value.producer;
    const std::string_view op = node.op_type;
    if (!node.domain.empty() || node.inputs.empty() || !is_float(id)) return of_others;
    if (op == "ConstantOfShape" || op == "EyeLike") return of_constants;
    if (is_cast_node(node)) return cast_origins(node.inputs[0], steps);
    if (op != "Range" && !selects_elements(node) && !computes_numbers(op)) return of_others;
    Origins found = 0;
    std::size_t of_input = 0;  // operands
    for (const ValueId input : node.inputs) {
      const Origins each = is_float(input) ? origins(input, steps) : Origins(0);
      of_input += has_any(each, of_inputs) ? 1 : 0;
      found |= each;
    }
    if (op == "Range") return has_any(found, of_shapes) ? of_shapes : of_integers;
    constexpr std::string_view products[] = {"Div", "Einsum", "Gemm", "MatMul", "Mul"};
    constexpr std::string_view sums[] = {"Add", "Neg", "Sub", "Sum"};
    const bool is_product_of_numbers = contains(products, op);
    const bool is_linear = is_product_of_numbers ? of_input < 2 : selects_elements(node) || contains(sums, op);
    if (is_product_of_numbers) found |= is_scaled;
    if (narrows(op)) found |= is_narrowed;
    if (op.starts_with("Gather") && is_constant_number(found) && !is_constant_index(node, steps)) return of_others;
    if (of_input != 0 && !is_linear) found |= of_others;
    return found == 0 ? of_others : found;
  }

  // Otherwise a table is looked up.
  bool is_constant_index(const Node& node, int steps) {
    return node.inputs.size() > 1 && is_integer(node.inputs[1]) && origins(node.inputs[1], steps) == of_constants;
  }

  // Small integers and bools have a place in every type.
  Origins cast_origins(ValueId from, int steps) {
    if (is_float(from)) return origins(from, steps);
    if (!is_integer(from)) return from != no_value && is_onnx(type(from).element) ? of_constants : of_others;
    const Origins found = origins(from, steps);
    return found == of_constants ? of_cast_constants : found;
  }

  Origins integer_origins(const Node* node, int steps) {
    if (node == nullptr || !node->domain.empty()) return of_integers;
    if (node->op_type == "Shape" || node->op_type == "Size") return of_shapes;
    if (!is_cast_node(*node) && !selects_elements(*node) && !computes_numbers(node->op_type)) return of_integers;
    Origins found = 0;
    for (const ValueId input : node->inputs) {
      if (is_integer(input) || (is_cast_node(*node) && is_float(input))) found |= origins(input, steps);
    }
    if (has_any(found, of_shapes)) return of_shapes;
    return found == of_constants ? of_constants : of_integers;
  }

  const Model& model_;
  const PrecisionSettings& settings_;
  Slots& slots_;
  std::vector<std::vector<ValueId>> sources_;  // by value: what bodies and functions take and give as it
  std::vector<Origins> origins_;               // of values; 0: not known yet
  std::vector<std::uint8_t> walked_;           // by value: hold_back() was there
};

}  // namespace

void hold_exact_numbers(const Model& model, const PrecisionSettings& settings, Slots& slots) {
  ExactNumbers(model, settings, slots).hold();
}

}  // namespace tensorcast::models::onnx
