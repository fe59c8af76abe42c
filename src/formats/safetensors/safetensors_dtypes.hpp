// SPDX-License-Identifier: Apache-2.0
// The types of safetensors, in its own spelling.
#pragma once

#include <string_view>

#include "tensorcast/dtype.hpp"

namespace tensorcast::formats::safetensors {

struct DTypeEntry {
  std::string_view spelling;
  DType dtype = DType::undefined;  // undefined: not castable, can only be copied
  int bits = 0;
};

// Null if safetensors has no such type.
[[nodiscard]] const DTypeEntry* find_dtype(std::string_view spelling) noexcept;
[[nodiscard]] const DTypeEntry* find_dtype(DType dtype) noexcept;

}  // namespace tensorcast::formats::safetensors
