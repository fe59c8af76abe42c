// SPDX-License-Identifier: Apache-2.0
// Text without regard to case: names of files, types, schemes and words of configurations.
#pragma once

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

// Names of schemes, recipes and spellings are the same in any case, and with `-` as with `_`.
[[nodiscard]] constexpr bool is_same_name(std::string_view a, std::string_view b) noexcept {
  const auto folded = [](char c) { return c == '_' ? '-' : lower_case(c); };
  return std::ranges::equal(a, b, {}, folded, folded);
}

}  // namespace tensorcast
