// SPDX-License-Identifier: Apache-2.0
// Values of options as texts write them. In a header, so that programs outside of the library have it, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "dtype/text_parts.hpp"

namespace tensorcast::options {

// Reports whether `text` is `word`, in any case; `word` is in upper case.
constexpr bool is_in_any_case(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char upper = text[i] >= 'a' && text[i] <= 'z' ? static_cast<char>(text[i] - 'a' + 'A') : text[i];
    if (upper != word[i]) return false;
  }
  return true;
}

// Reads "5GB", "800 MB", "2GiB", "5G" or a number of bytes, as ValueKind::size. nullopt: it is none, or below 1.
inline std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::pair<std::string_view, double> units[] = {{"KIB", 1024.0},
                                                           {"MIB", 1048576.0},
                                                           {"GIB", 1073741824.0},
                                                           {"TIB", 1099511627776.0},
                                                           {"KB", 1e3},
                                                           {"MB", 1e6},
                                                           {"GB", 1e9},
                                                           {"TB", 1e12},
                                                           {"K", 1e3},
                                                           {"M", 1e6},
                                                           {"G", 1e9},
                                                           {"T", 1e12},
                                                           {"B", 1.0}};
  constexpr double most = 9e18;
  double factor = 1.0;
  for (const auto& [unit, bytes] : units) {
    if (text.size() < unit.size() || !is_in_any_case(text.substr(text.size() - unit.size()), unit)) continue;
    text.remove_suffix(unit.size());
    factor = bytes;
    break;
  }
  while (text.ends_with(' ')) text.remove_suffix(1);
  const double bytes = parse_whole<double>(text).value_or(0.0) * factor;
  return bytes >= 1.0 && bytes < most ? std::optional(static_cast<std::uint64_t>(bytes)) : std::nullopt;
}

// Reads "4.5bits" or "4.5", as ValueKind::bits. nullopt: it is no number from 1 to 32.
inline std::optional<double> parse_bits(std::string_view text) {
  if (text.ends_with("bits")) text.remove_suffix(4);
  const double bits = parse_whole<double>(text).value_or(0.0);
  return bits >= 1.0 && bits <= 32.0 ? std::optional(bits) : std::nullopt;
}

}  // namespace tensorcast::options
