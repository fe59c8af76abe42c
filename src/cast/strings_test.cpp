// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/policy.hpp"
#include "codec/reference_cast.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {
namespace {

using codec::append_text, codec::cast_code, codec::cast_text, codec::decode, codec::load_code, codec::store_code;
using codec::Policy, codec::Real;

class Strings {
 public:
  void add(std::string_view text) {
    data_.insert(data_.end(), text.begin(), text.end());
    offsets_.push_back(static_cast<std::int64_t>(data_.size()));
  }
  [[nodiscard]] std::size_t count() const { return offsets_.size() - 1; }
  [[nodiscard]] StringView view() const { return {.data = data_, .offsets = offsets_}; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    return {data_.data() + offsets_[i], static_cast<std::size_t>(offsets_[i + 1] - offsets_[i])};
  }

 private:
  std::vector<char> data_;
  std::vector<std::int64_t> offsets_ = {0};
};

std::vector<DType> numeric_types() {
  std::vector<DType> types;
  for (const DType dtype : all_dtypes()) {
    if (dtype != DType::string) types.push_back(dtype);
  }
  return types;
}

Result<void> parse_strings(const Strings& strings, DType to, std::span<std::byte> dst,
                           const CastOptions& options = {}) {
  const std::array shape = {static_cast<std::int64_t>(strings.count())};
  return cast_from_strings(strings.view(), {to, shape, dst}, options);
}

Result<std::uint64_t> reference(std::string_view text, DType to, const CastOptions& options = {}) {
  return cast_text(text, to, codec::resolve_policy(options, DType::string, to).value());
}

std::array<CastOptions, 6> choices_of_options() {
  std::array<CastOptions, 6> choices;
  choices[1].saturate = false;
  choices[1].round_mode = RoundMode::down;
  choices[2].rounding = Rounding::nearest_even;
  choices[3].out_of_range = OutOfRange::saturate;
  choices[4].scale = 0.3;
  choices[5].saturate = false;
  choices[5].out_of_range = OutOfRange::saturate;
  return choices;
}

void expect_like_the_reference(const Strings& strings) {
  for (const DType to : numeric_types()) {
    for (const CastOptions& options : choices_of_options()) {
      std::vector<std::byte> dst(storage_bytes(to, strings.count()), std::byte{0xEE});
      const Result<void> parsed = parse_strings(strings, to, dst, options);
      ASSERT_TRUE(parsed.ok()) << parsed.error().describe();
      for (std::size_t i = 0; i < strings.count(); ++i) {
        const Result<std::uint64_t> expected = reference(strings[i], to, options);
        ASSERT_TRUE(expected.ok());
        ASSERT_EQ(load_code(to, dst.data(), i), *expected) << strings[i] << " to " << name(to);
      }
    }
  }
}

std::string random_number(std::mt19937_64& random) {
  const auto below = [&](unsigned limit) { return static_cast<int>(random() % limit); };
  std::string text;
  if (below(3) == 0) text += below(4) == 0 ? '+' : '-';
  const bool is_long = below(8) == 0;
  const int whole = below(is_long ? 40 : 6);
  const int fraction = whole == 0 ? 1 + below(12) : below(is_long ? 40 : 12);
  const bool mostly_zero = below(4) == 0;
  const auto digit = [&] { return static_cast<char>('0' + (mostly_zero && below(6) != 0 ? 0 : below(10))); };
  for (int i = 0; i < whole; ++i) text += digit();
  if (fraction > 0 || below(5) == 0) text += '.';
  for (int i = 0; i < fraction; ++i) text += digit();
  if (below(3) == 0) text.append("e").append(std::to_string(below(80) - 40));
  return text;
}

TEST(ParseStrings, EqualsTheReferenceOnRandomNumbers) {
  std::mt19937_64 random(2024);
  Strings strings;
  while (strings.count() < 3001) {
    const std::string text = random_number(random);
    if (cast_text(text, DType::float64, {}).ok()) strings.add(text);
  }
  expect_like_the_reference(strings);
}

TEST(ParseStrings, EqualsTheReferenceAtHalfwayPoints) {
  // Values, halfway points and their decimal neighbours of the small types, and of float32 as exact decimals.
  Strings strings;
  std::mt19937_64 random(7);
  const auto add_exact = [&](double value) {
    char text[1200];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 160);
    std::string exact(text, end.ptr);
    exact.erase(exact.find_last_not_of('0') + 1);
    strings.add(exact);
    strings.add(exact + "00000000000000000000000000000000001");
    const auto brief = std::to_chars(text, text + sizeof text, value);
    strings.add({text, brief.ptr});
  };
  for (const DType dtype : {DType::float8_e4m3fn, DType::float8_e5m2fnuz, DType::float4_e2m1fn}) {
    for (std::uint64_t code = 0; code < std::uint64_t{1} << (bit_width(dtype) - 1); ++code) {
      const Real real = decode(dtype, code);
      if (real.is_nan()) continue;
      const auto value = std::bit_cast<double>(cast_code(dtype, code, DType::float64, {}).bits);
      add_exact(value);
      add_exact(value * 1.0625);
      add_exact(-value * 1.125);
    }
  }
  for (int i = 0; i < 300; ++i) {
    const auto below = static_cast<std::uint32_t>((random() % 60 + 100) << 23 | random() % (1 << 23));
    const double low = std::bit_cast<float>(below);
    const double high = std::bit_cast<float>(below + 1);
    add_exact((low + high) / 2);
    add_exact(std::nextafter((low + high) / 2, 0.0));
  }
  for (const double value : {0x1p-126, 0x1p-127, 0x1p-149, 0x1p-150, 3.4028235677973366e38, 65519.999, 65520.0, 464.0,
                             465.0, 248.0, 61440.0, 1.5, 2.5, 3.0, 0.5, -0.5, 1e22, 1e23, 9007199254740993.0}) {
    add_exact(value);
  }
  expect_like_the_reference(strings);
}

