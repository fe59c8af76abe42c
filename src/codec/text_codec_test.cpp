// SPDX-License-Identifier: Apache-2.0
#include "codec/text_codec.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <random>
#include <string>

#include "codec/reference_cast.hpp"

namespace tensorcast::codec {
namespace {

std::uint64_t code_of(std::string_view text, DType to, const Policy& policy = {}) {
  const Result<std::uint64_t> code = cast_text(text, to, policy);
  EXPECT_TRUE(code.ok()) << text;
  return code ? *code : 0xBADC0DE;
}
// A first digit, and zeros after it.
std::string power_of_ten(std::size_t zeros) { return std::string("1").append(zeros, '0'); }
double double_of(std::string_view text, double scale = 1.0) {
  return std::bit_cast<double>(code_of(text, DType::float64, {.scale = scale}));
}

TEST(TextGrammar, AcceptsWhatD8Says) {
  EXPECT_EQ(double_of("1"), 1.0);
  EXPECT_EQ(double_of(" \t\n\v\f\r+1.5 \r\n"), 1.5);
  EXPECT_EQ(double_of("-.5"), -0.5);
  EXPECT_EQ(double_of("5."), 5.0);
  EXPECT_EQ(double_of("5.e1"), 50.0);
  EXPECT_EQ(double_of("1E+2"), 100.0);
  EXPECT_EQ(double_of("1e-2"), 0.01);
  EXPECT_EQ(double_of("000123.4500"), 123.45);
  EXPECT_EQ(code_of("-0", DType::float32), 0x80000000u);
  EXPECT_EQ(code_of("-0.00e5", DType::float32), 0x80000000u);
  for (const char* text : {"inf", "INF", "+Infinity", "iNfInItY"}) {
    EXPECT_EQ(code_of(text, DType::float32), 0x7F800000u) << text;
  }
  EXPECT_EQ(code_of("-inf", DType::float32), 0xFF800000u);
  EXPECT_EQ(code_of("NaN", DType::float32), 0x7FC00000u);
  EXPECT_EQ(code_of("-nan", DType::float32), 0xFFC00000u);
}

TEST(TextGrammar, RefusesEverythingElse) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {""sv,
                                      " "sv,
                                      "abc"sv,
                                      "12abc"sv,
                                      "0x10"sv,
                                      "0x1p3"sv,
                                      "1_000"sv,
                                      "1,5"sv,
                                      "."sv,
                                      "+"sv,
                                      "-"sv,
                                      "e5"sv,
                                      ".e5"sv,
                                      "1e"sv,
                                      "1e+"sv,
                                      "1e5.0"sv,
                                      "--1"sv,
                                      "+-1"sv,
                                      "1 2"sv,
                                      "- 1"sv,
                                      "1..2"sv,
                                      "nan(1)"sv,
                                      "infin"sv,
                                      "in"sv,
                                      "1\0"sv,
                                      "\0"sv,
                                      "1f"sv,
                                      "\xEF\xBC\x91"sv,
                                      "\xC2\xA0"
                                      "1"sv,
                                      "true"sv,
                                      "1e5 e"sv,
                                      "\x7F"sv}) {
    const Result<std::uint64_t> code = cast_text(text, DType::float32, {});
    ASSERT_FALSE(code.ok()) << text;
    EXPECT_EQ(code.error().code, ErrorCode::parse);
  }
  EXPECT_EQ(cast_text(" 12abc ", DType::int8, {}).error().message, "\"12abc\" is not a number");
  EXPECT_EQ(cast_text("a\nb", DType::int8, {}).error().message, "\"a\\x0ab\" is not a number");
  EXPECT_LT(cast_text(std::string(100000, 'x'), DType::int8, {}).error().message.size(), 80u);
}

