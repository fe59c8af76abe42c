// SPDX-License-Identifier: Apache-2.0
#include "codec/text_codec.hpp"

#include <cmath>

#include "codec/decimal.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"

namespace tensorcast::codec {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// `word` in lower case.
bool is_word(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char lower = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
    if (lower != word[i]) return false;
  }
  return true;
}

std::size_t count_digits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  return count;
}

std::optional<std::int64_t> scan_exponent(std::string_view text) {
  constexpr std::int64_t limit = 1'000'000'000'000'000;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || count_digits(text) != text.size()) return std::nullopt;
  std::int64_t exponent = 0;
  for (const char c : text) {
    if (exponent < limit) exponent = exponent * 10 + (c - '0');
  }
  return negative ? -exponent : exponent;
}

}  // namespace

std::optional<NumberText> scan_number(std::string_view text) noexcept {
  NumberText number;
  number.negative = text.starts_with('-');
  if (number.negative || text.starts_with('+')) text.remove_prefix(1);
  if (is_word(text, "inf") || is_word(text, "infinity")) {
    number.kind = NumberText::Kind::infinity;
    return number;
  }
  if (is_word(text, "nan")) {
    number.kind = NumberText::Kind::nan;
    return number;
  }
  const std::size_t whole = count_digits(text);
  std::size_t length = whole;
  if (text.substr(whole).starts_with('.')) {
    const std::size_t fraction = count_digits(text.substr(whole + 1));
    length += 1 + fraction;
    if (whole + fraction == 0) return std::nullopt;
  } else if (whole == 0) {
    return std::nullopt;
  }
  number.digits = text.substr(0, length);
  text.remove_prefix(length);
  if (text.empty()) return number;
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  const std::optional<std::int64_t> exponent = scan_exponent(text.substr(1));
  if (!exponent) return std::nullopt;
  number.exponent = *exponent;
  return number;
}

std::optional<bool> scan_bool_word(std::string_view trimmed) noexcept {
  if (is_word(trimmed, "true")) return true;
  if (is_word(trimmed, "false")) return false;
  return std::nullopt;
}

std::string quotable(std::string_view trimmed) {
  constexpr std::size_t longest = 40;
  std::string text;
  for (const char c : trimmed.substr(0, longest)) {
    const bool printable = static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
    text += printable ? std::string(1, c) : formatted("\\x{:02x}", static_cast<unsigned char>(c));
  }
  if (trimmed.size() > longest) text += "...";
  return text;
}

namespace {

Error not_a_number(std::string_view trimmed) {
  return parse_error(formatted("\"{}\" is not a number", quotable(trimmed)));
}

Real to_real(const NumberText& number, double scale) {
  const bool negative = number.negative != std::signbit(scale);
  switch (number.kind) {
    case NumberText::Kind::nan:
      return Real::NaN(number.negative);
    case NumberText::Kind::infinity:
      return scale == 0.0 ? Real::NaN(false) : Real::Infinite(negative);
    case NumberText::Kind::decimal:
      break;
  }
  if (scale == 0.0) return Real::Zero(negative);
  const Decimal decimal = Decimal::FromDigits(negative, number.digits, number.exponent);
  return std::abs(scale) == 1.0 ? decimal.to_real() : (decimal * Decimal::FromDouble(std::abs(scale))).to_real();
}

}  // namespace

Result<Real> decode_text(std::string_view text, double scale) {
  const std::string_view trimmed = trim(text);
  const std::optional<NumberText> number = scan_number(trimmed);
  if (!number) return not_a_number(trimmed);
  return guarded([&]() -> Result<Real> { return to_real(*number, scale); });
}

Result<std::uint64_t> cast_text(std::string_view text, DType to, const Policy& policy, std::uint32_t random) {
  const std::string_view trimmed = trim(text);
  if (to == DType::boolean) {
    if (const std::optional<bool> truth = scan_bool_word(trimmed)) return *truth && policy.scale != 0.0 ? 1u : 0u;
  }
  const Real value = TRY(decode_text(trimmed, policy.scale));
  const Encoded encoded = encode(value, to, policy, random);
  if ((encoded.events & event_error) == 0) return encoded.bits;
  std::string factor = policy.scale == 1.0 ? "" : formatted(" times scale {}", policy.scale);
  return Error{
      .code = ErrorCode::out_of_range,
      .message = formatted("value {}{} {} {} (from string)", quotable(trimmed), factor, refusal(policy), name(to))};
}

}  // namespace tensorcast::codec
