// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/policy.hpp"
#include "convert/select/tensor_selection.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/rewrite/quantizing_plan.hpp"
#include "quantized/rewrite/target_options.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {
namespace file_conversion {
namespace {

// That a request respells and asks for nothing that contradicts it.
Result<void> check_respelling(const ConvertRequest& request) {
  const auto fail = [](std::string message, std::string hint) { return invalid(std::move(message), std::move(hint)); };
  if (request.respell.empty()) {
    return request.exact ? fail("`exact` is of use with `respell` only", "") : Result<void>();
  }
  if (has_target(request) || request.raw_codes) {
    return fail("`respell` changes no numbers, so it has no type to convert to", "convert what it writes");
  }
  if (!request.include.empty() || !request.exclude.empty() || !request.filter.rename.empty()) {
    return fail("`respell` is for all quantized layers, under their names", "`drop` and `only` choose what is written");
  }
  return {};
}

// That options of schemes go with one, and with nothing that contradicts it.
Result<void> check_quantizing(const ConvertRequest& request) {
  const auto fail = [](std::string message, std::string hint = {}) {
    return invalid(std::move(message), std::move(hint));
  };
  if (request.budget == 0.0 && !request.candidates.empty()) return fail("`candidates` is of use with `budget` only");
  if (request.budget != 0.0) {
    if (!(request.budget >= 1.0 && request.budget <= 32.0)) {
      return fail(fmt::format("`budget` is from 1 to 32 bits, not {}", request.budget));
    }
    if (request.to != DType::undefined || !request.scheme.empty()) {
      return fail("`budget` chooses schemes, so there is none to convert to", "`candidates` are what it chooses from");
    }
    if (request.convrot != 0) return fail("`convrot` is of int8-channel, and `budget` chooses schemes");
  }
  if (!quantizes(request)) {
    const char* given = nullptr;
    options::for_each(options::quantize_targets, [&](const auto& option) {
      const bool is_of_respell = !request.respell.empty() && option.name == std::string_view("force_layout");
      if (given == nullptr && option.is_given(request) && !is_of_respell) given = option.name;
    });
    if (given == nullptr) return {};
    return fail(fmt::format("`{}` is of use with a scheme only", given), "`to` names one, such as nvfp4");
  }
  if (request.to != DType::undefined && !request.scheme.empty()) {
    return fail("there are a type and a scheme to convert to", "rules name types for some of the tensors");
  }
  if (request.options.scale != 1.0) return fail("schemes have scales of their own, and `scale` is another");
  if (request.options.rounding != Rounding::automatic) {
    return fail("recipes round as their tools do, and `rounding` is another way", "convert to a type instead");
  }
  if (request.options.inexact == Inexact::error) {
    return fail("recipes round weights, and `inexact` error refuses that", "convert to a type instead");
  }
  if (request.raw_codes) return fail("`raw_codes` converts codes as plain numbers, which are then not quantized");
  if (!request.filter.rename.empty()) {
    return fail("`rename` is not for models that are quantized, whose configuration has names", "rename first");
  }
  if (request.budget != 0.0 || !request.mix.empty()) return {};  // they choose schemes
  std::vector<std::string_view> schemes;
  if (!request.scheme.empty()) schemes.push_back(request.scheme);
  for (const ConvertRule& rule : request.rules) {
    if (!rule.scheme.empty()) schemes.push_back(rule.scheme);
  }
  return quantized::check_scheme_options(request, schemes);
}

}  // namespace
}  // namespace file_conversion

inline namespace TENSORCAST_ABI {

Result<void> check_request(const ConvertRequest& request) {
  if (request.to != DType::undefined) TRY(check_castable(request.to));
  TRY(codec::check_values(request.options));
  TRY(file_conversion::check_respelling(request));
  TRY(file_conversion::check_quantizing(request));
  if (!(request.zero_limit >= 0.0 && request.zero_limit <= 1.0)) {
    return invalid(fmt::format("`zero_limit` is a share from 0 to 1, not {}", request.zero_limit));
  }
  return {};
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