TEST(TextToBool, WordsAndNumbers) {
  for (const char* text : {"true", " TRUE ", "True", "1", "0.5", "-1e-9", "nan", "inf", "1e-999999999"}) {
    EXPECT_EQ(code_of(text, DType::boolean), 1u) << text;
  }
  for (const char* text : {"false", "FALSE", "0", "-0.0", "0e99"}) EXPECT_EQ(code_of(text, DType::boolean), 0u) << text;
  EXPECT_FALSE(cast_text("yes", DType::boolean, {}).ok());
  EXPECT_FALSE(cast_text("+true", DType::boolean, {}).ok());
}

TEST(TextToInteger, ReadsTheExactValue) {
  EXPECT_EQ(code_of("100.5", DType::int32), 100u);
  EXPECT_EQ(code_of("1e3", DType::int32), 1000u);
  EXPECT_EQ(code_of("300", DType::uint8), 44u);
  EXPECT_EQ(code_of("-1", DType::uint8), 255u);
  EXPECT_EQ(code_of("18446744073709551615", DType::uint64), ~std::uint64_t{0});
  EXPECT_EQ(code_of("9007199254740993", DType::int64), 9007199254740993u);
  EXPECT_EQ(code_of("0.9999999999999999999999999999999999999999999999999999", DType::int8), 0u);
  const Policy nearest{.rounding = Rounding::nearest_even};
  EXPECT_EQ(code_of("2.5", DType::int8, nearest), 2u);
  EXPECT_EQ(code_of("2.50000000000000000000000000000000000000000000000001", DType::int8, nearest), 3u);
}

TEST(TextToInteger, WrapsBeyond128Bits) {
  EXPECT_EQ(code_of("18446744073709551617", DType::uint64), 1u);
  EXPECT_EQ(code_of("340282366920938463463374607431768211457", DType::int8), 1u);  // 2^128 + 1
  EXPECT_EQ(code_of("-340282366920938463463374607431768211457", DType::int8), 0xFFu);
  EXPECT_EQ(code_of("1e40", DType::uint64), 13399722918938673152u);
  EXPECT_EQ(code_of(power_of_ten(39) + "1", DType::uint64), 13399722918938673153u);
  const std::string nines(500, '9');  // -1 modulo 2^64, as 10^500 is a multiple of it
  EXPECT_EQ(code_of(nines, DType::uint64), ~std::uint64_t{0});
  EXPECT_EQ(code_of(nines + ".25", DType::uint64), ~std::uint64_t{0});
  const Policy nearest{.rounding = Rounding::nearest_even};
  EXPECT_EQ(code_of(nines + ".49", DType::uint64, nearest), ~std::uint64_t{0});
  EXPECT_EQ(code_of(nines + ".5", DType::uint64, nearest), 0u);  // odd: the tie goes up
  EXPECT_EQ(code_of(power_of_ten(41) + ".5", DType::uint64, nearest), code_of("1e41", DType::uint64, nearest));
  EXPECT_EQ(code_of(power_of_ten(41) + ".5000001", DType::uint64, nearest),
            code_of("1e41", DType::uint64, nearest) + 1);
  EXPECT_EQ(code_of("1e999999999", DType::uint64), 0u);
  EXPECT_EQ(code_of("1e300", DType::uint8, {.range = RangeRule::saturate}), 255u);
}

TEST(TextToInteger, RefusalsCarryTheText) {
  const Result<std::uint64_t> refused = cast_text(" 300 ", DType::uint8, {.range = RangeRule::error});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_range);
  EXPECT_EQ(refused.error().message, "value 300 does not fit uint8 (from string)");
}

TEST(TextToFloat, RangeErrorsDoNotExist) {
  EXPECT_EQ(code_of("1e400", DType::float64), 0x7FF0000000000000u);
  EXPECT_EQ(double_of("1e-310"), 1e-310);
  EXPECT_EQ(code_of("1e-400", DType::float64), 0u);
  EXPECT_EQ(code_of("-1e-400", DType::float64), std::uint64_t{1} << 63);
  EXPECT_EQ(code_of("1e39", DType::float8_e4m3fn), 0x7Eu);
  EXPECT_EQ(code_of("1e39", DType::float8_e4m3fn, {.saturate = false}), 0x7Fu);
  EXPECT_EQ(code_of("465", DType::float8_e4m3fn, {.saturate = false}), 0x7Fu);
  EXPECT_EQ(code_of("1e-999999999999999999999", DType::float8_e8m0fnu), 0u);
}

