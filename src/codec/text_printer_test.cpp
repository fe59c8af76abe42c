// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>
#include <string>

#include "codec/reference_cast.hpp"

namespace tensorcast::codec {
namespace {

std::string text_of(DType from, std::uint64_t bits, FloatString style = FloatString::plain) {
  std::string out = "|";
  append_text(from, bits, {.float_string = style}, out);
  EXPECT_EQ(out.front(), '|');
  return out.substr(1);
}
std::string text_of(float value, FloatString style = FloatString::plain) {
  return text_of(DType::float32, std::bit_cast<std::uint32_t>(value), style);
}
std::string text_of(double value, FloatString style = FloatString::plain) {
  return text_of(DType::float64, std::bit_cast<std::uint64_t>(value), style);
}

TEST(Print, PlainNotation) {
  EXPECT_EQ(text_of(5.0f), "5.0");
  EXPECT_EQ(text_of(0.0f), "0.0");
  EXPECT_EQ(text_of(-0.0f), "-0.0");
  EXPECT_EQ(text_of(1e-7f), "0.0000001");
  EXPECT_EQ(text_of(1e20), "100000000000000000000.0");
  EXPECT_EQ(text_of(1e20f), "100000000000000000000.0");
  EXPECT_EQ(text_of(0.1f), "0.1");
  EXPECT_EQ(text_of(0.1), "0.1");
  EXPECT_EQ(text_of(0.29614019f), "0.2961402");
  EXPECT_EQ(text_of(-123.456), "-123.456");
  EXPECT_EQ(text_of(10.0), "10.0");
  EXPECT_EQ(text_of(1234567.0f), "1234567.0");
  EXPECT_EQ(text_of(12.5f), "12.5");
  EXPECT_EQ(text_of(0x1p70), "1180591620717411300000.0");  // shortest digits, not the exact integer
  EXPECT_EQ(text_of(5e-324).size(), 2u + 323u + 1u);
}

TEST(Print, SpecialValues) {
  EXPECT_EQ(text_of(std::numeric_limits<double>::infinity()), "INF");
  EXPECT_EQ(text_of(-std::numeric_limits<float>::infinity()), "-INF");
  for (const FloatString style : {FloatString::plain, FloatString::shortest, FloatString::g8}) {
    EXPECT_EQ(text_of(DType::float32, 0x7FC00000, style), "NaN");
    EXPECT_EQ(text_of(DType::float32, 0xFFC00001, style), "NaN");
    EXPECT_EQ(text_of(DType::float8_e5m2, 0xFC, style), "-INF");
  }
}

TEST(Print, NarrowFloatsPrintAsTheFloat32OfEqualValue) {
  EXPECT_EQ(text_of(DType::float16, 0x7BFF), "65504.0");
  EXPECT_EQ(text_of(DType::float16, 0x2E66), "0.099975586");
  EXPECT_EQ(text_of(DType::bfloat16, 0x3DCD), "0.100097656");
  EXPECT_EQ(text_of(DType::float8_e5m2, 0x7B), "57344.0");
  EXPECT_EQ(text_of(DType::float4_e2m1fn, 0x7), "6.0");
  EXPECT_EQ(text_of(DType::float4_e2m1fn, 0x8), "-0.0");
  EXPECT_EQ(text_of(DType::float8_e8m0fnu, 127), "1.0");
  EXPECT_EQ(text_of(DType::float8_e8m0fnu, 0xFF), "NaN");
  EXPECT_EQ(text_of(DType::float8_e4m3fnuz, 0x80), "NaN");
}

TEST(Print, Integers) {
  EXPECT_EQ(text_of(DType::int2, 0x2), "-2");
  EXPECT_EQ(text_of(DType::int4, 0xF), "-1");
  EXPECT_EQ(text_of(DType::uint4, 0xF), "15");
  EXPECT_EQ(text_of(DType::int64, std::uint64_t{1} << 63), "-9223372036854775808");
  EXPECT_EQ(text_of(DType::uint64, ~std::uint64_t{0}), "18446744073709551615");
  EXPECT_EQ(text_of(DType::boolean, 0x00), "0");
  EXPECT_EQ(text_of(DType::boolean, 0x80), "1");
}

TEST(Print, Shortest) {
  EXPECT_EQ(text_of(1e20f, FloatString::shortest), "1e+20");
  EXPECT_EQ(text_of(5.0f, FloatString::shortest), "5");
  EXPECT_EQ(text_of(0.1, FloatString::shortest), "0.1");
  EXPECT_EQ(text_of(1e-7f, FloatString::shortest), "1e-07");
}

TEST(Print, G8IsWhatPrintfGives) {
  EXPECT_EQ(text_of(5.0f, FloatString::g8), "5");
  EXPECT_EQ(text_of(0.29614019f, FloatString::g8), "0.29614019");
  EXPECT_EQ(text_of(1e-7f, FloatString::g8), "1e-07");
  EXPECT_EQ(text_of(DType::bfloat16, 0x3DCD, FloatString::g8), "0.10009766");
  EXPECT_EQ(text_of(0.1, FloatString::g8), "0.1");
  std::mt19937_64 random(5);
  for (int i = 0; i < 5000; ++i) {
    const auto wide = std::bit_cast<double>(random());
    const auto narrow = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    char expected[64];
    if (wide - wide == 0.0) {
      std::snprintf(expected, sizeof expected, "%.8g", wide);
      EXPECT_EQ(text_of(wide, FloatString::g8), expected);
    }
    if (narrow - narrow == 0.0f) {
      std::snprintf(expected, sizeof expected, "%.8g", static_cast<double>(narrow));
      EXPECT_EQ(text_of(narrow, FloatString::g8), expected);
    }
  }
}

TEST(Print, EveryCodeReadsBack) {
  for (const DType dtype : all_dtypes()) {
    if (bit_width(dtype) > 16 || dtype == DType::string || dtype == DType::boolean) continue;
    for (std::uint64_t code = 0; code < std::uint64_t{1} << bit_width(dtype); ++code) {
      if (decode(dtype, code).is_nan()) continue;
      // The digits of an e8m0 value may lie just above it, so that rounding up would miss it.
      const Policy policy{.saturate = false, .e8m0_rounding = RoundMode::nearest};
      EXPECT_EQ(*cast_text(text_of(dtype, code), dtype, policy), code) << name(dtype) << ' ' << code;
    }
  }
}

TEST(Print, RandomFloatsReadBack) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 5000; ++i) {
    for (const FloatString style : {FloatString::plain, FloatString::shortest}) {
      const std::uint64_t wide = random();
      const std::uint64_t narrow = wide >> 32;
      if (!decode(DType::float64, wide).is_nan()) {
        EXPECT_EQ(*cast_text(text_of(DType::float64, wide, style), DType::float64, {}), wide);
      }
      if (!decode(DType::float32, narrow).is_nan()) {
        EXPECT_EQ(*cast_text(text_of(DType::float32, narrow, style), DType::float32, {}), narrow);
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast::codec
