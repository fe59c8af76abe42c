// SPDX-License-Identifier: Apache-2.0
// Names of tensors in a sentence.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tensorcast::quantized {

// The first name in quotes, and how many others there are: "a.weight" and 3 more.
[[nodiscard]] inline std::string first_of(std::string_view name, std::size_t others) {
  return others == 0 ? fmt::format("\"{}\"", name) : fmt::format("\"{}\" and {} more", name, others);
}

}  // namespace tensorcast::quantized
