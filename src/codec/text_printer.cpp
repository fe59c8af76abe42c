// SPDX-License-Identifier: Apache-2.0
// D9: the text of one number. The standard library finds the digits.
#include "codec/text_printer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast::codec {
namespace {

char* write_word(std::string_view word, char* out) {
  std::memcpy(out, word.data(), word.size());
  return out + word.size();
}

// Writes the shortest digits of a large integer, and zeros up to the point. The fixed notation of std::to_chars would
// print all digits of the integer.
template <class Float>
char* write_large(Float value, char* out) {
  char* const end = std::to_chars(out, out + longest_text, value, std::chars_format::scientific).ptr;
  char* const e = std::find(out, end, 'e');
  int exponent = 0;
  std::from_chars(e + 2, end, exponent);  // after "e+"
  char* const first = out + (value < 0 ? 1 : 0);
  char* last = e;
  if (first[1] == '.') last = std::copy(first + 2, e, first + 1);
  char* const point = first + exponent + 1;
  std::fill(last, point, '0');
  return write_word(".0", point);
}

template <class Float>
char* write_plain(Float value, char* out) {
  constexpr Float end_of_exact_integers = 2 / std::numeric_limits<Float>::epsilon();
  const Float magnitude = std::abs(value);
  if (magnitude >= end_of_exact_integers) return write_large(value, out);
  if (magnitude != std::trunc(magnitude)) {
    return std::to_chars(out, out + longest_text, value, std::chars_format::fixed).ptr;
  }
  if (std::signbit(value)) *out++ = '-';
  return write_word(".0", write_integer(static_cast<std::uint64_t>(magnitude), out));
}

template <class Float>
char* write_any_float(Float value, FloatString style, char* out) {
  if (std::isnan(value)) return write_word("NaN", out);
  if (std::isinf(value)) return write_word(value < 0 ? "-INF" : "INF", out);
  switch (style) {
    case FloatString::plain:
      return write_plain(value, out);
    case FloatString::shortest:
      return std::to_chars(out, out + longest_text, value).ptr;
    case FloatString::g8:  // what ONNX Runtime prints, for float64 too
      return std::to_chars(out, out + longest_text, value, std::chars_format::general, 8).ptr;
  }
  return out;
}

}  // namespace

char* write_float(float value, FloatString style, char* out) { return write_any_float(value, style, out); }
char* write_float(double value, FloatString style, char* out) { return write_any_float(value, style, out); }
char* write_integer(std::int64_t value, char* out) { return std::to_chars(out, out + longest_text, value).ptr; }
char* write_integer(std::uint64_t value, char* out) { return std::to_chars(out, out + longest_text, value).ptr; }

char* write_code(DType from, std::uint64_t bits, FloatString style, char* out) {
  const DTypeRow& type = row(from);
  switch (type.family) {
    case Family::boolean:
      return write_word(bits != 0 ? "1" : "0", out);
    case Family::integer: {
      if (!type.is_signed) return write_integer(bits, out);
      // Sign extension: the code's top bit becomes the top bit of 64.
      const int unused = 64 - type.bits;
      return write_integer(static_cast<std::int64_t>(bits << unused) >> unused, out);
    }
    case Family::floating: {
      if (from == DType::float64) return write_float(std::bit_cast<double>(bits), style, out);
      // Every narrower float is exact as a float32 and prints as the float32 does: equal values, equal texts.
      const Encoded code = encode(decode(from, bits), DType::float32, Policy{});
      return write_float(std::bit_cast<float>(static_cast<std::uint32_t>(code.bits)), style, out);
    }
    case Family::text:
      break;
  }
  return out;
}

void append_text(DType from, std::uint64_t bits, const Policy& policy, std::string& out) {
  if (find_row(from) == nullptr) return;
  std::array<char, longest_text> text;
  out.append(text.data(), write_code(from, bits, policy.float_string, text.data()));
}

}  // namespace tensorcast::codec
