// SPDX-License-Identifier: Apache-2.0
// D8 and D9: decimal text as exact rationals.
#include <algorithm>
#include <cctype>

#include "oracle.hpp"

namespace oracle {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view word) {
  std::string result;
  for (const char c : word) result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

std::string_view trim(std::string_view word) {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  const std::size_t first = word.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return word.substr(first, word.find_last_not_of(blanks) - first + 1);
}

std::string_view take_digits(std::string_view& rest) {
  std::size_t length = 0;
  while (length < rest.size() && is_digit(rest[length])) ++length;
  const std::string_view digits = rest.substr(0, length);
  rest.remove_prefix(length);
  return digits;
}

mpz_class power_of_ten(unsigned long exponent) {
  mpz_class power;
  mpz_ui_pow_ui(power.get_mpz_t(), 10, exponent);
  return power;
}

// Digits with the point before them, times 10^exponent: `digits` has no leading zero, or is empty for zero.
struct Decimal {
  bool negative = false;
  std::string digits;
  mpz_class exponent;

  [[nodiscard]] mpq_class value() const {
    if (digits.empty()) return 0;
    // Beyond this every type sees the same: zero, or an infinity whose low 64 bits are zero at any scale.
    constexpr long limit = 10000;
    const long point = exponent > limit ? limit : exponent < -limit ? -limit : exponent.get_si();
    const long shift = point - static_cast<long>(digits.size());
    mpq_class magnitude = mpz_class(digits, 10);
    if (shift >= 0) {
      magnitude *= power_of_ten(static_cast<unsigned long>(shift));
    } else {
      magnitude /= power_of_ten(static_cast<unsigned long>(-shift));
    }
    return negative ? mpq_class(-magnitude) : magnitude;
  }
};

// (digits[.digits*] | .digits) ([eE][+-]?digits)?
std::optional<Decimal> parse_decimal(std::string_view rest) {
  const std::string_view whole = take_digits(rest);
  std::string_view fraction;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    fraction = take_digits(rest);
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  mpz_class exponent = 0;
  if (!rest.empty() && (rest.front() == 'e' || rest.front() == 'E')) {
    rest.remove_prefix(1);
    const bool minus = !rest.empty() && rest.front() == '-';
    if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) rest.remove_prefix(1);
    const std::string_view digits = take_digits(rest);
    if (digits.empty()) return std::nullopt;
    exponent.set_str(std::string(digits), 10);
    if (minus) exponent = -exponent;
  }
  if (!rest.empty()) return std::nullopt;

  Decimal decimal;
  decimal.digits = std::string(whole) + std::string(fraction);
  decimal.exponent = exponent + static_cast<unsigned long>(whole.size());
  const std::size_t zeros = std::min(decimal.digits.find_first_not_of('0'), decimal.digits.size());
  decimal.digits.erase(0, zeros);
  decimal.exponent -= static_cast<unsigned long>(zeros);
  while (!decimal.digits.empty() && decimal.digits.back() == '0') decimal.digits.pop_back();
  return decimal;
}

// Plain notation with at least one digit after the point.
std::string plain(const Decimal& decimal) {
  const std::string sign = decimal.negative ? "-" : "";
  const std::string& digits = decimal.digits;
  if (digits.empty()) return sign + "0.0";
  const long point = decimal.exponent.get_si();
  const long count = static_cast<long>(digits.size());
  if (point <= 0) return sign + "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  if (point >= count) return sign + digits + std::string(static_cast<std::size_t>(point - count), '0') + ".0";
  const auto split = static_cast<std::size_t>(point);
  return sign + digits.substr(0, split) + "." + digits.substr(split);
}

// All reals that round to one float, which is how far shortening may go.
struct Cell {
  mpq_class low, high;
  bool closed;  // ties go to the even significand

  [[nodiscard]] bool holds(const mpq_class& x) const { return closed ? low <= x && x <= high : low < x && x < high; }
};

Cell cell_of(const mpq_class& magnitude, Type type) {
  const std::uint64_t code = nearest_float(magnitude, type).magnitude;
  const Exact before = decode(type, code - 1);
  const Exact after = decode(type, code + 1);
  const mpq_class below = (before.value + magnitude) / 2;
  // The largest float's cell ends half a step above it, as if there were a next one.
  const mpq_class above = after.finite() ? mpq_class((magnitude + after.value) / 2) : mpq_class(2 * magnitude - below);
  return {.low = below, .high = above, .closed = code % 2 == 0};
}

// Largest e with 10^e <= x.
long decade(const mpq_class& x) {
  long e = static_cast<long>(mpz_sizeinbase(x.get_num_mpz_t(), 10)) -
           static_cast<long>(mpz_sizeinbase(x.get_den_mpz_t(), 10)) + 1;
  const auto power = [](long n) {
    return n >= 0 ? mpq_class(power_of_ten(static_cast<unsigned long>(n)))
                  : mpq_class(mpz_class(1), power_of_ten(static_cast<unsigned long>(-n)));
  };
  while (power(e) > x) --e;
  return e;
}

