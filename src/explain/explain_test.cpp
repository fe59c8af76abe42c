// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/explain.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "dtype/formatted.hpp"

namespace tensorcast {
namespace {

using Events = std::vector<std::string>;

Explanation explained(std::string_view literal, DType from, DType to, const CastOptions& options = {}) {
  Result<Explanation> result = explain(literal, from, to, options);
  EXPECT_TRUE(result.ok()) << literal << ": " << result.error().describe();
  return result.ok() ? *std::move(result) : Explanation{};
}

Explanation explained(std::string_view literal, DType to, const CastOptions& options = {}) {
  return explained(literal, DType::undefined, to, options);
}

TEST(Explain, OneTenthInEveryFloat) {
  const Explanation f64 = explained("0.1", DType::float64);
  EXPECT_EQ(f64.code, 0x3FB999999999999AU);
  EXPECT_EQ(f64.exact_value, "0.1000000000000000055511151231257827021181583404541015625");
  EXPECT_EQ(f64.exact_error, "0.0000000000000000055511151231257827021181583404541015625");
  EXPECT_EQ(f64.shortest_value, "0.1");

  const Explanation f32 = explained("0.1", DType::float32);
  EXPECT_EQ(f32.sign_bits, "0");
  EXPECT_EQ(f32.exponent_bits, "01111011");
  EXPECT_EQ(f32.mantissa_bits, "10011001100110011001101");
  EXPECT_EQ(f32.exact_value, "0.100000001490116119384765625");
  EXPECT_EQ(f32.events, Events{"rounded"});

  const Explanation f8 = explained("0.1", DType::float8_e4m3fn);
  EXPECT_EQ(f8.code, 0x1DU);
  EXPECT_EQ(f8.exact_value, "0.1015625");
  EXPECT_EQ(f8.exact_error, "0.0015625");
  EXPECT_DOUBLE_EQ(f8.relative_error, 0.015625);

  const Explanation e8 = explained("0.1", DType::float8_e8m0fnu);
  EXPECT_EQ(e8.sign_bits, "");
  EXPECT_EQ(e8.exponent_bits, "01111100");
  EXPECT_EQ(e8.mantissa_bits, "");
  EXPECT_EQ(e8.exact_value, "0.125");
}

TEST(Explain, FirstRoundsToTheSourceType) {
  const Explanation from_float32 = explained("0.1", DType::float32, DType::float64);
  EXPECT_EQ(from_float32.exact_value, "0.100000001490116119384765625");
  EXPECT_EQ(from_float32.exact_error, "0");
  EXPECT_EQ(from_float32.events, Events{"exact"});
  EXPECT_EQ(explained("300", DType::uint8, DType::int32).exact_value, "44");
  EXPECT_EQ(explained("true", DType::boolean, DType::float16).exact_value, "1");
}

TEST(Explain, TakesCodes) {
  EXPECT_EQ(explained("0x7E", DType::float8_e4m3fn, DType::float32).exact_value, "448");
  EXPECT_EQ(explained(" 0b1111 ", DType::float4_e2m1fn, DType::float16).exact_value, "-6");
  EXPECT_EQ(explained("0X8000000000000000", DType::int64, DType::float32).exact_value, "-9223372036854775808");
  // A code stays what it is: no rounding on the way in, not even of a NaN's payload.
  EXPECT_EQ(explained("0x7FC12345", DType::float32, DType::float32).code, 0x7FC12345U);
}

TEST(Explain, NamesWhatHappened) {
  EXPECT_EQ(explained("0.5", DType::float16).events, Events{"exact"});
  EXPECT_EQ(explained("1e6", DType::float16).events, Events{"overflowed"});
  EXPECT_EQ(explained("1e6", DType::float8_e4m3fn).events, Events{"saturated"});
  EXPECT_EQ(explained("1e6", DType::float8_e4m3fn, {.saturate = false}).events, Events{"overflowed"});
  EXPECT_EQ(explained("1e-60", DType::float32).events, Events{"underflowed"});
  EXPECT_EQ(explained("300", DType::uint8).events, Events{"wrapped"});
  EXPECT_EQ(explained("300", DType::uint8, {.out_of_range = OutOfRange::saturate}).events, Events{"saturated"});
  const CastOptions saturate{.out_of_range = OutOfRange::saturate}, error{.out_of_range = OutOfRange::error};
  EXPECT_EQ(explained("300", DType::int32, DType::uint8, saturate).events, Events{"saturated"});
  EXPECT_EQ(explained("300", DType::int32, DType::uint8, error).error, "value 300 does not fit uint8 (from int32)");
  EXPECT_EQ(explained("1e6", DType::float16, saturate).code, 0x7BFFu);
  EXPECT_EQ(explained("1e6", DType::float16, error).error, "value 1e6 does not fit float16");
  EXPECT_EQ(explained("1e999", DType::float64, error).error, "value 1e999 does not fit float64");
  EXPECT_EQ(explained("2.7", DType::int8).events, Events{"truncated"});
  EXPECT_EQ(explained("2.7", DType::int8, {.rounding = Rounding::nearest_even}).events, Events{"rounded"});
  EXPECT_EQ(explained("nan", DType::int8).events, Events{"NaN lost"});
  EXPECT_EQ(explained("-inf", DType::float8_e4m3fn, {.saturate = false}).events, Events{"NaN made"});
}

// D16: the first element of a tensor, whose random words of the seeds 0 and 1 are 0x6627e8d5 and beyond a half.
TEST(Explain, StochasticRoundingHasTheSeed) {
  CastOptions options{.rounding = Rounding::stochastic};
  EXPECT_EQ(explained("1.5", DType::int8, options).exact_value, "1");
  EXPECT_EQ(explained("1.7", DType::float32, DType::int8, options).exact_value, "2");
  options.seed = 1;
  EXPECT_EQ(explained("1.5", DType::int8, options).exact_value, "2");
  EXPECT_EQ(explained("1.5", DType::float32, DType::int8, options).exact_value, "2");
}

TEST(Explain, SaysThatAValueWouldChange) {
  const CastOptions exact{.inexact = Inexact::error};
  EXPECT_EQ(explained("0.1", DType::float16, exact).error, "value 0.1 would change in float16");
  EXPECT_EQ(explained("1.5", DType::float32, DType::int8, exact).error,
            "value 1.5 would change in int8 (from float32)");
}

TEST(Explain, NonFiniteValuesHaveNoError) {
  const Explanation nan = explained("nan", DType::bfloat16);
  EXPECT_EQ(nan.exact_value, "NaN");
  EXPECT_EQ(nan.exact_error, "");
  EXPECT_EQ(explained("-inf", DType::float32).exact_value, "-INF");
  EXPECT_EQ(explained("1e6", DType::float16).exact_error, "");
}

TEST(Explain, KeepsTheSignOfZero) {
  const Explanation zero = explained("-0.0", DType::float16);
  EXPECT_EQ(zero.code, 0x8000U);
  EXPECT_EQ(zero.exact_value, "-0");
  EXPECT_EQ(zero.exact_error, "0");
}

TEST(Explain, ErrorsAreExactBeyondTheRangeOfDouble) {
  const Explanation huge = explained("1e400", DType::float8_e4m3fn);
  EXPECT_EQ(huge.exact_error, "-" + std::string(397, '9') + "552");
  EXPECT_DOUBLE_EQ(huge.relative_error, 1.0);
  EXPECT_EQ(explained("1e-400", DType::float64).exact_error, "-0." + std::string(399, '0') + "1");
  EXPECT_TRUE(std::isinf(explained("0", DType::float8_e8m0fnu).relative_error));
}

TEST(Explain, ScalesBeforeTheOneRounding) {
  const Explanation scaled = explained("0.3", DType::float32, DType::float16, {.scale = -2.0});
  EXPECT_EQ(scaled.exact_value, "-0.60009765625");
  EXPECT_EQ(scaled.exact_error, "-0.00009763240814208984375");
  EXPECT_EQ(explained("0.1", DType::int32, {.scale = 10.0}).exact_value, "1");
}

TEST(Explain, Strings) {
  EXPECT_EQ(explained("0.1", DType::float32, DType::string).exact_value, "0.1");
  EXPECT_EQ(explained("0.1", DType::float32, DType::string).exact_error, "-0.000000001490116119384765625");
  EXPECT_EQ(explained("1e2", DType::string).exact_value, "1e2");
  EXPECT_FALSE(explained("1", DType::string, {.scale = 2.0}).error.empty());
}

TEST(Explain, RefusalsAreResults) {
  const Explanation refused = explained("300", DType::float32, DType::uint8, {.out_of_range = OutOfRange::error});
  EXPECT_NE(refused.error.find("300"), std::string::npos) << refused.error;
  EXPECT_NE(refused.error.find("uint8"), std::string::npos) << refused.error;
  EXPECT_TRUE(refused.exact_value.empty());
  EXPECT_NE(explained("1", DType::bfloat16, {.opset = 9}).error.find("13"), std::string::npos);
}

TEST(Explain, RefusesWhatIsNoValue) {
  const auto code_of = [](std::string_view literal, DType from, DType to) {
    const Result<Explanation> result = explain(literal, from, to);
    EXPECT_FALSE(result.ok()) << literal;
    return result.ok() ? ErrorCode::internal : result.error().code;
  };
  EXPECT_EQ(code_of("abc", DType::undefined, DType::float32), ErrorCode::parse);
  EXPECT_EQ(code_of("", DType::undefined, DType::float32), ErrorCode::parse);
  EXPECT_EQ(code_of("1,5", DType::float32, DType::float32), ErrorCode::parse);
  EXPECT_EQ(code_of("0x1G", DType::uint8, DType::float32), ErrorCode::parse);
  EXPECT_EQ(code_of("0x7E", DType::undefined, DType::float32), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of("0x100", DType::float8_e5m2, DType::float32), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of("0x10000000000000000", DType::int64, DType::float32), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of("1e200000", DType::undefined, DType::float32), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of("1", DType::undefined, DType::undefined), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of("1", DType::uint1, DType::float32), ErrorCode::unsupported);
}

TEST(Explain, EveryCodeOfEverySmallTypeIsExactAsItself) {
  for (const DType dtype : all_dtypes()) {
    if (dtype == DType::string || bit_width(dtype) > 8 || dtype == DType::boolean) continue;
    for (int code = 0; code < 1 << bit_width(dtype); ++code) {
      const std::string literal = formatted("0x{:X}", code);
      const Explanation same = explained(literal, dtype, dtype);
      EXPECT_EQ(same.code, static_cast<std::uint64_t>(code)) << name(dtype);
      EXPECT_EQ(same.events, Events{"exact"}) << name(dtype) << ' ' << literal;
      // The exact decimal, read again, is the same code.
      if (same.exact_error.empty()) continue;
      EXPECT_EQ(explained(same.exact_value, dtype).code, same.code) << name(dtype) << ' ' << same.exact_value;
    }
  }
}

}  // namespace
}  // namespace tensorcast
