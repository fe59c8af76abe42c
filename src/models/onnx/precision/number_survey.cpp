// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/number_survey.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "tensorcast/facts.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {
namespace {

using ::tensorcast::onnx::ConvertRequest;
using ::tensorcast::onnx::Masks;
using ::tensorcast::onnx::OnOverflow;

constexpr std::string_view mostly_zero = "most numbers of a constant that it takes would become zero";
constexpr std::string_view scale_too_small = "a divisor or scale that it takes would be zero or lose digits";
constexpr std::string_view other_weights_stay = "it is no matrix of a product; --only op:TYPE selects it";
constexpr std::string_view takes_small = "it takes numbers that are too small for the type";

// A node that gives the elements that it takes.
bool passes_on(const Node& node) {
  return node.domain.empty() && (node.op_type == "Cast" || only_moves_elements(node.op_type));
}

bool is_product(const Node& node) {
  constexpr std::string_view products[] = {"Mul", "Div", "MatMul", "Gemm", "Conv", "ConvTranspose"};
  return node.domain.empty() && contains(products, node.op_type);
}

// The largest magnitudes of the numbers that share a scale.
class ScaleGroups {
 public:
  ScaleGroups(std::span<const std::int64_t> shape, std::size_t axis, std::int64_t block, bool by_axis) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const auto length = static_cast<std::uint64_t>(shape[i]);
      (i < axis ? outer_ : i == axis ? length_ : inner_) *= length;
    }
    if (!by_axis) {
      is_one_ = true;
    } else if (block != 0) {
      block_ = static_cast<std::uint64_t>(block);
      blocks_ = (length_ + block_ - 1) / block_;
    }
    largest_.resize(is_one_ ? 1 : block_ == 0 ? length_ : outer_ * blocks_ * inner_);
  }

  void take(std::uint64_t first, std::span<const double> numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      double& largest = largest_[group_of(first + i)];
      largest = std::max(largest, std::abs(numbers[i]));
    }
  }

  // The smallest of the groups that are not all zero; infinity if there is none.
  [[nodiscard]] double smallest() const {
    double smallest = std::numeric_limits<double>::infinity();
    for (const double largest : largest_) smallest = largest > 0.0 ? std::min(smallest, largest) : smallest;
    return smallest;
  }

 private:
  [[nodiscard]] std::size_t group_of(std::uint64_t index) const {
    if (is_one_) return 0;
    const std::uint64_t along = index / inner_ % length_;
    if (block_ == 0) return along;
    return (index / inner_ / length_ * blocks_ + along / block_) * inner_ + index % inner_;
  }

  std::uint64_t outer_ = 1, length_ = 1, inner_ = 1, block_ = 0, blocks_ = 0;
  bool is_one_ = false;
  std::vector<double> largest_;
};

// A scale below it has less than five good bits in float16, or is zero, which makes NaN of the codes.
constexpr double smallest_float16_scale = 0x1p-19;

}  // namespace

// Nodes that are followed: each once, as many ways may lead to it, and only so many, as each constant has its own.
bool NumberSurvey::Seen::add(const Node& node) {
  constexpr std::size_t most_nodes = 256;
  const bool has_output = !node.outputs.empty() && node.outputs[0] != no_value;
  return has_output && ids_.size() < most_nodes && ids_.insert(node.id).second;
}

NumberSurvey::NumberSurvey(const io::InputFile& file, const WeightRecipe* weights, PrecisionPlan& plan)
    : file_(file), weights_(weights), plan_(plan), uses_(plan.model().values.size()) {
  each_graph(plan.model(), [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != no_value) uses_[node.inputs[i]].emplace_back(&node, i);
      }
    }
  });
}

Result<void> NumberSurvey::run() {
  Result<void> done;
  each_graph(plan_.model(), [&](const Graph& graph) {
    if (done) done = survey(graph);
  });
  return done;
}

Result<void> NumberSurvey::survey(const Graph& graph) {
  if (weights_ != nullptr) return survey_weights(graph);
  const DType to = plan_.settings().to;
  for (const Initializer& initializer : graph.initializers) {
    if (!plan_.may_change(initializer.value)) continue;
    TRY(judge(initializer.value, TRY(survey_tensor(file_, initializer.tensor, to)), initializer.name));
  }
  for (const Node& node : graph.nodes) {
    if (node.outputs.empty() || node.outputs[0] == no_value || !plan_.may_change(node.outputs[0])) continue;
    if (node.op_type != "Constant" && node.op_type != "ConstantOfShape") continue;
    for (const Attribute& attribute : node.attributes) {
      if (attribute.name.starts_with("value_float")) {
        TRY(judge(node.outputs[0], TRY(survey_numbers(attribute.floats, to)), node.output_names[0]));
      } else if (attribute.tensor.length != 0) {
        TRY(judge(node.outputs[0], TRY(survey_tensor(file_, attribute.tensor, to)), node.output_names[0]));
      }
    }
  }
  return {};
}

