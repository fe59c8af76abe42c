// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/plan_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "quantized/names/module_name.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {
namespace {

std::string formats_holding(DType dtype) {
  const std::vector<std::string_view> names = file_formats_for(dtype);
  return names.empty() ? "no format can" : fmt::format("{} can", fmt::join(names, ", "));
}

// Whether the bytes are codes of four or six bits in blocks of 32, with a byte of scale each.
bool are_mx_codes(const formats::TensorInfo& codes, const formats::TensorInfo& scales) {
  constexpr std::int64_t bytes_of_four_bits = 16, bytes_of_six_bits = 24;
  if (codes.dtype != DType::uint8 || codes.shape.size() < 2 || codes.shape.size() != scales.shape.size()) return false;
  const std::int64_t bytes = codes.shape.back(), blocks = scales.shape.back();
  return std::equal(codes.shape.begin(), codes.shape.end() - 1, scales.shape.begin()) && blocks != 0 &&
         (bytes == bytes_of_four_bits * blocks || bytes == bytes_of_six_bits * blocks);
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

std::string warning_of_mx_codes(std::span<const formats::TensorInfo> tensors, std::span<const QuantizedPart> parts,
                                std::span<const std::size_t> copied) {
  if (copied.empty()) return {};
  std::unordered_map<std::string_view, const formats::TensorInfo*> bytes;
  for (const formats::TensorInfo& tensor : tensors) {
    if (tensor.dtype == DType::uint8) bytes.emplace(tensor.name, &tensor);
  }
  std::vector<std::size_t> found;
  for (const std::size_t i : copied) {
    const auto scales = bytes.find(parts[i].partner);
    if (scales != bytes.end() && are_mx_codes(tensors[i], *scales->second)) found.push_back(i);
  }
  if (found.empty()) return {};
  return fmt::format("{} {} codes that \"{}\" scales, in a spelling that is not decoded: they are copied",
                     quantized::first_of(tensors[found[0]].name, found.size() - 1), found.size() > 1 ? "have" : "has",
                     parts[found[0]].partner);
}

}  // namespace tensorcast::file_conversion
