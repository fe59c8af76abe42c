// D9: the text of one number.
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast::codec {
namespace {

constexpr std::size_t longest_number = 64;  // of the notations that std::to_chars is asked for here

// Lays out [-]d[.ddd]e[+-]xx without an exponent and with a digit after the point.
void append_plain(std::string_view scientific, std::string& out) {
  if (scientific.front() == '-') {
    out += '-';
    scientific.remove_prefix(1);
  }
  const std::size_t e = scientific.find('e');
  std::string digits(1, scientific[0]);
  if (e > 2) digits += scientific.substr(2, e - 2);
  const bool small = scientific[e + 1] == '-';
  int exponent = 0;
  std::from_chars(scientific.data() + e + 2, scientific.data() + scientific.size(), exponent);

  const auto zeros = static_cast<std::size_t>(exponent);
  if (small && exponent != 0) {
    out += "0.";
    out.append(zeros - 1, '0');
    out += digits;
  } else if (digits.size() > zeros + 1) {
    out += digits.substr(0, zeros + 1);
    out += '.';
    out += digits.substr(zeros + 1);
  } else {
    out += digits;
    out.append(zeros + 1 - digits.size(), '0');
    out += ".0";
  }
}

template <class Float>
void append_float(Float value, FloatString style, std::string& out) {
  if (std::isnan(value)) {
    out += "NaN";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-INF" : "INF";
    return;
  }
  std::array<char, longest_number> text;
  char* const begin = text.data();
  char* const limit = begin + text.size();
  std::to_chars_result end{};
  switch (style) {
    case FloatString::plain:
      end = std::to_chars(begin, limit, value, std::chars_format::scientific);
      append_plain({begin, end.ptr}, out);
      return;
    case FloatString::shortest:
      end = std::to_chars(begin, limit, value);
      break;
    case FloatString::g8:  // what ONNX Runtime prints, for float64 too
      end = std::to_chars(begin, limit, value, std::chars_format::general, 8);
      break;
  }
  out.append(begin, end.ptr);
}

}  // namespace

void append_text(DType from, std::uint64_t bits, const Policy& policy, std::string& out) {
  const DTypeRow* type = find_row(from);
  if (type == nullptr) return;
  switch (type->family) {
    case Family::boolean:
      out += bits != 0 ? '1' : '0';
      return;
    case Family::integer: {
      // Sign extension: the code's top bit becomes the top bit of 64.
      const int unused = 64 - type->bits;
      const auto value = static_cast<std::int64_t>(bits << unused) >> unused;
      out += type->is_signed ? std::to_string(value) : std::to_string(bits);
      return;
    }
    case Family::floating:
      if (from == DType::float64) {
        append_float(std::bit_cast<double>(bits), policy.float_string, out);
      } else {
        // Every narrower float is exact as a float32, and prints as the float32 does: equal values, equal texts.
        const Encoded code = encode(decode(from, bits), DType::float32, Policy{});
        append_float(std::bit_cast<float>(static_cast<std::uint32_t>(code.bits)), policy.float_string, out);
      }
      return;
    case Family::text:
      return;
  }
}

}  // namespace tensorcast::codec
