// SPDX-License-Identifier: Apache-2.0
#include "print/decimal_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "process/printable.hpp"

namespace tcast {
namespace {

// A decimal's significant digits, and the power of ten of the first one.
struct Scientific {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
};

// Precondition: `exact` is a finite decimal other than zero, in plain notation.
Scientific scientific(std::string_view exact) {
  Scientific result{.negative = exact.starts_with('-'), .digits = {}, .exponent = 0};
  if (result.negative) exact.remove_prefix(1);
  const auto point = static_cast<std::int64_t>(std::min(exact.find('.'), exact.size()));
  const auto first = static_cast<std::int64_t>(exact.find_first_not_of("0."));
  result.exponent = point - first - (first < point ? 1 : 0);
  for (const char c : exact.substr(static_cast<std::size_t>(first))) {
    if (c != '.') result.digits += c;
  }
  return result;
}

}  // namespace

std::string shortened_decimal(std::string_view exact, std::size_t width) {
  constexpr std::int64_t smallest_plain = -5;
  if (exact.size() <= width) return std::string(exact);
  const Scientific parts = scientific(exact);
  if (parts.exponent >= smallest_plain && parts.exponent <= static_cast<std::int64_t>(width / 2)) {
    return abbreviated(exact, width);
  }
  const std::string sign = parts.negative ? "-" : "";
  const std::string power = fmt::format("e{:+}", parts.exponent);
  const std::size_t kept = width - sign.size() - power.size() - 3;  // the first digit, the point, the ellipsis
  return fmt::format("{}{}.{}…{}", sign, parts.digits[0], std::string_view(parts.digits).substr(1, kept), power);
}

std::string rounded_decimal(std::string_view exact) {
  if (exact.empty() || exact == "0") return std::string(exact);
  double value = 0.0;
  const auto [end, status] = std::from_chars(exact.data(), exact.data() + exact.size(), value);
  if (status == std::errc{}) return fmt::format("{:+.3g}", value);

  // Out of double's range: rounds the leading digits and keeps the power of ten apart.
  Scientific parts = scientific(exact);
  std::string head = parts.digits.substr(0, 17);
  head.insert(1, ".");
  double leading = 0.0;
  std::from_chars(head.data(), head.data() + head.size(), leading);
  const bool carried = leading >= 9.995;
  return fmt::format("{}{:.3g}e{:+}", parts.negative ? '-' : '+', carried ? 1.0 : leading,
                     parts.exponent + (carried ? 1 : 0));
}

}  // namespace tcast
