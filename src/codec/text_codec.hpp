// SPDX-License-Identifier: Apache-2.0
// Numbers as text: the grammar of D8 and the printing of D9.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codec/policy.hpp"
#include "codec/real.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::codec {

// The parts of a text of D8, before they become a number.
struct NumberText {
  enum class Kind : std::uint8_t { decimal, infinity, nan };

  Kind kind = Kind::decimal;
  bool negative = false;
  std::string_view digits;    // decimal: at least one digit and at most one point
  std::int64_t exponent = 0;  // decimal: clamped to +-10^15, far out of every range
};

[[nodiscard]] inline bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Removes the white space around a text. The functions below need trimmed text.
[[nodiscard]] inline std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

[[nodiscard]] std::optional<NumberText> scan_number(std::string_view trimmed) noexcept;
[[nodiscard]] std::optional<bool> scan_bool_word(std::string_view trimmed) noexcept;

// The text for messages: without control characters, at most a line long.
[[nodiscard]] std::string quotable(std::string_view trimmed);

}  // namespace tensorcast::codec
