// SPDX-License-Identifier: Apache-2.0
#include "print/value_text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dtype/text_parts.hpp"
#include "print/decimal_text.hpp"
#include "print/text_table.hpp"
#include "process/printable.hpp"
#include "tensorcast/dtype.hpp"

namespace tcast {
namespace {

using tensorcast::DTypeFacts;
using tensorcast::Explanation;
using tensorcast::Family;

constexpr std::string_view sign_color = "35";
constexpr std::string_view exponent_color = "32";
constexpr std::string_view mantissa_color = "36";
constexpr std::string_view harm_color = "31";
constexpr std::string_view notice_color = "33";

std::string colored(std::string_view text, std::string_view color, const Drawing& drawing) {
  return drawing.color && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", color, text) : std::string(text);
}

std::string limited(std::string_view text, std::size_t width, const Drawing& drawing) {
  return drawing.full ? std::string(text) : abbreviated(text, width);
}

std::string shown_decimal(std::string_view exact, std::size_t width, const Drawing& drawing) {
  return drawing.full ? std::string(exact) : shortened_decimal(exact, width);
}

std::string events_text(const Explanation& row, const Drawing& drawing) {
  const std::string text = fmt::format("{}", fmt::join(row.events, ", "));
  const auto happened = [&](std::string_view event) {
    return std::find(row.events.begin(), row.events.end(), event) != row.events.end();
  };
  if (happened("exact")) return colored(text, exponent_color, drawing);
  if (happened("rounded") || happened("truncated")) return text;
  if (happened("saturated") || happened("underflowed")) return colored(text, notice_color, drawing);
  return colored(text, harm_color, drawing);
}

bool is_text(const Explanation& row) { return tensorcast::family(row.dtype) == Family::text; }

// The longest bit string and decimal of a table.
struct Limits {
  std::size_t bits = 23;   // float32's mantissa
  std::size_t value = 30;  // float32's exact -0.1
};

std::string table_text(const std::vector<Explanation>& rows, const Limits& limits, const Drawing& drawing) {
  Table table({{"type"},
               {"s"},
               {"exponent", Align::right},
               {"mantissa"},
               {"code", Align::right},
               {"exact value"},
               {"error", Align::right},
               {"what happened"}});
  for (const Explanation& row : rows) {
    const std::string type(tensorcast::name(row.dtype));
    if (!row.error.empty()) {
      table.add_row({type, "", "", "", "", "", "", colored("refused: " + printable(row.error), harm_color, drawing)});
      continue;
    }
    const std::string value = is_text(row)
                                  ? limited(fmt::format("\"{}\"", printable(row.exact_value)), limits.value, drawing)
                                  : shown_decimal(row.exact_value, limits.value, drawing);
    table.add_row({type, colored(row.sign_bits, sign_color, drawing),
                   colored(row.exponent_bits, exponent_color, drawing),
                   colored(limited(row.mantissa_bits, limits.bits, drawing), mantissa_color, drawing), code_text(row),
                   value, rounded_decimal(row.exact_error), events_text(row, drawing)});
  }
  return table.to_string();
}

std::size_t longest_line(std::string_view text) {
  std::size_t longest = 0;
  for (const std::string_view line : tensorcast::split(text, '\n')) longest = std::max(longest, display_width(line));
  return longest;
}

std::uint64_t binary_number(std::string_view bits) {
  std::uint64_t number = 0;
  for (const char bit : bits) number = number * 2 + (bit == '1' ? 1 : 0);
  return number;
}

// Returns "2^-4 x (1 + 614/1024)", or "" for codes that are not finite numbers.
std::string formula(const Explanation& row) {
  const DTypeFacts& facts = tensorcast::facts(row.dtype);
  if (facts.family != Family::floating || row.exact_value == "NaN" || row.exact_value.ends_with("INF")) return "";
  const auto exponent = static_cast<int>(binary_number(row.exponent_bits));
  const std::uint64_t mantissa = binary_number(row.mantissa_bits);
  const std::uint64_t unit = std::uint64_t{1} << facts.mantissa_bits;
  const char* sign = row.sign_bits == "1" ? "-" : "";
  if (facts.mantissa_bits == 0) return fmt::format("2^({} - {}) = 2^{}", exponent, facts.bias, exponent - facts.bias);
  if (exponent == 0 && mantissa == 0) return "";
  if (exponent == 0) return fmt::format("{}2^{} x {}/{} (subnormal)", sign, 1 - facts.bias, mantissa, unit);
  return fmt::format("{}2^({} - {}) x (1 + {}/{})", sign, exponent, facts.bias, mantissa, unit);
}

std::string error_text(const Explanation& row, const Drawing& drawing) {
  constexpr std::size_t width = 60;
  if (row.exact_error == "0") return "0";
  std::string text = row.exact_error.starts_with('-') ? "" : "+";
  text += shown_decimal(row.exact_error, width, drawing);
  if (std::isfinite(row.relative_error)) text += fmt::format("  (relative {:.3g})", row.relative_error);
  return text;
}

}  // namespace

std::string code_text(const Explanation& row) {
  if (is_text(row)) return "";
  return fmt::format("0x{:0{}X}", row.code, (tensorcast::bit_width(row.dtype) + 3) / 4);
}

std::string draw_table(const std::vector<Explanation>& rows, const Drawing& drawing) {
  constexpr Limits smallest{.bits = 9, .value = 13};
  std::vector<Explanation> results;  // error messages; may be wider than the table
  for (const Explanation& row : rows) {
    if (row.error.empty()) results.push_back(row);
  }
  Limits limits;
  // Decimals are shortened first: their tails matter less than bits.
  while (!drawing.full && longest_line(table_text(results, limits, drawing)) > drawing.columns &&
         (limits.value > smallest.value || limits.bits > smallest.bits)) {
    --(limits.value > smallest.value ? limits.value : limits.bits);
  }
  return table_text(rows, limits, drawing);
}

std::string draw_card(const Explanation& row, const Drawing& drawing) {
  constexpr std::size_t width = 80;
  if (!row.error.empty()) return fmt::format("  refused    {}\n", printable(row.error));
  std::string text;
  const auto add = [&](std::string_view label, const std::string& line) {
    if (!line.empty()) text += fmt::format("  {:<9}  {}\n", label, line);
  };
  if (!is_text(row)) {
    std::string bits;
    for (const auto& [field, color] :
         {std::pair(row.sign_bits, sign_color), std::pair(row.exponent_bits, exponent_color),
          std::pair(row.mantissa_bits, mantissa_color)}) {
      if (!bits.empty() && !field.empty()) bits += ' ';
      bits += colored(field, color, drawing);
    }
    add("bits", bits);
    add("code", code_text(row));
    add("formula", formula(row));
    add("value", shown_decimal(row.exact_value, width, drawing));
    const bool says_more = row.shortest_value != row.exact_value && row.shortest_value != row.exact_value + ".0";
    if (says_more && (drawing.full || row.shortest_value.size() <= width)) add("prints as", row.shortest_value);
  } else {
    add("text", fmt::format("\"{}\"", printable(row.exact_value)));
  }
  if (!row.exact_error.empty()) add("error", error_text(row, drawing));
  add("happened", events_text(row, drawing));
  return text;
}

}  // namespace tcast
