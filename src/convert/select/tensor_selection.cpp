// SPDX-License-Identifier: Apache-2.0
#include "convert/select/tensor_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "dtype/dtype_table.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/names/tensor_kind.hpp"
#include "tensorcast/block.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::file_conversion {
namespace {

using formats::Format;
using formats::TensorInfo;

// What PyTorch's optimizers keep for each parameter.
constexpr auto moments = std::to_array<std::string_view>(
    {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "momentum_buffer", "square_avg", "acc_delta", "grad_avg"});
constexpr std::string_view optimizer = "optimizer";

Error cannot_convert(const TensorInfo& tensor, const Format& input) {
  if (tensor.problem) return *tensor.problem;
  const std::string kind = input.foreign_kind.empty() ? "" : fmt::format("is {}: it ", input.foreign_kind);
  return of_tensor(tensor.name,
                   unsupported(fmt::format("{} {}cannot be converted, only copied", tensor.foreign_dtype, kind),
                               "exclude the tensor"));
}

// Returns why a tensor is no matrix of a layer; nullopt if it is one.
std::optional<Reason> reason_no_layer(const TensorInfo& tensor) {
  const std::size_t rank = tensor.shape.size();
  if (!is_matrix(tensor.name, rank)) return Reason{TypeReason::not_a_matrix};
  if (is_layer_matrix(tensor.name, rank)) return std::nullopt;
  return Reason{TypeReason::kind, 0, std::string(name(tensor_kind(tensor.name, rank)))};
}

// The same for a tensor that a scheme is for.
std::optional<Reason> reason_not_quantized(const TensorInfo& tensor) {
  if (std::optional<Reason> kept = reason_no_layer(tensor)) return kept;
  if (tensor_kind(tensor.name, tensor.shape.size()) == TensorKind::convolution) {
    return Reason{TypeReason::kind, 0, std::string(name(TensorKind::convolution))};
  }
  // Loaders of quantized models expect them as they are.
  if (const Tower tower = tower_of(tensor.name); !tower.part.empty()) {
    return Reason{TypeReason::kind, 0, std::string(tower.kind)};
  }
  if (is_other_parameter(tensor.name, tensor.shape.size())) return Reason{TypeReason::kind, 0, "no module's weight"};
  return std::nullopt;
}

// As the table spells the scheme, for all that compares it; the given name if it has none, which the quantizer refuses.
std::string table_name(const std::string& scheme) {
  const QuantizeRecipe* row = find_quantize_recipe(scheme);
  return row == nullptr ? scheme : std::string(row->scheme);
}

bool chooses_schemes(const TensorTargets& targets) { return !targets.scheme.empty() || targets.budget != 0.0; }

}  // namespace
}  // namespace tensorcast::file_conversion