mpq_class multiple_at_or_below(const mpq_class& x, const mpq_class& unit) {
  const mpq_class ratio = x / unit;
  mpz_class whole;
  mpz_fdiv_q(whole.get_mpz_t(), ratio.get_num_mpz_t(), ratio.get_den_mpz_t());
  return whole * unit;
}

mpq_class unit_for_digits(long decade_of_value, std::size_t digits) {
  const long exponent = decade_of_value - static_cast<long>(digits) + 1;
  return exponent >= 0 ? mpq_class(power_of_ten(static_cast<unsigned long>(exponent)))
                       : mpq_class(mpz_class(1), power_of_ten(static_cast<unsigned long>(-exponent)));
}

bool has_digits(const Cell& cell, const mpq_class& magnitude, long at, std::size_t digits) {
  const mpq_class unit = unit_for_digits(at, digits);
  const mpq_class below = multiple_at_or_below(magnitude, unit);
  return cell.holds(below) || cell.holds(below + unit);
}

std::string fault_of_plain(const Decimal& printed, const mpq_class& magnitude, const Cell& cell) {
  const long at = decade(magnitude);
  const std::size_t digits = printed.digits.size();
  if (digits > 1 && has_digits(cell, magnitude, at, digits - 1)) return "fewer digits would do";
  const mpq_class value = abs(printed.value());
  const mpq_class unit = unit_for_digits(at, digits);
  const mpq_class below = multiple_at_or_below(magnitude, unit);
  for (const mpq_class& other : {below, mpq_class(below + unit)}) {
    if (cell.holds(other) && abs(mpq_class(other - magnitude)) < abs(mpq_class(value - magnitude))) {
      return "a closer text has as few digits";
    }
  }
  return {};
}

// The length of the fewest digits, plain or with an exponent of two digits or more.
std::string fault_of_length(std::size_t length, bool negative, const mpq_class& magnitude, const Cell& cell) {
  const long at = decade(magnitude);
  long digits = 1;
  while (!has_digits(cell, magnitude, at, static_cast<std::size_t>(digits))) ++digits;
  const long scientific = digits + (digits > 1 ? 1 : 0) + (std::labs(at) < 100 ? 4 : 5);
  const long whole = at < 0 ? digits - at + 1 : std::max(at + 1, digits + 1);
  const long fewest = std::min(scientific, digits == at + 1 ? digits : whole) + (negative ? 1 : 0);
  return static_cast<long>(length) <= fewest ? "" : "could be " + std::to_string(fewest) + " characters long";
}

}  // namespace

std::optional<Exact> parse(std::string_view text, Type to) {
  std::string_view rest = trim(text);
  Exact x;
  const std::string word = lower(rest);
  if (to == boolean && (word == "true" || word == "false")) {
    x.value = word == "true" ? 1 : 0;
    return x;
  }
  if (!rest.empty() && (rest.front() == '+' || rest.front() == '-')) {
    x.negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  const std::string name = lower(rest);
  if (name == "inf" || name == "infinity") {
    x.kind = Exact::Kind::infinite;
    return x;
  }
  if (name == "nan") {
    x.kind = Exact::Kind::nan;
    return x;
  }
  std::optional<Decimal> decimal = parse_decimal(rest);
  if (!decimal) return std::nullopt;
  decimal->negative = x.negative;
  x.value = decimal->value();
  return x;
}

std::string fault_of_printed(Type from, std::uint64_t code, std::string_view printed, bool may_use_exponent) {
  const Exact x = decode(from, code);
  if (!is_float(from)) return printed == x.value.get_str() ? "" : "should be " + x.value.get_str();
  if (!x.finite()) {
    const std::string expected = x.nan() ? "NaN" : x.negative ? "-INF" : "INF";
    return printed == expected ? "" : "should be " + expected;
  }
  const bool minus = !printed.empty() && printed.front() == '-';
  std::optional<Decimal> decimal = parse_decimal(minus ? printed.substr(1) : printed);
  if (!decimal) return "is not a decimal number";
  decimal->negative = minus;
  if (minus != x.negative) return "has the wrong sign";
  if (x.zero() != decimal->digits.empty()) return "does not read back as the same number";
  const std::string as_plain = plain(*decimal);
  if (!may_use_exponent && printed != as_plain) return "should be written " + as_plain;
  if (x.zero()) return printed.size() <= as_plain.size() ? "" : "should be written " + as_plain;
  const mpq_class magnitude = abs(x.value);
  const Cell cell = cell_of(magnitude, from == f64 ? f64 : f32);
  if (!cell.holds(abs(decimal->value()))) return "does not read back as the same number";
  return may_use_exponent ? fault_of_length(printed.size(), minus, magnitude, cell)
                          : fault_of_plain(*decimal, magnitude, cell);
}

}  // namespace oracle
