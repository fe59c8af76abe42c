// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/loader_limits.hpp"

#include <fmt/format.h>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "quantized/names/first_of.hpp"

namespace tensorcast::file_conversion {

using quantized::LimitEffect;
using quantized::LoaderLimit;

Result<void> LoaderLimits::apply(const formats::TensorInfo& tensor, quantized::LoadedWeight weight, bool from_layer,
                                 Decision& decision) {
  const bool is_float8 = is_castable(decision.to) && family(decision.to) == Family::floating &&
                         bit_width(decision.to) == 8 && tensor.name.ends_with(".weight");
  if (!decision.quantizes() && !is_float8) return {};
  weight.name = tensor.name;
  weight.scheme = decision.by_budget ? "budget" : std::string_view(decision.scheme);
  weight.shape = tensor.shape;
  weight.is_plain_float8 = is_float8;
  for (const LoaderLimit* limit : quantized::limits_of(layout_, weight, architecture_)) {
    if (limit->effect == LimitEffect::leave && !request_.force_layout) {
      Error error = of_tensor(
          tensor.name,
          unsupported(fmt::format("loaders of {} do not take it: {}", layout_, text_of(*limit)),
                      is_float8 ? "a rule can give it another type; `force_layout` writes it all the same"
                                : "`exclude` leaves it, another `spelling` may take it, and `force_layout` writes it"));
      if (decision.reason.why == TypeReason::rule || request_.strict_schemes) return error;
      if (first_left_.message.empty()) first_left_ = std::move(error);
      decision = Decision{.to = from_layer ? DType::bfloat16 : DType::undefined,
                          .reason = {TypeReason::not_loaded, 0, text_of(*limit)},
                          .left = !from_layer};
      return {};
    }
    const auto [entry, is_new] = warned_.try_emplace(limit, Beyond{.first = tensor.name});
    if (!is_new) ++entry->second.others;
  }
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
