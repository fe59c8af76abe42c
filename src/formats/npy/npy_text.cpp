// SPDX-License-Identifier: Apache-2.0
#include "formats/npy/npy_text.hpp"
#include "dtype/errors.hpp"

namespace tensorcast::formats::npy {
namespace {

constexpr char32_t no_character = 0xFFFFFFFF;

bool is_scalar_value(char32_t c) { return c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF); }

void append_utf8(char32_t c, std::vector<char>& utf8) {
  const auto put = [&](char32_t byte) { utf8.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  const auto tail = [&](int shift) { put(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    tail(6);
    tail(0);
  } else {
    put(0xF0 | (c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Returns the code point at `position` and moves `position` past it; `no_character` for malformed UTF-8, overlong forms
// included.
char32_t next_character(std::string_view utf8, std::size_t& position) {
  const auto lead = static_cast<unsigned char>(utf8[position++]);
  if (lead < 0x80) return lead;
  const int tail_bytes = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC2 || lead > 0xF4 || utf8.size() - position < static_cast<std::size_t>(tail_bytes)) return no_character;
  char32_t c = lead & (0x3F >> tail_bytes);
  for (int i = 0; i < tail_bytes; ++i) {
    const auto byte = static_cast<unsigned char>(utf8[position++]);
    if ((byte & 0xC0) != 0x80) return no_character;
    c = (c << 6) | (byte & 0x3F);
  }
  constexpr char32_t smallest[] = {0, 0x80, 0x800, 0x10000};
  return c >= smallest[tail_bytes] && is_scalar_value(c) ? c : no_character;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t position = 0; position < text.size();) {
    if (next_character(text, position) == no_character) return false;
  }
  return true;
}

Result<void> decode_text(std::span<const std::byte> item, const ElementLayout& layout, std::vector<char>& utf8) {
  if (layout.text == Text::bytes) {
    while (!item.empty() && item.back() == std::byte{0}) item = item.first(item.size() - 1);
    const std::string_view text(reinterpret_cast<const char*>(item.data()), item.size());
    if (!is_utf8(text)) return parse_error("the bytes of the string are not UTF-8");
    utf8.insert(utf8.end(), text.begin(), text.end());
    return {};
  }
  const auto character = [&](std::size_t i) {
    char32_t c = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      c |= std::to_integer<char32_t>(item[4 * i + (layout.big_endian ? 3 - k : k)]) << (8 * k);
    }
    return c;
  };
  std::size_t length = item.size() / 4;
  while (length > 0 && character(length - 1) == 0) --length;
  for (std::size_t i = 0; i < length; ++i) {
    const char32_t c = character(i);
    if (!is_scalar_value(c)) return parse_error("the string holds a number that is not a Unicode character");
    append_utf8(c, utf8);
  }
  return {};
}

Result<std::uint64_t> count_characters(std::string_view utf8) {
  std::uint64_t count = 0;
  for (std::size_t position = 0; position < utf8.size(); ++count) {
    if (next_character(utf8, position) == no_character) return parse_error("the bytes of the string are not UTF-8");
  }
  if (utf8.ends_with('\0')) return unsupported("NumPy's strings cannot end with a NUL character");
  return count;
}

void encode_text(std::string_view utf8, std::uint64_t characters, std::vector<std::byte>& utf32) {
  const std::size_t end = utf32.size() + 4 * characters;
  for (std::size_t position = 0; position < utf8.size();) {
    const char32_t c = next_character(utf8, position);
    for (int shift = 0; shift < 32; shift += 8) utf32.push_back(static_cast<std::byte>((c >> shift) & 0xFF));
  }
  utf32.resize(end, std::byte{0});
}

}  // namespace tensorcast::formats::npy