TEST(ParseStrings, EqualsTheReferenceOnEverythingElseThatIsANumber) {
  Strings strings;
  for (const char* text : {"0",
                           "-0",
                           "+0",
                           "-0.0e5",
                           "inf",
                           "-Infinity",
                           "NaN",
                           "-nan",
                           " 1.5\t",
                           "5.",
                           ".5",
                           "5.e1",
                           "1e400",
                           "1e-400",
                           "-1e-400",
                           "1e0005",
                           "1e00005",
                           "1e99999",
                           "0e99999",
                           "9007199254740993",
                           "18446744073709551615",
                           "18446744073709551616",
                           "9999999999999999999",
                           "-9223372036854775808",
                           "340282366920938463463374607431768211457",
                           "300",
                           "-1",
                           "100.5",
                           "0.9999999999999999999",
                           "1e19",
                           "1e20",
                           "123456789012345678901234567890e-20",
                           "0.000000000000000000000000000000000000000000001",
                           "3.4028235677973366e38",
                           "2.5",
                           "-2.5",
                           "0.9767611",
                           "0.33333334",
                           "16777217",
                           "16777219",
                           "1e-45",
                           "7e-46",
                           "1.17549435e-38"}) {
    strings.add(text);
  }
  expect_like_the_reference(strings);
}

TEST(ParseStrings, EqualsTheReferenceAtTheEndsOfTheIntegers) {
  Strings strings;
  for (const int bits : {1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63}) {
    const std::uint64_t power = std::uint64_t{1} << bits;
    for (const std::uint64_t magnitude : {power - 1, power, power + 1}) {
      for (const char* fraction : {"", ".0", ".4", ".5", ".6", "e0", "e1"}) {
        const std::string text = std::to_string(magnitude) + fraction;
        strings.add(text);
        strings.add(std::string("-").append(text));
      }
    }
  }
  expect_like_the_reference(strings);
}

TEST(ParseStrings, BoolWords) {
  Strings strings;
  for (const char* text : {"true", "0", "FALSE", "2", "-0.0", " True "}) strings.add(text);
  std::byte dst[6];
  ASSERT_TRUE(parse_strings(strings, DType::boolean, dst).ok());
  const int expected[] = {1, 0, 0, 1, 0, 1};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(std::to_integer<int>(dst[i]), expected[i]);
}

