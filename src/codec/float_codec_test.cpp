// SPDX-License-Identifier: Apache-2.0
#include "codec/float_codec.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "codec/codec_testing.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast::codec {
namespace {

const std::vector<DType> small_floats = [] {
  std::vector<DType> types;
  for (const DTypeRow& type : dtype_table) {
    if (type.family == Family::floating && type.bits <= 16) types.push_back(type.id);
  }
  return types;
}();

std::uint64_t code_of(double value, DType to, const Policy& policy = {}) { return from_double(value, to, policy).bits; }
std::uint64_t from_float32(std::uint32_t bits, DType to) { return cast_code(DType::float32, bits, to, {}).bits; }
double value_of(DType from, std::uint64_t bits) {
  return std::bit_cast<double>(cast_code(from, bits, DType::float64, {}).bits);
}

TEST(FloatCodec, EveryCodeOfEverySmallFloatSurvivesFloat32AndFloat64) {
  for (const DType dtype : small_floats) {
    for (std::uint64_t code = 0; code < std::uint64_t{1} << bit_width(dtype); ++code) {
      const Real value = decode(dtype, code);
      std::uint64_t expected = code;
      if (value.is_nan() && row(dtype).format.nonfinite == NonFinite::ieee) {
        expected |= std::uint64_t{1} << (row(dtype).format.mantissa_bits - 1);  // signalling becomes quiet
      }
      for (const DType wide : {DType::float32, DType::float64}) {
        const Encoded widened = cast_code(dtype, code, wide, {});
        EXPECT_EQ(widened.events, 0) << name(dtype) << ' ' << code;
        EXPECT_EQ(cast_code(wide, widened.bits, dtype, {.saturate = false}).bits, expected)
            << name(dtype) << ' ' << code;
      }
    }
  }
}

TEST(FloatCodec, DecodesTheEndsOfEachFormat) {
  for (const DType dtype : small_floats) {
    const FloatFormat& format = row(dtype).format;
    EXPECT_EQ(value_of(dtype, format.largest_code()), facts(dtype).largest) << name(dtype);
    EXPECT_EQ(value_of(dtype, format.has_zero ? 1 : 0), facts(dtype).smallest_positive) << name(dtype);
  }
  EXPECT_EQ(value_of(DType::float8_e8m0fnu, 127), 1.0);
  EXPECT_TRUE(std::isnan(value_of(DType::float8_e8m0fnu, 0xFF)));
  EXPECT_EQ(value_of(DType::float8_e5m2, 0xFC), -infinity);
  EXPECT_EQ(value_of(DType::float32, 0x80000001), -0x1p-149);
}

// Rounding.

TEST(FloatCodec, TiesGoToEven) {
  struct Tie {
    double value;
    std::uint64_t even, above;
  };
  for (const Tie& tie :
       {Tie{0.25, 0, 1}, {0.75, 2, 2}, {1.25, 2, 3}, {1.75, 4, 4}, {2.5, 4, 5}, {3.5, 6, 6}, {5, 6, 7}}) {
    EXPECT_EQ(code_of(tie.value, DType::float4_e2m1fn), tie.even) << tie.value;
    EXPECT_EQ(code_of(-tie.value, DType::float4_e2m1fn), tie.even | 8) << tie.value;
    EXPECT_EQ(code_of(std::nextafter(tie.value, 10.0), DType::float4_e2m1fn), tie.above) << tie.value;
  }
}

TEST(FloatCodec, OneRoundingFromFloat64) {
  // Through float32 the bit beyond the tie would be lost first.
  EXPECT_EQ(code_of(1.0 + 0x1p-11 + 0x1p-40, DType::float16), 0x3C01u);
  EXPECT_EQ(code_of(1.0 + 0x1p-8 + 0x1p-40, DType::bfloat16), 0x3F81u);
  EXPECT_EQ(code_of(1.0 + 0x1p-4 + 0x1p-40, DType::float8_e4m3fn), 0x39u);
  EXPECT_EQ(cast_code(DType::int64, (std::uint64_t{1} << 62) + (std::uint64_t{1} << 54) + 1, DType::bfloat16, {}).bits,
            0x5E81u);
}

TEST(FloatCodec, SubnormalsAreExact) {
  EXPECT_EQ(code_of(0x1p-24, DType::float16), 1u);
  EXPECT_EQ(code_of(0x1p-25, DType::float16), 0u);
  EXPECT_EQ(code_of(std::nextafter(0x1p-25, 1.0), DType::float16), 1u);
  EXPECT_EQ(code_of(0x1p-14 - 0x1p-26, DType::float16), 0x400u);  // carries into the normal numbers
  EXPECT_EQ(from_float32(1, DType::bfloat16), 0u);
  EXPECT_EQ(from_float32(0x00018000, DType::bfloat16), 2u);
  EXPECT_EQ(code_of(0.000946, DType::float8_e4m3fn), 0u);
  EXPECT_EQ(code_of(0x1p-1074, DType::float32), 0u);
}

TEST(FloatCodec, UnderflowIsAnEventOfValuesThatWereNotZero) {
  EXPECT_EQ(from_double(1e-30, DType::float16).events, event_inexact | event_underflowed);
  EXPECT_EQ(from_double(0.0, DType::float16).events, 0);
  EXPECT_EQ(from_double(0x1p-20, DType::float16).events, 0);
  EXPECT_EQ(from_double(0.1, DType::float16).events, event_inexact);
}

// Overflow.

TEST(FloatCodec, WideFloatsOverflowToInfinityWhateverSaturateSays) {
  for (const bool saturate : {true, false}) {
    const Policy policy{.saturate = saturate};
    EXPECT_EQ(code_of(65519.99, DType::float16, policy), 0x7BFFu);
    EXPECT_EQ(code_of(65520.0, DType::float16, policy), 0x7C00u);
    EXPECT_EQ(code_of(-1e300, DType::float32, policy), 0xFF800000u);
    EXPECT_EQ(code_of(infinity, DType::bfloat16, policy), 0x7F80u);
    EXPECT_EQ(from_double(infinity, DType::bfloat16, policy).events, 0);
    EXPECT_EQ(from_double(1e39, DType::bfloat16, policy).events, event_overflowed);
    EXPECT_EQ(cast_code(DType::int32, 70000, DType::float16, policy).bits, 0x7C00u);
  }
}

// D6: only finite numbers saturate, in every type; infinity fails where the type has none.
TEST(FloatCodec, RangeRuleOfWideFloats) {
  const Policy saturating{.range = RangeRule::saturate}, strict{.range = RangeRule::error};
  EXPECT_EQ(code_of(65520.0, DType::float16, saturating), 0x7BFFu);
  EXPECT_EQ(code_of(-1e300, DType::float32, saturating), 0xFF7FFFFFu);
  EXPECT_EQ(code_of(-infinity, DType::bfloat16, saturating), 0xFF80u);
  EXPECT_EQ(from_double(1e39, DType::bfloat16, saturating).events, event_saturated | event_inexact);
  EXPECT_EQ(from_double(infinity, DType::bfloat16, saturating).events, 0);
  EXPECT_EQ(cast_code(DType::int32, 70000, DType::float16, saturating).bits, 0x7BFFu);
  EXPECT_EQ(code_of(std::nextafter(65520.0, 0.0), DType::float16, strict), 0x7BFFu);
  EXPECT_EQ(from_double(65520.0, DType::float16, strict).events, event_error);
  EXPECT_EQ(code_of(infinity, DType::float16, strict), 0x7C00u);
  EXPECT_EQ(code_of(nan, DType::float16, strict), 0x7E00u);
}

TEST(FloatCodec, RangeRuleOfNarrowFloats) {
  for (const bool saturate : {true, false}) {
    const Policy strict{.saturate = saturate, .range = RangeRule::error};
    for (const DType to : {DType::float8_e4m3fn, DType::float8_e4m3fnuz, DType::float8_e5m2, DType::float8_e5m2fnuz,
                           DType::float6_e2m3fn, DType::float6_e3m2fn, DType::float4_e2m1fn}) {
      EXPECT_EQ(from_double(1e9, to, strict).events, event_error) << name(to);
      EXPECT_EQ(from_double(-infinity, to, strict).events == event_error, to != DType::float8_e5m2) << name(to);
      EXPECT_NE(from_double(nan, to, strict).events, event_error) << name(to);
      EXPECT_NE(from_double(-2.0, to, strict).events, event_error) << name(to);
    }
    EXPECT_EQ(code_of(464.0, DType::float8_e4m3fn, strict), 0x7Eu);
    for (const double outside : {0.0, -1.0, 0x1p-128, 0x1.8p127, infinity, -infinity}) {
      EXPECT_EQ(from_double(outside, DType::float8_e8m0fnu, strict).events, event_error) << outside;
    }
    EXPECT_EQ(code_of(0x1p-127, DType::float8_e8m0fnu, strict), 0x00u);
    EXPECT_EQ(code_of(nan, DType::float8_e8m0fnu, strict), 0xFFu);
  }
  const Policy keeps{.keeps_infinity = true};
  EXPECT_EQ(code_of(-1e9, DType::float8_e4m3fn, keeps), 0xFEu);
  EXPECT_EQ(code_of(-infinity, DType::float8_e4m3fn, keeps), 0xFFu);
  EXPECT_EQ(code_of(1e9, DType::float8_e5m2, keeps), 0x7Bu);
  EXPECT_EQ(code_of(infinity, DType::float8_e5m2, keeps), 0x7Cu);
  EXPECT_EQ(code_of(0.0, DType::float8_e8m0fnu, keeps), 0x00u);
  EXPECT_EQ(code_of(-infinity, DType::float8_e8m0fnu, keeps), 0xFFu);
}

TEST(FloatCodec, E4M3FNEndsAt464) {
  const Policy no_saturate{.saturate = false};
  for (const double in_range : {448.0, 463.0, 464.0}) {
    EXPECT_EQ(code_of(in_range, DType::float8_e4m3fn), 0x7Eu);
    EXPECT_EQ(code_of(in_range, DType::float8_e4m3fn, no_saturate), 0x7Eu);
  }
  for (const double beyond : {std::nextafter(464.0, 500.0), 465.0, 480.0, 495.9, 496.0, 1e6, infinity}) {
    EXPECT_EQ(code_of(beyond, DType::float8_e4m3fn), 0x7Eu) << beyond;
    EXPECT_EQ(code_of(-beyond, DType::float8_e4m3fn), 0xFEu) << beyond;
    EXPECT_EQ(code_of(beyond, DType::float8_e4m3fn, no_saturate), 0x7Fu) << beyond;
    EXPECT_EQ(code_of(-beyond, DType::float8_e4m3fn, no_saturate), 0xFFu) << beyond;
  }
  EXPECT_EQ(from_double(464.0, DType::float8_e4m3fn).events, event_inexact);
  EXPECT_EQ(from_double(465.0, DType::float8_e4m3fn).events, event_saturated | event_inexact);
  EXPECT_EQ(from_double(infinity, DType::float8_e4m3fn).events, event_saturated);
  EXPECT_EQ(from_double(465.0, DType::float8_e4m3fn, no_saturate).events, event_overflowed | event_nan_made);
  EXPECT_EQ(from_double(infinity, DType::float8_e4m3fn, no_saturate).events, event_nan_made);
}

TEST(FloatCodec, OtherFloat8sEndHalfAStepAboveTheirLargest) {
  const Policy no_saturate{.saturate = false};
  EXPECT_EQ(code_of(std::nextafter(248.0, 0.0), DType::float8_e4m3fnuz, no_saturate), 0x7Fu);
  EXPECT_EQ(code_of(248.0, DType::float8_e4m3fnuz, no_saturate), 0x80u);
  EXPECT_EQ(code_of(-248.0, DType::float8_e4m3fnuz), 0xFFu);
  EXPECT_EQ(code_of(std::nextafter(61440.0, 0.0), DType::float8_e5m2, no_saturate), 0x7Bu);
  EXPECT_EQ(code_of(61440.0, DType::float8_e5m2, no_saturate), 0x7Cu);
  EXPECT_EQ(code_of(61440.0, DType::float8_e5m2), 0x7Bu);
  EXPECT_EQ(code_of(-infinity, DType::float8_e5m2), 0xFBu);
  EXPECT_EQ(code_of(-infinity, DType::float8_e5m2, no_saturate), 0xFCu);
  EXPECT_EQ(code_of(std::nextafter(61440.0, 0.0), DType::float8_e5m2fnuz, no_saturate), 0x7Fu);
  EXPECT_EQ(code_of(61440.0, DType::float8_e5m2fnuz, no_saturate), 0x80u);
  EXPECT_EQ(cast_code(DType::int32, 1000, DType::float8_e4m3fn, {}).bits, 0x7Eu);
  EXPECT_EQ(cast_code(DType::int32, 1000, DType::float8_e4m3fn, no_saturate).bits, 0x7Fu);
}

TEST(FloatCodec, FnuzInfinityByOpset) {
  for (const DType to : {DType::float8_e4m3fnuz, DType::float8_e5m2fnuz}) {
    EXPECT_EQ(code_of(infinity, to), 0x7Fu);
    EXPECT_EQ(code_of(-infinity, to), 0xFFu);
    const Policy opset_19{.keeps_infinity = true};
    EXPECT_EQ(code_of(infinity, to, opset_19), 0x80u);
    EXPECT_EQ(code_of(-infinity, to, opset_19), 0x80u);
    EXPECT_EQ(code_of(1e9, to, opset_19), 0x7Fu);  // finite values saturate at every opset
    EXPECT_EQ(code_of(infinity, to, {.saturate = false}), 0x80u);
  }
}

TEST(FloatCodec, Float4AlwaysSaturates) {
  for (const bool saturate : {true, false}) {
    for (const double beyond : {7.0, 1e6, infinity}) {
      EXPECT_EQ(code_of(beyond, DType::float4_e2m1fn, {.saturate = saturate}), 7u);
      EXPECT_EQ(code_of(-beyond, DType::float4_e2m1fn, {.saturate = saturate}), 0xFu);
    }
  }
  EXPECT_EQ(from_double(6.5, DType::float4_e2m1fn).events, event_inexact);
  EXPECT_EQ(from_double(7.0, DType::float4_e2m1fn).events, event_inexact | event_saturated);
}

TEST(FloatCodec, Float6RoundsAndSaturatesWhateverTheOptionsSay) {
  struct Case {
    double value;
    std::uint64_t e2m3, e3m2;
  };
  for (const Case& c : {Case{0.0625, 0x00, 0x01},
                        {0.1875, 0x02, 0x03},
                        {0.09375, 0x01, 0x02},
                        {1.0625, 0x08, 0x0C},
                        {1.125, 0x09, 0x0C},
                        {1.375, 0x0B, 0x0E},
                        {7.5, 0x1F, 0x18},
                        {7.75, 0x1F, 0x18},
                        {28, 0x1F, 0x1F},
                        {30, 0x1F, 0x1F},
                        {1e9, 0x1F, 0x1F},
                        {infinity, 0x1F, 0x1F}}) {
    for (const bool saturate : {true, false}) {
      const Policy policy{.saturate = saturate};
      EXPECT_EQ(code_of(c.value, DType::float6_e2m3fn, policy), c.e2m3) << c.value;
      EXPECT_EQ(code_of(-c.value, DType::float6_e2m3fn, policy), c.e2m3 | 0x20) << c.value;
      EXPECT_EQ(code_of(c.value, DType::float6_e3m2fn, policy), c.e3m2) << c.value;
      EXPECT_EQ(code_of(-c.value, DType::float6_e3m2fn, policy), c.e3m2 | 0x20) << c.value;
    }
  }
}

// Zeros and NaNs.

TEST(FloatCodec, NegativeZeroIsKeptWhereThereIsOne) {
  for (const DType to : small_floats) {
    const FloatFormat& format = row(to).format;
    if (!format.has_zero) continue;
    const std::uint64_t expected = format.has_negative_zero() ? std::uint64_t{1} << (bit_width(to) - 1) : 0;
    EXPECT_EQ(format.has_negative_zero(), format.has_sign && name(to).find("nuz") == std::string_view::npos &&
                                              name(to).find("binary8") == std::string_view::npos);
    EXPECT_EQ(code_of(-0.0, to), expected) << name(to);
    EXPECT_EQ(code_of(-1e-300, to), expected) << name(to);
  }
}

TEST(FloatCodec, NanKeepsSignAndLeadingPayload) {
  EXPECT_EQ(from_float32(0x7F800001, DType::float16), 0x7E00u);  // signalling: quiet bit forced
  EXPECT_EQ(from_float32(0xFFA02000, DType::float16), 0xFF01u);
  EXPECT_EQ(from_float32(0x7FBFFFFF, DType::bfloat16), 0x7FFFu);
  EXPECT_EQ(from_float32(0xFF810000, DType::bfloat16), 0xFFC1u);
  EXPECT_EQ(from_float32(0x7FC00000, DType::float8_e5m2), 0x7Eu);
  EXPECT_EQ(from_float32(0x7FA00000, DType::float8_e5m2), 0x7Fu);
  EXPECT_EQ(from_float32(0x7FC00000, DType::float8_e4m3fn), 0x7Fu);
  EXPECT_EQ(from_float32(0xFFC00001, DType::float8_e4m3fn), 0xFFu);
  EXPECT_EQ(from_float32(0x7FC00000, DType::float8_e4m3fnuz), 0x80u);
  EXPECT_EQ(from_float32(0xFFC00000, DType::float8_e8m0fnu), 0xFFu);
  EXPECT_EQ(cast_code(DType::float64, 0x7FF0000000000001, DType::float32, {}).bits, 0x7FC00000u);
  EXPECT_EQ(cast_code(DType::float32, 0xFF800001, DType::float64, {}).bits, 0xFFF8000020000000u);
  EXPECT_EQ(cast_code(DType::float8_e5m2, 0x7D, DType::float32, {}).bits, 0x7FE00000u);
  EXPECT_EQ(cast_code(DType::float8_e4m3fn, 0xFF, DType::float32, {}).bits, 0xFFC00000u);
  EXPECT_EQ(cast_code(DType::float8_e4m3fnuz, 0x80, DType::float32, {}).bits, 0xFFC00000u);
  EXPECT_EQ(cast_code(DType::float8_e8m0fnu, 0xFF, DType::float16, {}).bits, 0x7E00u);
  EXPECT_EQ(from_double(nan, DType::float8_e4m3fn).events, 0);
}

// D14: infinities of all ones and one NaN, at the code of negative zero.
TEST(FloatCodec, TypesOfP3109) {
  for (const DType to : {DType::binary8p4se, DType::binary8p3se}) {
    const double largest = facts(to).largest;
    EXPECT_EQ(code_of(largest, to), 0x7Eu);
    EXPECT_EQ(from_double(-infinity, to).bits, 0xFEu);
    EXPECT_EQ(from_double(-infinity, to).events, event_saturated);
    EXPECT_EQ(from_double(-infinity, to, {.saturate = false}).bits, 0xFFu);
    EXPECT_EQ(from_double(-infinity, to, {.saturate = false}).events, 0);
    EXPECT_EQ(from_double(2 * largest, to, {.saturate = false}).bits, 0x7Fu);
    EXPECT_EQ(from_double(2 * largest, to, {.saturate = false}).events, event_overflowed);
    EXPECT_EQ(from_double(infinity, to, {.range = RangeRule::error}).bits, 0x7Eu);
    EXPECT_EQ(from_double(2 * largest, to, {.range = RangeRule::error}).events, event_error);
    EXPECT_EQ(code_of(nan, to), 0x80u);
    EXPECT_EQ(from_float32(0xFFC00001, to), 0x80u);
    EXPECT_EQ(cast_code(to, 0x80, DType::float32, {}).bits, 0xFFC00000u);
  }
}

// D15: what rounds below zero is out of range.
// As CUDA 13.5, whose host headers gave these codes.
TEST(FloatCodec, Float8E5m3HasTheMagnitude) {
  constexpr DType to = DType::float8_e5m3fnu;
  const Policy unlimited{.saturate = false};
  EXPECT_EQ(code_of(-1.0, to), 0x78u);
  EXPECT_EQ(code_of(-3.25, to), 0x85u);
  EXPECT_EQ(code_of(-1e9, to), 0xFEu);
  EXPECT_EQ(code_of(-infinity, to), 0xFEu);
  EXPECT_EQ(code_of(-1e9, to, unlimited), 0xFFu);
  EXPECT_EQ(code_of(-infinity, to, unlimited), 0xFFu);
  EXPECT_EQ(code_of(-1e-9, to, {.rounding = Rounding::toward_positive}), 0x01u);
  EXPECT_EQ(code_of(1e9, to, {.saturate = false, .rounding = Rounding::toward_zero}), 0xFEu);
  EXPECT_EQ(code_of(1e9, to, {.saturate = false, .rounding = Rounding::toward_negative}), 0xFEu);
  EXPECT_EQ(code_of(1e9, to, {.saturate = false, .rounding = Rounding::toward_positive}), 0xFFu);
  EXPECT_EQ(from_double(-1.0, to).events, event_sign_lost | event_inexact);
  EXPECT_EQ(from_double(-1e-300, to).events, event_sign_lost | event_inexact | event_underflowed);
  EXPECT_EQ(from_double(-1e300, to).events, event_sign_lost | event_saturated | event_inexact);
  EXPECT_EQ(from_double(-1e300, to, unlimited).events, event_sign_lost | event_overflowed | event_nan_made);
  EXPECT_EQ(from_double(-infinity, to).events, event_sign_lost | event_saturated);
  EXPECT_EQ(from_double(-0.0, to).events, 0);
  for (const double below : {-1e-300, -1.0, -1e300, -infinity}) {
    EXPECT_EQ(from_double(below, to, {.range = RangeRule::error}).events, event_error) << below;
    EXPECT_EQ(from_double(below, to, {.invalid_is_error = true}).events, event_error) << below;
  }
  EXPECT_EQ(from_double(infinity, to).bits, 0xFEu);
  EXPECT_EQ(code_of(118784.0, to, unlimited), 0xFEu);  // a tie
  EXPECT_EQ(code_of(118784.1, to, unlimited), 0xFFu);
  EXPECT_EQ(from_float32(0xFFC00000, to), 0xFFu);
  EXPECT_EQ(from_double(-0.0, to, {.invalid_is_error = true}).events, 0);
}

TEST(FloatCodec, Float6HasNoNan) {
  for (const DType to : {DType::float6_e2m3fn, DType::float6_e3m2fn}) {
    for (const double value : {nan, -nan}) {
      EXPECT_EQ(code_of(value, to), 0x20u);
      EXPECT_EQ(code_of(value, to, {.float4_nan_is_zero = false}), 0x20u);
      EXPECT_EQ(from_double(value, to).events, event_nan_lost);
      EXPECT_EQ(from_double(value, to, {.invalid_is_error = true}).events, event_error);
    }
  }
}

TEST(FloatCodec, Float4HasNoNan) {
  for (const double value : {nan, -nan}) {
    EXPECT_EQ(code_of(value, DType::float4_e2m1fn), 8u);
    EXPECT_EQ(code_of(value, DType::float4_e2m1fn, {.float4_nan_is_zero = false}), 7u);
    EXPECT_EQ(from_double(value, DType::float4_e2m1fn).events, event_nan_lost);
    EXPECT_EQ(from_double(value, DType::float4_e2m1fn, {.invalid_is_error = true}).events, event_error);
  }
}

// float8_e8m0fnu.

std::uint64_t e8m0(double value, RoundMode mode, bool saturate = true) {
  return code_of(value, DType::float8_e8m0fnu, {.saturate = saturate, .e8m0_rounding = mode});
}

TEST(E8M0, RoundsWithinItsRange) {
  struct Case {
    double value;
    std::uint64_t up, down, nearest;
  };
  const Case cases[] = {{1.0, 127, 127, 127},
                        {1.1, 128, 127, 127},
                        {1.5, 128, 127, 128},
                        {std::nextafter(1.5, 1.0), 128, 127, 127},
                        {3.0, 129, 128, 129},
                        {1.0 + 0x1p-52, 128, 127, 127},
                        {0.124, 0x7C, 0x7B, 0x7C},
                        {0x1p-127, 0, 0, 0},
                        {1.25 * 0x1p-127, 1, 0, 0},
                        {1.5 * 0x1p-127, 1, 0, 1},
                        {1.75 * 0x1p126, 254, 253, 254},
                        {0x1p127, 254, 254, 254}};
  for (const bool saturate : {true, false}) {
    for (const Case& c : cases) {
      EXPECT_EQ(e8m0(c.value, RoundMode::up, saturate), c.up) << c.value;
      EXPECT_EQ(e8m0(c.value, RoundMode::down, saturate), c.down) << c.value;
      EXPECT_EQ(e8m0(c.value, RoundMode::nearest, saturate), c.nearest) << c.value;
    }
  }
}

TEST(E8M0, ClampsBeforeItRounds) {
  for (const RoundMode mode : {RoundMode::up, RoundMode::down, RoundMode::nearest}) {
    for (const double below : {0.0, -0.0, -1.0, -infinity, 0x1p-128, std::nextafter(0x1p-127, 0.0), 0x1p-1074}) {
      EXPECT_EQ(e8m0(below, mode), 0u) << below;
      EXPECT_EQ(e8m0(below, mode, false), 0xFFu) << below;
    }
    for (const double above : {std::nextafter(0x1p127, infinity), 1.2 * 0x1p127, 1e300, infinity}) {
      EXPECT_EQ(e8m0(above, mode), 0xFEu) << above;
      EXPECT_EQ(e8m0(above, mode, false), 0xFFu) << above;
    }
    EXPECT_EQ(e8m0(nan, mode), 0xFFu);
  }
}

TEST(E8M0, NegativesAreRefusedOnDemand) {
  const Policy strict{.invalid_is_error = true};
  for (const double negative : {-1.0, -1e-300, -infinity}) {
    EXPECT_EQ(from_double(negative, DType::float8_e8m0fnu, strict).events, event_error) << negative;
  }
  EXPECT_EQ(code_of(-0.0, DType::float8_e8m0fnu, strict), 0u);
  EXPECT_EQ(code_of(-nan, DType::float8_e8m0fnu, strict), 0xFFu);
  EXPECT_EQ(code_of(infinity, DType::float8_e8m0fnu, strict), 0xFEu);
}

TEST(E8M0, SmallestIsASubnormalElsewhere) {
  EXPECT_EQ(cast_code(DType::float8_e8m0fnu, 0, DType::float32, {}).bits, 0x00400000u);
  EXPECT_EQ(cast_code(DType::float8_e8m0fnu, 0, DType::bfloat16, {}).bits, 0x0040u);
  EXPECT_EQ(cast_code(DType::float8_e8m0fnu, 0, DType::float16, {}).bits, 0u);
}

TEST(E8M0, Events) {
  const Policy no_saturate{.saturate = false};
  EXPECT_EQ(from_double(1.0, DType::float8_e8m0fnu).events, 0);
  EXPECT_EQ(from_double(1.1, DType::float8_e8m0fnu).events, event_inexact);
  EXPECT_EQ(from_double(0.0, DType::float8_e8m0fnu).events, event_saturated | event_inexact);
  EXPECT_EQ(from_double(infinity, DType::float8_e8m0fnu).events, event_saturated);
  EXPECT_EQ(from_double(0.0, DType::float8_e8m0fnu, no_saturate).events, event_overflowed | event_nan_made);
  EXPECT_EQ(from_double(infinity, DType::float8_e8m0fnu, no_saturate).events, event_nan_made);
}

}  // namespace
}  // namespace tensorcast::codec
