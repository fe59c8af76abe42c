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
constexpr std::string_view beyond_range = "a number of it is beyond the type's range";
constexpr std::string_view other_weights_stay = "it is no matrix of a product; --only op:TYPE selects it";
constexpr std::string_view is_held = "an operator that takes it needs the type, or it is an output";
constexpr std::string_view has_no_rows = "a Reshape gives it its rows";
constexpr std::string_view takes_small = "it takes numbers that are too small for the type";

// The integers of a Constant without a tensor.
std::vector<float> numbers_of(const Attribute& attribute) {
  std::vector<float> numbers(attribute.ints.begin(), attribute.ints.end());
  if (attribute.type == AttributeType::int_) numbers.push_back(static_cast<float>(attribute.i));
  return numbers;
}

bool is_scale_of_codes(const Node& node, std::size_t input) {
  return input == 1 && (node.op_type == "DequantizeLinear" || node.op_type == "QuantizeLinear");
}

bool is_product(const Node& node) {
  constexpr std::string_view products[] = {"Mul", "Div", "Reciprocal", "MatMul", "Gemm", "Conv", "ConvTranspose"};
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

// Whether a variance is a divisor as it stands: what is added to it hides no loss of float16's last bits.
bool divides_by_variance(const Node& node, std::size_t input) {
  if (node.op_type != "BatchNormalization" || input != 4) return false;
  const auto epsilon = std::ranges::find(node.attributes, "epsilon", &Attribute::name);
  return epsilon != node.attributes.end() && epsilon->floats.size() == 1 && epsilon->floats[0] < smallest_float16_scale;
}

}  // namespace

// Values that are followed: each once, as many ways may lead to it, and only so many, as each constant has its own.
bool NumberSurvey::Seen::add(ValueId id) {
  constexpr std::size_t most_values = 256;
  return ids_.size() < most_values && ids_.insert(id).second;
}

bool NumberSurvey::Seen::add(const Node& node) {
  const bool has_output = !node.outputs.empty() && node.outputs[0] != no_value;
  return has_output && add(node.outputs[0]);
}

NumberSurvey::NumberSurvey(const io::InputFile& file, const WeightRecipe* weights, PrecisionPlan& plan)
    : file_(file),
      weights_(weights),
      plan_(plan),
      uses_(plan.model().values.size()),
      same_(plan.model().values.size()) {
  each_graph(plan.model(), [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != no_value) uses_[node.inputs[i]].emplace_back(&node, i);
      }
      link(node, graph);
    }
  });
}

// Many calls may give a constant each to one function of many nodes, of which each would be looked at for each call.
bool NumberSurvey::follows(ValueId same, Seen& seen) const {
  const std::size_t steps = uses_[same].size() + 1;
  if (steps > steps_left_ || !seen.add(same)) return false;
  steps_left_ -= steps;
  return true;
}

// Finds where bodies and functions take and give the node's values under names of their own.
void NumberSurvey::link(const Node& node, const Graph& graph) {
  each_alias(plan_.model(), graph, node, [&](ValueId from, ValueId to) { same_[from].push_back(to); });
  if (const Function* function = plan_.model().function(node)) {
    calls_[&function->body].push_back({.function = function, .node = &node, .graph = &graph});
  }
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
    TRY(survey_casts(initializer.value, initializer.element, initializer.name,
                     [&] { return survey_tensor(file_, initializer.tensor, to); }));
    if (!plan_.may_change(initializer.value)) continue;
    TRY(judge(initializer.value, TRY(survey_tensor(file_, initializer.tensor, to)), initializer.name));
  }
  for (const Node& node : graph.nodes) {
    TRY(survey_bounds(node));
    if (node.outputs.empty() || node.outputs[0] == no_value) continue;
    if (node.op_type != "Constant" && node.op_type != "ConstantOfShape") continue;
    TRY(survey_arguments(graph, node));
    for (const Attribute& attribute : node.attributes) {
      const bool is_tensor = attribute.tensor.length != 0;
      TRY(survey_casts(node.outputs[0], is_tensor ? attribute.tensor_element : DType::int64, node.output_names[0], [&] {
        return is_tensor ? survey_tensor(file_, attribute.tensor, to) : survey_numbers(numbers_of(attribute), to);
      }));
    }
    if (!plan_.may_change(node.outputs[0]) && !is_result(graph, node.outputs[0])) continue;
    for (const Attribute& attribute : node.attributes) TRY(judge_attribute(node, attribute));
  }
  return {};
}

