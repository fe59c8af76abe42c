// SPDX-License-Identifier: Apache-2.0
// The names of tensors in formats that find tensors by name.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "formats/format.hpp"

namespace tensorcast::formats {

// Errors: unsupported, with `why` two tensors cannot have one name.
[[nodiscard]] inline Result<void> check_distinct_names(std::span<const TensorInfo> tensors, std::string_view why) {
  const auto twice = find_repeated(tensors, &TensorInfo::name);
  if (!twice) return {};
  return of_tensor(std::string(*twice), unsupported(fmt::format("two tensors have this name, and {}", why)));
}

}  // namespace tensorcast::formats