TEST(ParseStrings, ErrorsNameTheElement) {
  for (const char* wrong :
       {"", "abc", "1.5x", "1e", "1e+", ".", "-", "1..5", "0x10", "1e5e5", "+-1", "1 5", "1e12345x"}) {
    Strings strings;
    strings.add("1.5");
    strings.add("2");
    strings.add(wrong);
    for (const DType to : numeric_types()) {
      std::vector<std::byte> dst(storage_bytes(to, 3));
      const Result<void> parsed = parse_strings(strings, to, dst);
      ASSERT_FALSE(parsed.ok()) << wrong;
      EXPECT_EQ(parsed.error().code, ErrorCode::parse);
      EXPECT_EQ(parsed.error().element, 2u);
      EXPECT_EQ(parsed.error().message, cast_text(wrong, to, {}).error().message);
    }
  }
}

TEST(ParseStrings, RefusalsNameTheElement) {
  Strings strings;
  strings.add("255");
  strings.add("256");
  std::byte dst[2];
  const Result<void> parsed = parse_strings(strings, DType::uint8, dst, CastOptions::lossless_integers());
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().describe(), "element 1: value 256 does not fit uint8 (from string)");
}

TEST(ParseStrings, TheFirstErrorIsReported) {
  Strings strings;
  for (int i = 0; i < 3000; ++i) strings.add(i == 2500 ? "nan" : i == 2501 ? "x" : "1");
  std::vector<std::byte> dst(storage_bytes(DType::float4_e2m1fn, strings.count()));
  const Result<void> parsed = parse_strings(strings, DType::float4_e2m1fn, dst, CastOptions::lossless_integers());
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().describe(), "element 2500: value nan does not fit float4_e2m1fn (from string)");
}

TEST(ParseStrings, ReadNoStateOfTheProcessor) {
  Strings strings;
  for (const char* text : {"0.1", "123456.789", "0.3", "-0.7", "1.1e-5", "1e23", "65519.99"}) strings.add(text);
  for (const DType to : {DType::float64, DType::float32, DType::bfloat16, DType::float8_e4m3fn}) {
    std::vector<std::byte> wanted(storage_bytes(to, strings.count())), found = wanted;
    ASSERT_TRUE(parse_strings(strings, to, wanted).ok());
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      std::fesetround(mode);
      const Result<void> parsed = parse_strings(strings, to, found);
      std::fesetround(FE_TONEAREST);
      ASSERT_TRUE(parsed.ok());
      EXPECT_EQ(found, wanted) << name(to) << " in mode " << mode;
    }
  }
}

TEST(ParseStrings, PartsOfTensorsHaveTheRandomBitsOfTheWhole) {
  constexpr std::size_t count = 300, cut = 101;
  StringBuffer parts[2], whole;
  for (StringBuffer* strings : {&whole, &parts[0], &parts[1]}) strings->offsets = {0};
  for (std::size_t i = 0; i < count; ++i) {
    for (StringBuffer* strings : {&whole, &parts[i < cut ? 0 : 1]}) {
      for (const char c : std::string_view("0.3")) strings->data.push_back(c);
      strings->offsets.push_back(static_cast<std::int64_t>(strings->data.size()));
    }
  }
  const CastOptions options{.rounding = Rounding::stochastic, .seed = 5};
  const auto codes = [&](StringBuffer& strings, std::uint64_t first) {
    const auto length = static_cast<std::int64_t>(strings.offsets.size() - 1);
    const Tensor source = Tensor::own({length}, std::move(strings)).value();
    const Tensor result = cast(source, DType::float8_e4m3fn, options, {.first_element = first}).value();
    return std::vector<std::byte>(result.bytes().begin(), result.bytes().end());
  };
  std::vector<std::byte> joined = codes(parts[0], 0);
  const std::vector<std::byte> rest = codes(parts[1], cut);
  joined.insert(joined.end(), rest.begin(), rest.end());
  EXPECT_EQ(joined, codes(whole, 0));
}