namespace tensorcast {
inline namespace TENSORCAST_ABI {

bool is_quantized_matrix(std::string_view tensor, std::size_t rank) noexcept {
  return is_layer_matrix(tensor, rank) && tensor_kind(tensor, rank) != TensorKind::convolution &&
         file_conversion::tower_of(tensor).part.empty() && !file_conversion::is_other_parameter(tensor, rank);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

namespace tensorcast::file_conversion {

bool is_optimizer_state(const formats::TensorInfo& tensor) {
  std::string_view rest = tensor.name;
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    if (part == "optim" || part == "optim_state_dict" || part == optimizer || part == "optimizers") return true;
    if (part.starts_with(optimizer) && part.size() > optimizer.size() && part[optimizer.size()] == '_') return true;
    if (std::ranges::find(moments, part) != moments.end()) return true;
    if (dot == std::string_view::npos) return part == "step" && tensor.count == 1;
    rest.remove_prefix(dot + 1);
  }
}

bool has_target(const TensorTargets& targets) {
  return targets.to != DType::undefined || chooses_schemes(targets) || !targets.rules.empty();
}

bool quantizes(const TensorTargets& targets) {
  return chooses_schemes(targets) ||
         std::ranges::any_of(targets.rules, [](const ConvertRule& rule) { return !rule.scheme.empty(); });
}

Result<Selection> Selection::compile(const ConvertRequest& request, const Format& input) {
  std::vector<std::string> rule_patterns;
  for (const ConvertRule& rule : request.rules) {
    if (!rule.keep && rule.scheme.empty() && !is_castable(rule.to)) {
      return invalid(fmt::format("the rule for \"{}\" names no type to convert to", rule.pattern));
    }
    if (rule.keep && rule.scale) {
      return invalid(fmt::format("the rule for \"{}\" keeps its tensors, and so has no use for a scale", rule.pattern));
    }
    if (!rule.scheme.empty() && (rule.keep || rule.scale || rule.to != DType::undefined)) {
      return invalid(
          fmt::format("the rule for \"{}\" has a scheme, and so no type, no scale and no keep", rule.pattern));
    }
    rule_patterns.push_back(rule.pattern);
  }
  Selection selection(request, input);
  for (const auto& [list, texts] :
       {std::pair(&selection.rules_, &std::as_const(rule_patterns)), std::pair(&selection.include_, &request.include),
        std::pair(&selection.exclude_, &request.exclude)}) {
    *list = TRY(PatternList::compile(*texts));
  }
  return selection;
}

// Returns the index of the first rule that matches by name and conditions; the number of rules if none does.
std::size_t Selection::first_rule(const TensorInfo& tensor) {
  const auto rank = static_cast<std::int64_t>(tensor.shape.size());
  return rules_.first_match(tensor.name, [&](std::size_t index) {
    const ConvertRule& rule = request_->rules[index];
    const bool has_rank = rule.ranks.empty() || std::ranges::find(rule.ranks, rank) != rule.ranks.end();
    if (!has_rank || (rule.smaller != 0 && tensor.count >= rule.smaller)) return false;
    if (rule.kinds.empty()) return true;
    const TensorKind kind = tensor_kind(tensor.name, tensor.shape.size());
    return std::ranges::find(rule.kinds, kind) != rule.kinds.end();
  });
}

Result<Decision> Selection::by_rule(std::size_t rule, const TensorInfo& tensor) const {
  const ConvertRule& wanted = request_->rules[rule];
  const Reason reason{TypeReason::rule, rule + 1};
  if (wanted.keep) return Decision{.reason = reason};
  if (tensor.dtype == DType::undefined) return cannot_convert(tensor, *input_);
  if (wanted.scheme.empty()) {
    return Decision{.to = wanted.to, .reason = reason, .scale = wanted.scale.value_or(request_->options.scale)};
  }
  // A pattern for modules has their biases, too.
  if (!is_matrix(tensor.name, tensor.shape.size())) return Decision{.reason = {TypeReason::not_a_matrix}};
  if (family(tensor.dtype) != Family::floating)
    return Decision{.reason = {TypeReason::not_floating, 0, "not floating"}};
  return Decision{.scheme = table_name(wanted.scheme), .recipe = wanted.recipe, .reason = reason};
}

// Returns why the request leaves a tensor that no rule names; nullopt if it does not.
std::optional<Reason> Selection::reason_to_keep(const TensorInfo& tensor) const {
  const std::size_t rank = tensor.shape.size();
  const std::vector<std::int64_t>& kept = request_->keep_rank;
  if (std::ranges::find(kept, static_cast<std::int64_t>(rank)) != kept.end()) return Reason{TypeReason::rank, rank};
  if (tensor.count < request_->keep_smaller) return Reason{TypeReason::smaller, request_->keep_smaller};
  if (chooses_schemes(*request_)) return reason_not_quantized(tensor);
  return request_->preset == Preset::none ? std::nullopt : reason_no_layer(tensor);
}

Result<Decision> Selection::decide(const TensorInfo& tensor, bool optimizer_state) {
  const ConvertRequest& request = *request_;
  const bool has_scheme = chooses_schemes(request);
  const std::size_t rule = first_rule(tensor);
  const bool included = include_.matches(tensor.name);
  if (exclude_.matches(tensor.name)) return Decision{.reason = {TypeReason::excluded}, .included = false};
  if (include_.size() != 0 && !included) {
    return Decision{.reason = {TypeReason::not_included}, .included = false};
  }
  if (rule < rules_.size()) return by_rule(rule, tensor);
  if (tensor.dtype == DType::undefined) return Decision{.reason = {TypeReason::foreign, 0, tensor.foreign_dtype}};
  if (request.to == DType::undefined && !has_scheme)
    return Decision{.reason = {request.include.empty() ? TypeReason::no_rule : TypeReason::included}};
  switch (!input_->many_tensors ? Family::floating : family(tensor.dtype)) {
    case Family::boolean:
      return Decision{.reason = {TypeReason::not_floating, 0, "bool"}};
    case Family::integer:
      return Decision{.reason = {TypeReason::not_floating, 0, "integer"}};
    case Family::text:
      return Decision{.reason = {TypeReason::not_floating, 0, "string"}};
    case Family::floating:
      break;
  }
  if (std::optional<Reason> kept = reason_to_keep(tensor)) return Decision{.reason = *std::move(kept)};
  // Rounded, a count of 1001 steps is 1000, and second moments are zero.
  if (optimizer_state && (request.to != tensor.dtype || has_scheme))
    return Decision{.reason = {TypeReason::optimizer_state}, .left = true};
  if (has_scheme) {
    return Decision{
        .scheme = table_name(request.scheme), .by_budget = request.budget != 0.0, .reason = {TypeReason::to}};
  }
  return Decision{.to = request.to, .reason = {TypeReason::to}, .scale = request.options.scale};
}

Result<void> Selection::check_all_matched() const {
  for (const auto& [list, kind] :
       {std::pair(&rules_, "rule"), std::pair(&include_, "include"), std::pair(&exclude_, "exclude")}) {
    TRY(list->check_all_matched(kind));
  }
  return {};
}

}  // namespace tensorcast::file_conversion