TEST(TextToFloat, OneRounding) {
  // Through float64 these would be ties.
  EXPECT_EQ(code_of("1.00048828125000000000000000000001", DType::float16), 0x3C01u);
  EXPECT_EQ(code_of("1.00048828125", DType::float16), 0x3C00u);
  EXPECT_EQ(code_of("464.00000000000000000000000000000000001", DType::float8_e4m3fn, {.saturate = false}), 0x7Fu);
  const std::string tie = "1.00000005960464477539062500";  // 1 + 2^-24
  EXPECT_EQ(code_of(tie, DType::float32), 0x3F800000u);
  EXPECT_EQ(code_of(tie + std::string(1000, '0') + "1", DType::float32), 0x3F800001u);
}

TEST(TextToFloat, AgreesWithTheStandardLibraryOnRandomText) {
  std::mt19937_64 random(42);
  for (int i = 0; i < 20000; ++i) {
    std::string text = random() % 2 == 0 ? "-" : "";
    const int whole = static_cast<int>(random() % 25), fraction = static_cast<int>(random() % 30);
    text += static_cast<char>('0' + random() % 10);
    for (int j = 0; j < whole; ++j) text += static_cast<char>('0' + random() % 10);
    text += '.';
    for (int j = 0; j < fraction; ++j) text += static_cast<char>('0' + random() % 10);
    if (random() % 2 == 0) text.append("e").append(std::to_string(static_cast<int>(random() % 700) - 350));
    double expected = 0.0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), expected);
    if (parsed.ec != std::errc{}) continue;
    EXPECT_EQ(double_of(text), expected) << text;
  }
}

TEST(TextToFloat, ShortestDigitsOfRandomDoublesReadBack) {
  std::mt19937_64 random(43);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (value != value) continue;
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value);
    EXPECT_EQ(double_of({text, end.ptr}), value);
  }
}

TEST(TextToFloat, TimeIsBounded) {
  EXPECT_EQ(code_of("1e999999999", DType::float32), 0x7F800000u);
  EXPECT_EQ(code_of("1e-999999999", DType::float32), 0u);
  EXPECT_EQ(code_of("0e999999999", DType::float32), 0u);
  const std::string million(1000000, '3');
  EXPECT_EQ(code_of("0." + million, DType::float32), std::bit_cast<std::uint32_t>(1.0f / 3.0f));
  EXPECT_EQ(code_of(million, DType::float32), 0x7F800000u);
  EXPECT_EQ(code_of(million + "e-999999", DType::float64), std::bit_cast<std::uint64_t>(10.0 / 3.0));
  EXPECT_EQ(code_of(std::string("0.").append(1000000, '0') + "1e1000001", DType::float32), 0x3F800000u);
  EXPECT_EQ(code_of("0." + million, DType::float64, {.scale = 0x1p-1000}),
            std::bit_cast<std::uint64_t>(1.0 / 3.0 * 0x1p-1000));
}

TEST(TextScale, MultipliesTheExactDecimal) {
  EXPECT_EQ(double_of("0.1", 10.0), 1.0);
  EXPECT_EQ(double_of("1e-400", 1e300), 1e-100);
  EXPECT_EQ(double_of("1e400", 0x1p-1074), 4.940656458412465e+76);
  EXPECT_EQ(double_of("3", -0.5), -1.5);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(double_of("3", -0.0)), std::uint64_t{1} << 63);
  EXPECT_EQ(code_of("inf", DType::float32, {.scale = 0.0}), 0x7FC00000u);
  EXPECT_EQ(code_of("-inf", DType::float32, {.scale = -1.0}), 0x7F800000u);
  EXPECT_EQ(code_of("7", DType::int8, {.scale = 0.5}), 3u);
  EXPECT_EQ(code_of("true", DType::boolean, {.scale = 0.0}), 0u);
}

}  // namespace
}  // namespace tensorcast::codec
