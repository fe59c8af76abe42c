// SPDX-License-Identifier: Apache-2.0
#include "models/mdf/mdf_number.hpp"

#include <charconv>
#include <limits>

#include "dtype/text_parts.hpp"

namespace tensorcast::models::mdf {
namespace {

bool is_word(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] | 0x20) != word[i]) return false;
  }
  return true;
}

}  // namespace

std::optional<Tree> parse_number(std::string_view text) {
  constexpr std::string_view spaces = " \t\n\v\f\r";
  const std::size_t first = text.find_first_not_of(spaces);
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(spaces) - first + 1);
  const bool negative = text.front() == '-';
  const std::string_view digits = text.substr(negative || text.front() == '+' ? 1 : 0);
  if (digits.empty() || digits.front() == '+' || digits.front() == '-') return std::nullopt;

  const double infinity = std::numeric_limits<double>::infinity();
  if (is_word(digits, "inf") || is_word(digits, "infinity")) return Tree{negative ? -infinity : infinity};
  if (is_word(digits, "nan")) return Tree{std::numeric_limits<double>::quiet_NaN()};
  if (digits.find_first_not_of("0123456789") == std::string_view::npos) {
    if (negative) {
      if (const auto value = parse_whole<std::int64_t>(text)) return Tree{*value};
      return std::nullopt;
    }
    const auto value = parse_whole<std::uint64_t>(digits);
    if (!value) return std::nullopt;
    if (*value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return Tree{*value};
    return Tree{static_cast<std::int64_t>(*value)};
  }
  if (digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // from_chars does not say whether the number was too large or too small; Python gives infinity or zero.
    const std::size_t exponent = digits.find_first_of("eE");
    const bool small = exponent != std::string_view::npos && digits[exponent + 1] == '-';
    value = small ? 0.0 : infinity;
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return Tree{negative ? -value : value};
}

}  // namespace tensorcast::models::mdf
