// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/plan_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {
namespace {

std::string formats_holding(DType dtype) {
  const std::vector<std::string_view> names = file_formats_for(dtype);
  return names.empty() ? "no format can" : fmt::format("{} can", fmt::join(names, ", "));
}

}  // namespace

Result<void> check_pair(DType from, DType to, const CastOptions& options) {
  const std::int64_t none[] = {0};
  const std::int64_t no_offsets[] = {0};
  if (from == DType::string && to == DType::string) return {};
  if (from == DType::string) return cast_from_strings({.data = {}, .offsets = no_offsets}, {to, none, {}}, options);
  if (to == DType::string) {
    Result<StringBuffer> strings = cast_to_strings({from, none, {}}, options);
    return strings ? Result<void>() : std::move(strings).error();
  }
  return cast({from, none, {}}, {to, none, {}}, options);
}

Result<void> check_holds(const formats::Format& output, const formats::Format& input,
                         const formats::TensorInfo& tensor) {
  if (!tensor.foreign_dtype.empty()) {
    if (&input == &output) return {};
    if (output.can_hold_foreign != nullptr && output.can_hold_foreign(tensor.foreign_dtype)) return {};
    return of_tensor(tensor.name, unsupported(fmt::format("{} cannot hold {}", output.name, tensor.foreign_dtype),
                                              input.create == nullptr ? "`include` takes other tensors out, one by one"
                                                                      : fmt::format("only {} can", input.name)));
  }
  if (output.can_hold(tensor.dtype)) return {};
  return of_tensor(tensor.name, unsupported(fmt::format("{} cannot hold {}", output.name, name(tensor.dtype)),
                                            formats_holding(tensor.dtype)));
}

}  // namespace tensorcast::file_conversion
