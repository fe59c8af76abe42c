// The numbers that text mostly holds: few digits, a small exponent, nothing around them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorcast::codec {

// (-1)^negative * digits * 10^exponent.
struct QuickNumber {
  std::uint64_t digits = 0;
  int exponent = 0;
  bool negative = false;
};

// Nothing when [begin, end) is anything else, be it another number of D8 or no number at all.
[[nodiscard]] inline bool scan_quick_number(const char* begin, const char* end, QuickNumber& number) noexcept {
  constexpr std::ptrdiff_t max_digits = 19;  // fit 64 bits
  const char* p = begin;
  number.negative = p != end && *p == '-';
  if (p != end && (*p == '-' || *p == '+')) ++p;

  std::uint64_t digits = 0;
  const auto read_digits = [&] {
    const char* const first = p;
    for (; p != end; ++p) {
      const auto digit = static_cast<unsigned char>(*p - '0');
      if (digit > 9) break;
      digits = digits * 10 + digit;
    }
    return p - first;
  };
  std::ptrdiff_t count = read_digits();
  std::ptrdiff_t fraction = 0;
  if (p != end && *p == '.') {
    ++p;
    fraction = read_digits();
    count += fraction;
  }
  if (count == 0 || count > max_digits) return false;
  number.digits = digits;
  number.exponent = -static_cast<int>(fraction);
  if (p == end) return true;

  if ((*p | 0x20) != 'e') return false;
  ++p;
  const bool down = p != end && *p == '-';
  if (p != end && (*p == '-' || *p == '+')) ++p;
  const std::ptrdiff_t exponent_digits = end - p;
  if (exponent_digits < 1 || exponent_digits > 4) return false;
  int exponent = 0;
  for (; p != end; ++p) {
    const auto digit = static_cast<unsigned char>(*p - '0');
    if (digit > 9) return false;
    exponent = exponent * 10 + digit;
  }
  number.exponent += down ? -exponent : exponent;
  return true;
}

}  // namespace tensorcast::codec