TEST(ParseStrings, StringsThatStayStringsHaveNoScale) {
  const Tensor source = Tensor::own({1}, {.data = {'7'}, .offsets = {0, 1}}).value();
  const Tensor same = cast(source, DType::string).value();
  EXPECT_EQ(same.strings().data.data(), source.strings().data.data());
  for (const double scale : {2.0, std::numeric_limits<double>::quiet_NaN()}) {
    CastReport report;
    EXPECT_EQ(cast(source, DType::string, {.scale = scale}).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(cast(source, DType::string, {.scale = scale}, report).error().code, ErrorCode::invalid_argument);
  }
}

TEST(ParseStrings, NoStrings) {
  EXPECT_TRUE(parse_strings({}, DType::float32, {}).ok());
  EXPECT_TRUE(parse_strings({}, DType::int4, {}).ok());
}

void expect_prints_like_the_reference(DType from, const std::vector<std::byte>& src, std::size_t count) {
  const auto bytes = std::span(src).first(storage_bytes(from, count));
  for (const FloatString style : {FloatString::plain, FloatString::shortest, FloatString::g8}) {
    const Policy policy{.float_string = style};
    CastOptions options;
    options.float_string = style;
    const std::array shape = {static_cast<std::int64_t>(count)};
    const Result<StringBuffer> printed = cast_to_strings({from, shape, bytes}, options);
    ASSERT_TRUE(printed.ok()) << printed.error().describe();
    ASSERT_EQ(printed->offsets.size(), count + 1);
    ASSERT_EQ(static_cast<std::size_t>(printed->offsets.back()), printed->data.size());
    std::string expected;
    for (std::size_t i = 0; i < count; ++i) {
      expected.clear();
      append_text(from, load_code(from, src.data(), i), policy, expected);
      const auto first = static_cast<std::size_t>(printed->offsets[i]);
      const auto last = static_cast<std::size_t>(printed->offsets[i + 1]);
      ASSERT_EQ(std::string_view(printed->data.data() + first, last - first), expected) << name(from);
    }
  }
}

TEST(PrintStrings, SlowEqualsTheReferenceOnEveryCodeOfTheNarrowTypes) {
  for (const DType from : numeric_types()) {
    if (bit_width(from) > 16) continue;
    const std::size_t count = std::size_t{1} << bit_width(from);
    std::vector<std::byte> src(storage_bytes(from, count));
    for (std::size_t i = 0; i < count; ++i) store_code(from, src.data(), i, i);
    expect_prints_like_the_reference(from, src, count);
    for (std::size_t few = 0; few < 4; ++few) expect_prints_like_the_reference(from, src, few);
  }
}

TEST(PrintStrings, EqualsTheReferenceOnRandomBits) {
  std::mt19937_64 random(99);
  for (const DType from : numeric_types()) {
    constexpr std::size_t count = 30000;
    std::vector<std::byte> src(storage_bytes(from, count));
    for (std::byte& byte : src) byte = static_cast<std::byte>(random());
    expect_prints_like_the_reference(from, src, count);
  }
}

TEST(PrintStrings, EqualsTheReferenceOnNumbersPeopleWrite) {
  std::vector<double> values;
  for (int exponent = -20; exponent < 25; ++exponent) {
    for (const int digits : {1, 2, 5, 10, 99, 123, 1000, 1001, 65504, 16777216, 16777217}) {
      const double power = std::pow(10.0, exponent);
      values.insert(values.end(), {digits * power, -digits * power, digits / power, std::ldexp(digits, exponent)});
    }
  }
  for (int exponent = -1074; exponent < 1024; ++exponent) values.push_back(std::ldexp(1.0, exponent));
  for (const double limit : {0.0, -0.0, std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min(),
                             std::numeric_limits<double>::min(), std::numeric_limits<double>::infinity(),
                             std::nextafter(0x1p53, 0.0), 0x1p53, 0x1p53 + 2.0}) {
    values.insert(values.end(), {limit, -limit});
  }
  std::vector<std::byte> wide, narrow;
  for (const double value : values) {
    const auto as_float = static_cast<float>(value);
    const auto* wide_bytes = reinterpret_cast<const std::byte*>(&value);
    const auto* narrow_bytes = reinterpret_cast<const std::byte*>(&as_float);
    wide.insert(wide.end(), wide_bytes, wide_bytes + sizeof value);
    narrow.insert(narrow.end(), narrow_bytes, narrow_bytes + sizeof as_float);
  }
  expect_prints_like_the_reference(DType::float64, wide, values.size());
  expect_prints_like_the_reference(DType::float32, narrow, values.size());
}

}  // namespace
}  // namespace tensorcast
