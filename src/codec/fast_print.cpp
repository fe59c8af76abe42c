#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/fast_text.hpp"
#include "codec/float_codec.hpp"
#include "codec/reference_cast.hpp"
#include "codec/shortest_decimal.hpp"
#include "dtype/guarded.hpp"

namespace tensorcast::codec {
namespace {

// Longest text of one element: 17 digits of float64 behind 324 zeros, a sign and "0.".
constexpr std::size_t max_length = 400;

constexpr auto digit_pairs = [] {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

int count_digits(std::uint64_t number) {
  // 1233 / 4096 is log10(2): the estimate is right or one too small.
  constexpr std::uint64_t powers[] = {0,
                                      10,
                                      100,
                                      1'000,
                                      10'000,
                                      100'000,
                                      1'000'000,
                                      10'000'000,
                                      100'000'000,
                                      1'000'000'000,
                                      10'000'000'000,
                                      100'000'000'000,
                                      1'000'000'000'000,
                                      10'000'000'000'000,
                                      100'000'000'000'000,
                                      1'000'000'000'000'000,
                                      10'000'000'000'000'000,
                                      100'000'000'000'000'000,
                                      1'000'000'000'000'000'000};
  const int estimate = static_cast<int>(std::bit_width(number | 1)) * 1233 >> 12;
  return estimate + (number >= powers[estimate] ? 1 : 0);
}

// Writes exactly `count` digits of `number` at `out`.
void write_digits(char* out, std::uint64_t number, int count) {
  char* p = out + count;
  for (; number >= 100; number /= 100) {
    p -= 2;
    std::memcpy(p, digit_pairs.data() + 2 * (number % 100), 2);
  }
  if (number >= 10) {
    std::memcpy(p - 2, digit_pairs.data() + 2 * number, 2);
  } else {
    p[-1] = static_cast<char>('0' + number);
  }
}

char* write_word(char* out, std::string_view word) {
  std::memcpy(out, word.data(), word.size());
  return out + word.size();
}

char* write_zeros(char* out, int count) {
  std::memset(out, '0', static_cast<std::size_t>(count));
  return out + count;
}

// digits * 10^exponent without an exponent and with a digit behind the point.
char* write_plain(char* out, ShortestDecimal decimal) {
  constexpr std::uint64_t eight_zeros = 100'000'000;
  if (decimal.digits % eight_zeros == 0) {
    decimal.digits /= eight_zeros;
    decimal.exponent += 8;
  }
  while (decimal.digits % 10 == 0) {
    decimal.digits /= 10;
    ++decimal.exponent;
  }
  const int count = count_digits(decimal.digits);
  const int whole = count + decimal.exponent;  // digits before the point
  if (whole <= 0) {
    out = write_word(out, "0.");
    out = write_zeros(out, -whole);
    write_digits(out, decimal.digits, count);
    return out + count;
  }
  if (whole < count) {
    write_digits(out + 1, decimal.digits, count);
    std::memmove(out, out + 1, static_cast<std::size_t>(whole));
    out[whole] = '.';
    return out + count + 1;
  }
  write_digits(out, decimal.digits, count);
  out = write_zeros(out + count, decimal.exponent);
  return write_word(out, ".0");
}

template <class Float>
char* write_float(char* out, Float value) {
  if (std::isnan(value)) return write_word(out, "NaN");
  if (std::signbit(value)) *out++ = '-';
  if (std::isinf(value)) return write_word(out, "INF");
  if (value == 0) return write_word(out, "0.0");
  return write_plain(out, shortest_decimal(std::abs(value)));
}

// Text that grows at its end. Writers get room for one element, whatever it is.
class TextBuffer {
 public:
  explicit TextBuffer(std::size_t count) {
    buffer_.offsets.reserve(count + 1);
    buffer_.offsets.push_back(0);
  }

  char* room() {
    if (buffer_.data.size() - used_ < max_length) buffer_.data.resize(used_ + used_ / 2 + 64 * max_length);
    return buffer_.data.data() + used_;
  }
  void end_element(const char* end) {
    used_ = static_cast<std::size_t>(end - buffer_.data.data());
    buffer_.offsets.push_back(static_cast<std::int64_t>(used_));
  }
  StringBuffer take() && {
    buffer_.data.resize(used_);
    return std::move(buffer_);
  }

 private:
  StringBuffer buffer_;
  std::size_t used_ = 0;
};

template <class Write>
StringBuffer print_each(std::size_t count, Write write) {
  TextBuffer text(count);
  for (std::size_t i = 0; i < count; ++i) {
    char* const out = text.room();
    text.end_element(write(out, i));
  }
  return std::move(text).take();
}

StringBuffer print_by_reference(const std::byte* src, DType from, std::size_t count, const Policy& policy) {
  std::string text;
  return print_each(count, [&](char* out, std::size_t i) {
    text.clear();
    append_text(from, load_code(from, src, i), policy, text);
    return write_word(out, text);
  });
}

// Types of 8 bits or fewer have few texts: each is made once.
StringBuffer print_by_table(const std::byte* src, DType from, std::size_t count, const Policy& policy) {
  std::vector<std::string> texts(std::size_t{1} << bit_width(from));
  for (std::size_t code = 0; code < texts.size(); ++code) append_text(from, code, policy, texts[code]);
  return print_each(count, [&](char* out, std::size_t i) { return write_word(out, texts[load_code(from, src, i)]); });
}

template <class Element>
Element element(const std::byte* src, std::size_t i) {
  Element value;
  std::memcpy(&value, src + i * sizeof(Element), sizeof(Element));
  return value;
}

template <class Integer>
StringBuffer print_integers(const std::byte* src, std::size_t count) {
  return print_each(count, [&](char* out, std::size_t i) {
    return std::to_chars(out, out + max_length, element<Integer>(src, i)).ptr;
  });
}

template <class Float>
StringBuffer print_floats(const std::byte* src, std::size_t count) {
  return print_each(count, [&](char* out, std::size_t i) { return write_float(out, element<Float>(src, i)); });
}

StringBuffer print_narrow_floats(const std::byte* src, DType from, std::size_t count) {
  return print_each(count, [&](char* out, std::size_t i) {
    const Encoded wide = encode_float(decode_float(from, load_code(from, src, i)), DType::float32, Policy{});
    return write_float(out, std::bit_cast<float>(static_cast<std::uint32_t>(wide.bits)));
  });
}

StringBuffer print_numbers(const std::byte* src, DType from, std::size_t count, const Policy& policy) {
  constexpr std::size_t table_pays_from = 256;
  if (bit_width(from) <= 8 && count >= table_pays_from) return print_by_table(src, from, count, policy);
  if (family(from) == Family::floating && policy.float_string != FloatString::plain) {
    return print_by_reference(src, from, count, policy);
  }
  switch (from) {
    case DType::float64:
      return print_floats<double>(src, count);
    case DType::float32:
      return print_floats<float>(src, count);
    case DType::float16:
    case DType::bfloat16:
      return print_narrow_floats(src, from, count);
    case DType::int64:
      return print_integers<std::int64_t>(src, count);
    case DType::int32:
      return print_integers<std::int32_t>(src, count);
    case DType::int16:
      return print_integers<std::int16_t>(src, count);
    case DType::uint64:
      return print_integers<std::uint64_t>(src, count);
    case DType::uint32:
      return print_integers<std::uint32_t>(src, count);
    case DType::uint16:
      return print_integers<std::uint16_t>(src, count);
    default:
      return print_by_reference(src, from, count, policy);
  }
}

}  // namespace

Result<StringBuffer> print_strings(const std::byte* src, DType from, std::size_t count, const Policy& policy) {
  if (bit_width(from) == 0) {
    return Error{.code = ErrorCode::unsupported, .message = "strings to strings are a copy, not a conversion"};
  }
  return guarded([&]() -> Result<StringBuffer> { return print_numbers(src, from, count, policy); });
}

}  // namespace tensorcast::codec