// A constant that only the calls of its function take, which may cast it.
bool NumberSurvey::is_result(const Graph& graph, ValueId id) const {
  return graph.is_function && !same_[id].empty() && plan_.settings().converts(plan_.model().values[id].type);
}

// Integers, and floats that keep their type, which a Cast makes numbers of the new type.
Result<void> NumberSurvey::survey_casts(ValueId id, DType element, const std::string& tensor_name,
                                        const std::function<Result<TensorNumbers>()>& survey_them) {
  const OnOverflow on_overflow = plan_.settings().request->on_overflow;
  const bool may_exceed = number_facts(element).largest > number_facts(plan_.settings().to).largest;
  if (!may_exceed || on_overflow == OnOverflow::inf || plan_.may_change(id)) return {};
  std::vector<ValueId> casts;
  Seen seen;
  find_casts(id, casts, seen);
  if (casts.empty()) return {};
  const TensorNumbers found = TRY(survey_them());
  if (found.overflowing == 0) return {};
  if (on_overflow == OnOverflow::error) return beyond(found, tensor_name);
  for (const ValueId cast : casts) keep(cast, beyond_range, false);
  return {};
}

// Finds the Casts of a value of a type that stays, and of its elements, to a type that changes.
void NumberSurvey::find_casts(ValueId id, std::vector<ValueId>& casts, Seen& seen) const {
  const auto type = [&](ValueId value) -> const ValueType& { return plan_.model().values[value].type; };
  for (const auto& [node, index] : uses_[id]) {
    if (!passes_on(*node) || !seen.add(*node)) continue;
    for (const ValueId output : node->outputs) {
      if (output == no_value) continue;
      if (!only_moves_elements(node->op_type) && plan_.settings().converts(type(output))) {
        casts.push_back(output);
      } else if (type(output) == type(id)) {
        find_casts(output, casts, seen);
      }
    }
  }
  for (const ValueId same : same_[id]) {
    if (follows(same, seen)) find_casts(same, casts, seen);
  }
}

Result<void> NumberSurvey::judge_attribute(const Node& node, const Attribute& numbers) {
  const DType to = plan_.settings().to;
  if (!numbers.floats.empty()) {
    return judge(node.outputs[0], TRY(survey_numbers(numbers.floats, to)), node.output_names[0]);
  }
  if (numbers.tensor.length == 0) return {};
  return judge(node.outputs[0], TRY(survey_tensor(file_, numbers.tensor, to)), node.output_names[0]);
}

// A constant whose numbers are an attribute of the function keeps its type; its consumers need not, so the numbers that
// calls give it count.
Result<void> NumberSurvey::survey_arguments(const Graph& graph, const Node& node) {
  if (!plan_.settings().converts(plan_.model().values[node.outputs[0]].type)) return {};
  for (const Attribute& attribute : node.attributes) {
    std::vector<const Attribute*> given;
    if (!attribute.reference.empty()) find_arguments(graph, attribute.reference, 0, given);
    for (const Attribute* numbers : given) TRY(judge_attribute(node, *numbers));
  }
  return {};
}

void NumberSurvey::find_arguments(const Graph& graph, const std::string& name, int depth,
                                  std::vector<const Attribute*>& given) const {
  constexpr int max_depth = 8;
  const Graph* outer = &graph;
  while (outer->parent != nullptr) outer = outer->parent;
  const auto calls = calls_.find(outer);
  if (calls == calls_.end() || depth == max_depth) return;
  for (const auto& [function, call, from] : calls->second) {
    if (arguments_left_ == 0) return;
    --arguments_left_;
    const Attribute* found = call->attribute(name);
    for (const Attribute& absent : function->defaults) {
      if (found == nullptr && absent.name == name) found = &absent;
    }
    if (found == nullptr) continue;
    if (found->reference.empty()) {
      given.push_back(found);
    } else {
      find_arguments(*from, found->reference, depth + 1, given);
    }
  }
}

