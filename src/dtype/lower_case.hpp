// Text without regard to case: names of files, types and words of configurations.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

namespace tensorcast {

// Letters of ASCII alone, in every locale.
[[nodiscard]] constexpr char lower_case(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return lower_case(c); });
  return result;
}

}  // namespace tensorcast