// Finds the weights that get scales: those of two or more dimensions, along the axis that the first consumer needs.
Result<void> NumberSurvey::survey_weights(const Graph& graph) {
  for (const Initializer& initializer : graph.initializers) {
    if (!initializer.sparse) TRY(survey_weight(graph, initializer));
  }
  for (const Node& node : graph.nodes) {
    const Attribute* value = node.op_type == "Constant" && node.domain.empty() ? node.attribute("value") : nullptr;
    if (value == nullptr || !value->reference.empty() || node.outputs.empty() || node.outputs[0] == no_value) continue;
    Initializer tensor = as_initializer(*value);
    tensor.value = node.outputs[0];
    TRY(survey_weight(graph, tensor));
  }
  return {};
}

// Returns the use that tells how a weight's rows lie; null: no scheme is for it. Embeddings stay, also if a product
// takes them, too, and so do convolutions and biases, unless the request selects their operators.
const NumberSurvey::Use* NumberSurvey::weight_use(ValueId id) const {
  const std::vector<Use>& uses = uses_[id];
  const bool is_selected = !plan_.settings().request->only.empty();
  const bool is_embedding = std::ranges::any_of(uses, [](const Use& use) { return use.first->op_type == "Gather"; });
  if (!is_selected && is_embedding) return nullptr;
  const auto is_matrix = [](const Use& use) { return is_matrix_input(*use.first, use.second); };
  const auto is_turned_matrix = [&](const Use& use) {
    const Node& node = *use.first;
    return node.op_type == "Transpose" && !node.outputs.empty() && node.outputs[0] != no_value &&
           std::ranges::any_of(uses_[node.outputs[0]], is_matrix);
  };
  auto found = std::ranges::find_if(uses, is_matrix);
  if (found == uses.end()) found = std::ranges::find_if(uses, is_turned_matrix);
  const auto is_recurrent = [](const Use& use) {  // its biases have two dimensions
    return use.first->op_type == "LSTM" || use.first->op_type == "GRU" || use.first->op_type == "RNN";
  };
  if (found == uses.end() && is_selected && !is_recurrent(uses.front())) found = uses.begin();
  return found == uses.end() ? nullptr : &*found;
}

// Other weights of the node that takes it may change.
void NumberSurvey::keep_weight(ValueId id, std::string_view reason) {
  plan_.keep_value(id, reason);
  kept_.push_back({.name = plan_.model().values[id].name, .reason = reason});
}

Result<void> NumberSurvey::survey_weight(const Graph& graph, const Initializer& initializer) {
  constexpr std::int64_t first_per_axis = 13;
  constexpr std::int64_t first_narrow_scales = 19;
  if (!plan_.may_change(initializer.value) || initializer.rank < 2 || initializer.count == 0) return {};
  const std::vector<Use>& uses = uses_[initializer.value];
  const bool has_scales = std::ranges::any_of(uses, [](const Use& use) {
    return use.first->op_type == "DequantizeLinear" || use.first->op_type == "QuantizeLinear";
  });
  if (uses.empty() || has_scales) return {};
  const Use* use = weight_use(initializer.value);
  if (use == nullptr) {
    keep_weight(initializer.value, other_weights_stay);
    return {};
  }
  const auto& [node, index] = *use;
  const std::size_t axis =
      weights_->block == 0 ? channel_axis(*node, index, initializer.rank) : input_axis(*node, index, initializer.rank);
  const std::int64_t opset = graph.opset("");
  Quantization::Source source{.file = &file_,
                              .tensor = initializer.tensor,
                              .dtype = initializer.element,
                              .name = plan_.model().values[initializer.value].name,
                              .allow_loss = plan_.settings().request->allow_loss};
  if (source.dtype != DType::float32 && opset < first_narrow_scales) {
    keep_weight(initializer.value, "DequantizeLinear gives float32 only before opset 19");
    return {};
  }
  const bool by_axis = opset >= first_per_axis;
  std::optional<ScaleGroups> groups;
  bool is_finite = true;
  TRY(each_number(
      file_, initializer.tensor,
      [&](const std::vector<std::int64_t>& shape) {
        source.shape = shape;
        if (source.dtype == DType::float16) groups.emplace(shape, axis, weights_->block, by_axis);
      },
      [&](std::uint64_t first, const std::vector<double>& numbers) {
        if (groups) groups->take(first, numbers);
        is_finite = is_finite && std::ranges::all_of(numbers, [](double x) { return x - x == 0; });
      }));
  if (!is_finite) {
    keep_weight(initializer.value, "it has an infinity or NaN");
    return {};
  }
  if (weights_->block != 0 && source.shape[axis] < weights_->block) {
    keep_weight(initializer.value, "it has fewer inputs than share a scale");
    return {};
  }
  const double largest_code = number_facts(weights_->scheme->codes).largest;
  source.float32_scales = groups && groups->smallest() / largest_code < smallest_float16_scale;
  plan_.set_quantization(initializer.value, std::make_shared<const Quantization>(*weights_, std::move(source), axis,
                                                                                 by_axis, last_weight_));
  findings_.push_back({.value = initializer.value, .numbers = {.count = initializer.count}});
  return {};
}