// Finds the weights that get scales: those of two or more dimensions, along the axis that the first consumer needs.
Result<void> NumberSurvey::survey_weights(const Graph& graph) {
  for (const Initializer& initializer : graph.initializers) TRY(survey_weight(graph, initializer));
  for (const Node& node : graph.nodes) {
    const bool is_constant = node.op_type == "Constant" && node.domain.empty();
    if (!is_constant || node.outputs.empty() || node.outputs[0] == no_value) continue;
    for (const Attribute& value : node.attributes) {
      if (!value.reference.empty()) continue;
      Initializer tensor = as_initializer(value);
      tensor.value = node.outputs[0];
      if (!value.floats.empty()) tensor.count = value.floats.size();
      TRY(survey_weight(graph, tensor));
    }
  }
  return {};
}

// Returns the uses of a value, through Identity, calls and bodies.
std::vector<NumberSurvey::Use> NumberSurvey::all_uses(ValueId id) const {
  std::vector<Use> uses;
  std::vector<ValueId> open = {id};
  Seen seen;
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    for (const ValueId same : same_[next]) {
      if (follows(same, seen)) open.push_back(same);
    }
    for (const Use& use : uses_[next]) {
      const Node& node = *use.first;
      const bool is_same =
          (node.op_type == "Identity" && node.domain.empty()) || plan_.model().function(node) != nullptr;
      if (!is_same) uses.push_back(use);
      if (node.op_type == "Identity" && is_same && seen.add(node)) open.push_back(node.outputs[0]);
    }
  }
  return uses;
}

// A weight that the scheme is not for by what it is, not by what takes it, is named, as nothing else tells why it
// stays.
std::string_view NumberSurvey::unfit(const Initializer& initializer) const {
  constexpr std::uint64_t smallest = 1024;  // others with one dimension are biases
  const ValueId id = initializer.value;
  const auto& request = *plan_.settings().request;
  const ValueType& type = plan_.model().values[id].type;
  const bool asks_for_all = request.keep.empty() && request.only.empty();
  if (!type.is_tensor() || initializer.count == 0 || uses_[id].empty()) return "";
  if (initializer.sparse) return plan_.settings().converts(type) ? "it is sparse" : "";  // its rank is not known here
  if (initializer.rank < 2) {
    const bool is_reshaped = std::ranges::any_of(
        uses_[id], [](const Use& use) { return use.second == 0 && use.first->op_type == "Reshape"; });
    return is_reshaped && initializer.count >= smallest && plan_.settings().converts(type) ? has_no_rows : "";
  }
  if (type.element == DType::float64 && request.from.empty()) return "float64 weights get no scales";
  if (!plan_.settings().converts(type)) return "";
  return asks_for_all && !plan_.may_change(id) ? is_held : "";
}

// Returns the use that tells how a weight's rows lie; null: no scheme is for it. Embeddings stay, also if a product
// takes them, too, and so do convolutions and biases, unless the request selects their operators.
std::optional<NumberSurvey::Use> NumberSurvey::weight_use(ValueId id) const {
  const std::vector<Use> uses = all_uses(id);
  const bool is_selected = !plan_.settings().request->only.empty();
  const bool is_embedding = std::ranges::any_of(uses, [](const Use& use) { return use.first->op_type == "Gather"; });
  if (uses.empty() || (!is_selected && is_embedding)) return std::nullopt;
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
  return found == uses.end() ? std::nullopt : std::optional(*found);
}

// Other weights of the node that takes it may change.
void NumberSurvey::keep_weight(ValueId id, std::string_view reason) {
  plan_.keep_value(id, reason);
  kept_.push_back({.name = plan_.model().values[id].name, .reason = reason});
}

