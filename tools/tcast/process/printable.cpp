// SPDX-License-Identifier: Apache-2.0
#include "process/printable.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tcast {
namespace {

// Returns the bytes of the UTF-8 sequence at the start of `text`; 0 if it is invalid.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

char32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  char32_t code = byte(0);
  if (character.size() > 1) code &= 0xFFU >> (character.size() + 1);
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3FU);
  return code;
}

// Reports whether the code belongs in a sequence of so many bytes: shorter ones are not spelled longer, halves of pairs
// are no characters.
bool is_spelled_right(char32_t code, std::size_t length) {
  if (length == 3) return code >= 0x800 && (code < 0xD800 || code > 0xDFFF);
  return length != 4 || (code >= 0x10000 && code <= 0x10FFFF);
}

// Reports whether a terminal obeys the character or shows nothing: such a name could disguise itself or the rest of the
// line.
bool is_deceptive(char32_t code) {
  struct Range {
    char32_t first, last;
  };
  constexpr std::array ranges = {
      Range{0x0000, 0x001F},    // controls
      Range{0x007F, 0x009F},    // controls
      Range{0x00AD, 0x00AD},    // soft hyphen
      Range{0x034F, 0x034F},    // grapheme joiner
      Range{0x061C, 0x061C},    // direction
      Range{0x115F, 0x1160},    // Hangul fillers
      Range{0x180B, 0x180F},    // Mongolian selectors
      Range{0x200B, 0x200F},    // no width; direction
      Range{0x2028, 0x202E},    // line and paragraph separators; direction
      Range{0x2060, 0x206F},    // no width; direction
      Range{0x3164, 0x3164},    // Hangul filler
      Range{0xFE00, 0xFE0F},    // variation selectors
      Range{0xFEFF, 0xFEFF},    // byte order mark
      Range{0xFFA0, 0xFFA0},    // Hangul filler
      Range{0xFFF9, 0xFFFB},    // annotations
      Range{0xE0000, 0xE0FFF},  // tags; variation selectors
  };
  return std::ranges::any_of(ranges, [&](Range range) { return code >= range.first && code <= range.last; });
}

// Returns `text` with the result of `escape` for deceptive characters and bytes that are not UTF-8.
template <class Escape>
std::string escaped(std::string_view text, const Escape& escape) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    std::size_t length = utf8_length(text);
    if (!is_spelled_right(code_point(text.substr(0, length == 0 ? 1 : length)), length)) length = 0;
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || is_deceptive(code_point(character))) {
      escape(shown, character);
    } else {
      shown += character;
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string printable(std::string_view text) {
  return escaped(text, [](std::string& shown, std::string_view character) {
    for (const char byte : character) shown += fmt::format("\\x{:02X}", static_cast<unsigned char>(byte));
  });
}

std::string json_printable(std::string_view json) {
  return escaped(json, [](std::string& shown, std::string_view character) {
    const char32_t code = code_point(character);
    constexpr char32_t first_of_pairs = 0x10000;
    if (character.size() == 1 && character[0] != 0x7F) {
      shown += character;  // white space between strings
    } else if (code < first_of_pairs) {
      shown += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    } else {
      const auto rest = static_cast<unsigned>(code - first_of_pairs);
      shown += fmt::format("\\u{:04x}\\u{:04x}", 0xD800U + (rest >> 10), 0xDC00U + (rest & 0x3FFU));
    }
  });
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if (!is_continuation(text[i])) {
      ++width;
    }
  }
  return width;
}

std::string abbreviated(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  const std::size_t kept = width - 1;
  const std::size_t tail = kept / 3;
  std::size_t head_end = 0;
  for (std::size_t characters = 0; characters < kept - tail; ++characters) {
    do ++head_end;
    while (is_continuation(text[head_end]));
  }
  std::size_t tail_begin = text.size();
  for (std::size_t characters = 0; characters < tail; ++characters) {
    do --tail_begin;
    while (is_continuation(text[tail_begin]));
  }
  return fmt::format("{}…{}", text.substr(0, head_end), text.substr(tail_begin));
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  constexpr std::array<std::string_view, 6> units = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string rate_text(double bytes_per_second) {
  return bytes_per_second < 999.95e6 ? fmt::format("{:.0f} MB/s", bytes_per_second / 1e6)
                                     : fmt::format("{:.1f} GB/s", bytes_per_second / 1e9);
}

std::string duration_text(double seconds) {
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 99.5) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(seconds + 0.5);
  return whole < 7200 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                      : fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string decibel_text(double decibels) {
  if (std::isnan(decibels)) return "-";
  if (std::isinf(decibels)) return decibels > 0 ? "exact" : "-inf dB";
  constexpr double shown_as_zero = 0.05;
  return fmt::format("{:.1f} dB", std::fabs(decibels) < shown_as_zero ? 0.0 : decibels);
}

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string count_text(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

std::string short_number(double value) { return fmt::format("{:.6g}", value); }

}  // namespace tcast
