// SPDX-License-Identifier: Apache-2.0
// Lists and numbers in texts.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tensorcast {

// What stands between the separators; "" has no part, and a separator at the end begins none.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    parts.push_back(text.substr(0, text.find(separator)));
    text.remove_prefix(std::min(parts.back().size() + 1, text.size()));
  }
  return parts;
}

// The number that all of `text` is; nullopt if it is none, or one that `Number` does not hold.
template <class Number>
[[nodiscard]] std::optional<Number> parse_whole(std::string_view text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<Number>) {
    read = std::from_chars(text.data(), end, number);
  } else {
    read = std::from_chars(text.data(), end, number, base);
  }
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

}  // namespace tensorcast