// What a constant is to the nodes that take it, through nodes that only move elements.
NumberSurvey::Role NumberSurvey::role_of(ValueId id, Seen& seen) const {
  Role role = Role::number;
  for (const auto& [node, index] : uses_[id]) {
    const std::string_view op = node->op_type;
    if (!node->domain.empty()) continue;
    const bool is_scale = (op == "Div" && index == 1) || op == "Reciprocal" ||
                          ((op == "DequantizeLinear" || op == "QuantizeLinear") && index == 1);
    if (is_scale) return Role::scale;
    const bool is_factor = op == "Mul" || (op == "BatchNormalization" && index == 4);
    if (is_factor) role = Role::factor;
    if (!passes_on(*node) || !seen.add(*node)) continue;
    role = std::max(role, role_of(node->outputs[0], seen));
  }
  return role;
}

// Returns why numbers that are small in the type do harm; "" if they do none.
std::string_view NumberSurvey::harm_of_small(ValueId id, const TensorNumbers& found) const {
  if (found.vanishing * 2 > found.nonzero) return mostly_zero;
  const std::uint64_t damaged = found.vanishing + found.subnormal;
  if (damaged == 0) return "";
  Seen seen;
  const Role role = role_of(id, seen);
  const bool is_harmed = role == Role::scale || (role == Role::factor && found.vanishing + found.tiny == found.nonzero);
  return is_harmed ? scale_too_small : std::string_view();
}

// Keeps the type of a constant, and of the nodes that take it or its elements.
void NumberSurvey::keep_small(ValueId id, std::string_view reason, Seen& seen) {
  plan_.keep_high(id, reason);
  for (const auto& [node, index] : uses_[id]) {
    if (!seen.add(*node)) continue;
    if (passes_on(*node)) {
      keep_small(node->outputs[0], reason, seen);
    } else {
      keep_behind(*node, is_product(*node), seen);
    }
  }
}

// What a node makes of small numbers is small, too, until it is divided or multiplied: Add(x, 1e-12), Sqrt, Div.
void NumberSurvey::keep_behind(const Node& made_by, bool is_product, Seen& seen) {
  constexpr std::string_view makers[] = {"Add", "Sub", "Max", "Min", "Clip", "Sum", "Sqrt", "Pow", "Neg", "Abs"};
  const bool makes_small =
      made_by.domain.empty() && (is_product || passes_on(made_by) || contains(makers, made_by.op_type));
  if (!makes_small) return;
  for (const auto& [node, index] : uses_[made_by.outputs[0]]) {
    const std::string_view op = node->op_type;
    if (!node->domain.empty()) continue;
    const bool goes_on = passes_on(*node) || op == "Sqrt" || op == "Pow" || op == "Neg" || op == "Abs";
    const bool ends =
        op == "Reciprocal" || op == "Log" || (op == "Div" && (index == 1 || is_product)) || (op == "Mul" && is_product);
    if (!goes_on && !ends) continue;
    plan_.keep_input(*node, index, takes_small);
    if (goes_on && seen.add(*node)) keep_behind(*node, is_product, seen);
  }
}

Result<void> NumberSurvey::judge(ValueId id, const TensorNumbers& found, const std::string& tensor_name) {
  const ConvertRequest& request = *plan_.settings().request;
  const DType to = plan_.settings().to;
  const bool has_limit = request.max_finite > 0.0 && request.max_finite <= number_facts(to).largest;
  findings_.push_back({.value = id, .numbers = found, .has_limit = has_limit});
  const std::string_view harm = request.min_positive == 0.0 ? harm_of_small(id, found) : std::string_view();
  if (!harm.empty() && request.on_overflow == OnOverflow::error) {
    return Error{.code = ErrorCode::out_of_range,
                 .message = fmt::format("{} of {} nonzero numbers become zero in {}, {} lose digits", found.vanishing,
                                        found.nonzero, name(to), found.subnormal),
                 .tensor = tensor_name};
  }
  if (!harm.empty()) {
    Seen seen;
    keep_small(id, harm, seen);
  }
  if (found.nan_made > 0) plan_.keep_high(id, "numbers of it would become NaN");
  if (found.overflowing == 0 || has_limit) return {};
  if (found.masks >= found.overflowing && request.masks != Masks::as_others) {
    if (request.masks == Masks::finite) plan_.set_fit(id, Fit::clamp);
    return {};
  }
  switch (request.on_overflow) {
    case OnOverflow::keep_high:
      plan_.keep_high(id, "a number of it is beyond the type's range");
      return {};
    case OnOverflow::clamp:
      plan_.set_fit(id, Fit::clamp);
      return {};
    case OnOverflow::inf:
      return {};
    case OnOverflow::error:
      break;
  }
  return Error{.code = ErrorCode::out_of_range,
               .message = fmt::format("{} numbers are beyond the range of {}", found.overflowing, name(request.to)),
               .tensor = tensor_name};
}

}  // namespace tensorcast::models::onnx
