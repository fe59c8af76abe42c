// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/loader_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/names/module_name.hpp"

namespace tensorcast::file_conversion {

using quantized::LimitEffect;
using quantized::LoaderLimit;

bool is_float8_weight(std::string_view name, DType dtype) noexcept {
  return is_castable(dtype) && family(dtype) == Family::floating && bit_width(dtype) == 8 && name.ends_with(".weight");
}

Result<void> LoaderLimits::apply(const formats::TensorInfo& tensor, quantized::LoadedWeight weight, bool from_layer,
                                 Decision& decision) {
  const bool is_float8 = is_float8_weight(tensor.name, decision.to);
  if (!decision.quantizes() && !is_float8) return {};
  weight.name = tensor.name;
  weight.scheme = decision.by_budget ? "budget" : std::string_view(decision.scheme);
  weight.shape = tensor.shape;
  weight.is_plain_float8 = is_float8;
  const LoaderLimit* limit = forbids(weight);
  if (limit == nullptr) {
    if (!decision.by_budget) warn(weight);  // else as the scheme that the budget gives it
    return {};
  }
  Error error =
      refusal(tensor.name, *limit,
              is_float8 ? "a rule can give it another type; `force_layout` writes it all the same"
                        : "`exclude` leaves it, another `spelling` may take it, and `force_layout` writes it");
  if (decision.reason.why == TypeReason::rule || request_.strict_schemes) return error;
  if (first_left_.message.empty()) first_left_ = std::move(error);
  decision = Decision{.to = from_layer ? DType::bfloat16 : DType::undefined,
                      .reason = {TypeReason::not_loaded, 0, text_of(*limit)},
                      .left = !from_layer};
  return {};
}

const LoaderLimit* LoaderLimits::forbids(const quantized::LoadedWeight& weight) const {
  if (request_.force_layout) return nullptr;
  const std::vector<const LoaderLimit*> beyond = quantized::limits_of(layout_, weight, architecture_);
  const auto found = std::ranges::find(beyond, LimitEffect::leave, &LoaderLimit::effect);
  return found == beyond.end() ? nullptr : *found;
}

Error LoaderLimits::refusal(std::string_view weight, const LoaderLimit& limit, const char* hint) const {
  return of_tensor(std::string(weight),
                   unsupported(fmt::format("loaders of {} do not take it: {}", layout_, text_of(limit)), hint));
}

std::string LoaderLimits::why_not(const quantized::LoadedWeight& weight) const {
  const LoaderLimit* limit = forbids(weight);
  return limit == nullptr ? "" : text_of(*limit);
}

void LoaderLimits::warn(const quantized::LoadedWeight& weight) {
  for (const LoaderLimit* limit : quantized::limits_of(layout_, weight, architecture_)) {
    const auto [entry, is_new] = warned_.try_emplace(limit, Beyond{.first = std::string(weight.name)});
    if (!is_new) ++entry->second.others;
  }
}

Result<void> LoaderLimits::check(const quantized::LoadedWeight& weight) {
  if (const LoaderLimit* limit = forbids(weight)) {
    return refusal(weight.name, *limit, "another layout may take it, and `force_layout` writes it");
  }
  warn(weight);
  return {};
}

Result<void> LoaderLimits::check(quantized::Respelling& plan, const quantized::FoundLayers& layers,
                                 std::span<const formats::TensorInfo> tensors,
                                 const std::function<bool(const std::string&)>& writes) {
  for (const quantized::RespelledLayer& respelled : plan.layers) {
    if (!respelled.changes()) continue;
    const quantized::Layer layer = respelled.written().layer;
    TRY(check(loaded_weight(layer, layer.scheme)));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const formats::TensorInfo& tensor = tensors[i];
    if (layers.layer_of[i] || !is_float8_weight(tensor.name, tensor.dtype) || !writes(tensor.name)) continue;
    TRY(check({.name = tensor.name, .shape = tensor.shape, .is_plain_float8 = true}));
  }
  for (std::string& warning : warnings()) plan.warnings.push_back(std::move(warning));
  return {};
}

std::vector<std::string> LoaderLimits::warnings() const {
  std::vector<std::string> warnings;
  for (const LoaderLimit& limit : quantized::all_limits()) {
    const auto found = warned_.find(&limit);
    if (found == warned_.end()) continue;
    warnings.push_back(fmt::format("{}: loaders of {} do not take it: {}",
                                   quantized::first_of(found->second.first, found->second.others), layout_,
                                   text_of(limit)));
  }
  return warnings;
}

}  // namespace tensorcast::file_conversion
