// SPDX-License-Identifier: Apache-2.0
// Bounds such as 1 - 1e-6, which keep a number from 1: of Atanh, or of 1 - x in a Log or a divisor. A narrow type makes
// them 1, and the results infinite.
#include <algorithm>
#include <cmath>
#include <vector>

#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/precision/number_survey.hpp"
#include "tensorcast/facts.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr std::string_view bound_becomes_one = "a bound just below 1 that keeps its numbers from 1 would become 1";

bool becomes_one(double number, DType to) {
  const double magnitude = std::abs(number);
  return magnitude < 1.0 && magnitude >= 1.0 - number_facts(to).epsilon / 4;
}

}  // namespace

// Returns the numbers of a constant that may be a bound; none for others.
Result<std::vector<double>> NumberSurvey::bounds_of(ValueId id) const {
  constexpr std::uint64_t most_bounds = 64;
  std::vector<double> bounds;
  if (id == no_value || !plan_.settings().converts(plan_.model().values[id].type)) return bounds;
  const auto take = [&](std::uint64_t, const std::vector<double>& numbers) {
    bounds.insert(bounds.end(), numbers.begin(), numbers.end());
  };
  const auto read = [&](const Initializer& tensor) -> Result<void> {
    if (tensor.tensor.length == 0 || tensor.count > most_bounds) return {};
    return each_number(
        file_, tensor.tensor, [](const std::vector<std::int64_t>&) {}, take);
  };
  const Value& value = plan_.model().values[id];
  if (value.initializer != nullptr) {
    TRY(read(*value.initializer));
  } else if (is_constant_node(value.producer)) {
    for (const Attribute& attribute : value.producer->attributes) {
      TRY(read(as_initializer(attribute)));
      bounds.insert(bounds.end(), attribute.floats.begin(), attribute.floats.end());
    }
  }
  return bounds;
}

Result<void> NumberSurvey::survey_bounds(const Node& node) {
  constexpr std::string_view limiters[] = {"Clip", "Max", "Min", "Where"};
  if (!node.domain.empty() || !contains(limiters, node.op_type)) return {};
  if (node.outputs.empty() || node.outputs[0] == no_value) return {};
  if (!plan_.settings().converts(plan_.model().values[node.outputs[0]].type)) return {};
  std::vector<double> bounds;
  for (const ValueId input : node.inputs) {
    const std::vector<double> numbers = TRY(bounds_of(input));
    bounds.insert(bounds.end(), numbers.begin(), numbers.end());
  }
  for (const Attribute& attribute : node.attributes) {  // before opset 11
    bounds.insert(bounds.end(), attribute.floats.begin(), attribute.floats.end());
  }
  const DType to = plan_.settings().to;
  if (std::ranges::none_of(bounds, [&](double bound) { return becomes_one(bound, to); })) return {};
  Seen seen;
  if (!keep_near_one(node.outputs[0], seen)) return {};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) plan_.keep_input(node, i, bound_becomes_one);
  return {};
}

// Keeps the type of what takes numbers near 1 to where their distance from 1 is the result. Returns whether there is
// such a place.
bool NumberSurvey::keep_near_one(ValueId id, Seen& seen) {
  constexpr std::string_view ends[] = {"Log", "Atanh"};
  constexpr std::string_view ways[] = {"Neg", "Abs", "Div", "Reciprocal", "Clip", "Max", "Min"};
  const auto is_constant = [&](ValueId other) {
    const Value& value = plan_.model().values[other];
    return value.initializer != nullptr || is_constant_node(value.producer);
  };
  bool is_needed = false;
  for (const auto& [node, index] : uses_[id]) {
    if (!node->domain.empty()) continue;
    const bool is_sum = (node->op_type == "Sub" || node->op_type == "Add") && node->inputs.size() == 2 &&
                        node->inputs[1 - index] != no_value && is_constant(node->inputs[1 - index]);
    const bool goes_on = is_sum || passes_on(*node) || contains(ways, node->op_type);
    const bool is_end = contains(ends, node->op_type);
    const bool leads_on = goes_on && seen.add(*node) && keep_near_one(node->outputs[0], seen);
    if (!is_end && !leads_on) continue;
    plan_.keep_input(*node, index, bound_becomes_one);
    is_needed = true;
  }
  for (const ValueId same : same_[id]) {
    if (follows(same, seen) && keep_near_one(same, seen)) {
      plan_.keep_high(same, bound_becomes_one);
      is_needed = true;
    }
  }
  return is_needed;
}

}  // namespace tensorcast::models::onnx