Result<void> NumberSurvey::survey_weight(const Graph& graph, const Initializer& initializer) {
  constexpr std::int64_t first_per_axis = 13;
  constexpr std::int64_t first_narrow_scales = 19;
  if (const std::string_view reason = unfit(initializer); !reason.empty()) {
    keep_weight(initializer.value, reason);
    return {};
  }
  if (initializer.sparse || !plan_.may_change(initializer.value) || initializer.rank < 2 || initializer.count == 0) {
    return {};
  }
  const std::vector<Use>& uses = uses_[initializer.value];
  const bool has_scales = std::ranges::any_of(uses, [](const Use& use) {
    return use.first->op_type == "DequantizeLinear" || use.first->op_type == "QuantizeLinear";
  });
  if (uses.empty() || has_scales) return {};
  const std::optional<Use> use = weight_use(initializer.value);
  if (!use) {
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
    const bool is_scale = (op == "Div" && index == 1) || op == "Reciprocal" || op == "Log" ||
                          is_scale_of_codes(*node, index) || divides_by_variance(*node, index);
    if (is_scale) return Role::scale;
    const bool is_factor = op == "Mul" || (op == "BatchNormalization" && index == 4);
    if (is_factor) role = Role::factor;
    if (!passes_on(*node) || !seen.add(*node)) continue;
    role = std::max(role, role_of(node->outputs[0], seen));
  }
  for (const ValueId same : same_[id]) {
    if (follows(same, seen)) role = std::max(role, role_of(same, seen));
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

void NumberSurvey::keep(ValueId id, std::string_view reason, bool is_small) {
  Seen seen;
  keep_elements(id, reason, is_small, seen);
}

// Keeps the type of a constant, and of the nodes that take it or its elements, under whatever name.
void NumberSurvey::keep_elements(ValueId id, std::string_view reason, bool is_small, Seen& seen) {
  plan_.keep_high(id, reason);
  for (const auto& [node, index] : uses_[id]) {
    if (!seen.add(*node)) continue;
    if (passes_on(*node)) {
      for (const ValueId output : node->outputs) {
        const bool is_float = output != no_value && plan_.settings().converts(plan_.model().values[output].type);
        if (is_float) keep_elements(output, reason, is_small, seen);
      }
    } else if (is_small) {
      keep_behind(*node, is_product(*node), seen);
    }
  }
  for (const ValueId same : same_[id]) {
    if (follows(same, seen)) keep_elements(same, reason, is_small, seen);
  }
}

// What a node makes of small numbers is small, too, until it is divided or multiplied: Add(x, 1e-12), Sqrt, Div.
void NumberSurvey::keep_behind(const Node& made_by, bool is_product, Seen& seen) {
  constexpr std::string_view makers[] = {"Add", "Sub", "Max", "Min", "Clip", "Sum", "Sqrt", "Pow", "Neg", "Abs"};
  const bool makes_small =
      made_by.domain.empty() && (is_product || passes_on(made_by) || contains(makers, made_by.op_type));
  if (makes_small) keep_uses(made_by.outputs[0], is_product, seen);
}

void NumberSurvey::keep_uses(ValueId small, bool is_product, Seen& seen) {
  for (const auto& [node, index] : uses_[small]) {
    const std::string_view op = node->op_type;
    if (!node->domain.empty()) continue;
    const bool goes_on = passes_on(*node) || op == "Sqrt" || op == "Pow" || op == "Neg" || op == "Abs";
    const bool ends = op == "Reciprocal" || op == "Log" || (op == "Div" && (index == 1 || is_product)) ||
                      (op == "Mul" && is_product) || is_scale_of_codes(*node, index);
    if (!goes_on && !ends) continue;
    plan_.keep_input(*node, index, takes_small);
    if (goes_on && seen.add(*node)) keep_behind(*node, is_product, seen);
  }
  for (const ValueId same : same_[small]) {
    if (follows(same, seen)) keep_uses(same, is_product, seen);
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
  if (!harm.empty()) keep(id, harm, true);
  if (found.nan_made > 0) keep(id, "numbers of it would become NaN", false);
  if (found.overflowing == 0 || has_limit) return {};
  if (found.masks >= found.overflowing && request.masks != Masks::as_others) {
    if (request.masks == Masks::finite) plan_.set_fit(id, Fit::clamp);
    return {};
  }
  switch (request.on_overflow) {
    case OnOverflow::keep_high:
      keep(id, beyond_range, false);
      return {};
    case OnOverflow::clamp:
      plan_.set_fit(id, Fit::clamp);
      return {};
    case OnOverflow::inf:
      return {};
    case OnOverflow::error:
      break;
  }
  return beyond(found, tensor_name);
}

Error NumberSurvey::beyond(const TensorNumbers& found, const std::string& tensor_name) const {
  return Error{.code = ErrorCode::out_of_range,
               .message = fmt::format("{} numbers are beyond the range of {}", found.overflowing,
                                      name(plan_.settings().request->to)),
               .tensor = tensor_name};
}

}  // namespace tensorcast::models::onnx
