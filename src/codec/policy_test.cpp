#include "codec/policy.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "dtype/dtype_table.hpp"

namespace tensorcast::codec {
namespace {

Policy resolved(const CastOptions& options, DType from, DType to) {
  const Result<Policy> policy = resolve_policy(options, from, to);
  EXPECT_TRUE(policy.ok());
  return policy ? *policy : Policy{};
}

Error refusal(const CastOptions& options, DType from = DType::float32, DType to = DType::float16) {
  const Result<Policy> policy = resolve_policy(options, from, to);
  EXPECT_FALSE(policy.ok());
  return policy ? Error{} : policy.error();
}

TEST(Policy, DefaultsAreThoseOfTheNewestOpset) {
  for (const DType to : all_dtypes()) {
    EXPECT_EQ(resolved({}, DType::float32, to), Policy{}) << name(to);
    EXPECT_EQ(resolved({.opset = newest_opset}, DType::float32, to), Policy{}) << name(to);
  }
}

// plain_policy() is nothing but a shortcut.
TEST(Policy, PlainOptionsAreThoseThatFitAnyTypes) {
  std::vector<CastOptions> plain(6);
  plain[1].saturate = false;
  plain[2].out_of_range = OutOfRange::saturate;
  plain[3].int_rounding = IntRounding::nearest_even;
  plain[4].round_mode = RoundMode::nearest;
  plain[5].opset = newest_opset;
  plain[5].out_of_range = OutOfRange::wrap;
  plain[5].fnuz_inf = FnuzInf::flt_max;
  plain[5].float_string = FloatString::g8;
  for (const CastOptions& options : plain) {
    const std::optional<Policy> policy = plain_policy(options);
    ASSERT_TRUE(policy.has_value());
    for (const DType from : all_dtypes()) {
      for (const DType to : all_dtypes()) EXPECT_EQ(*policy, resolved(options, from, to)) << name(from) << name(to);
    }
  }
  std::vector<CastOptions> others(13);
  others[0].opset = newest_opset - 1;
  others[1].scale = 2.0;
  others[2].out_of_range = OutOfRange::error;
  others[3].invalid = Invalid::error;
  others[4].threads = -1;
  others[5].opset = 99;
  others[6].round_mode = static_cast<RoundMode>(3);
  others[7].int_rounding = static_cast<IntRounding>(-1);
  others[8].out_of_range = static_cast<OutOfRange>(-1);
  others[9].fnuz_inf = static_cast<FnuzInf>(2);
  others[10].float_string = static_cast<FloatString>(3);
  others[11].scale = std::numeric_limits<double>::quiet_NaN();
  others[12].invalid = static_cast<Invalid>(2);
  for (const CastOptions& options : others) EXPECT_FALSE(plain_policy(options).has_value());
}

TEST(Policy, TypesExistSinceTheirOpset) {
  for (const DType dtype : all_dtypes()) {
    for (int opset = 1; opset <= newest_opset; ++opset) {
      const bool exists = opset >= since_opset(dtype);
      for (const auto& [from, to] : {std::pair{dtype, DType::float32}, {DType::float32, dtype}}) {
        const Result<Policy> policy = resolve_policy({.opset = opset}, from, to);
        ASSERT_EQ(policy.ok(), exists) << name(dtype) << " at " << opset;
        if (!exists) {
          EXPECT_EQ(policy.error().code, ErrorCode::unsupported);
        }
      }
    }
  }
}

TEST(Policy, RefusalsSaySinceWhen) {
  EXPECT_EQ(refusal({.opset = 13}, DType::float32, DType::float8_e4m3fn).message,
            "float8_e4m3fn is a type of Cast since opset 19; opset 13 was asked for");
  const Error no_saturate = refusal({.opset = 18, .saturate = false});
  EXPECT_EQ(no_saturate.code, ErrorCode::unsupported);
  EXPECT_EQ(no_saturate.message, "saturate is an attribute of Cast since opset 19; opset 18 was asked for");
  const Error no_round_mode = refusal({.opset = 23, .round_mode = RoundMode::nearest});
  EXPECT_EQ(no_round_mode.code, ErrorCode::unsupported);
  EXPECT_EQ(no_round_mode.message, "round_mode is an attribute of Cast since opset 24; opset 23 was asked for");
  EXPECT_TRUE(resolve_policy({.opset = 19, .saturate = false}, DType::float32, DType::int8).ok());
  EXPECT_TRUE(resolve_policy({.opset = 24, .round_mode = RoundMode::down}, DType::float32, DType::int8).ok());
}

TEST(Policy, ValuesThatDoNotExistAreRefused) {
  const CastOptions wrong[] = {
      {.opset = -1},
      {.opset = newest_opset + 1},
      {.round_mode = static_cast<RoundMode>(3)},
      {.round_mode = static_cast<RoundMode>(-1)},
      {.out_of_range = static_cast<OutOfRange>(4)},
      {.int_rounding = static_cast<IntRounding>(2)},
      {.invalid = static_cast<Invalid>(2)},
      {.fnuz_inf = static_cast<FnuzInf>(2)},
      {.float_string = static_cast<FloatString>(3)},
      {.scale = std::numeric_limits<double>::infinity()},
      {.scale = std::numeric_limits<double>::quiet_NaN()},
  };
  for (const CastOptions& options : wrong) EXPECT_EQ(refusal(options).code, ErrorCode::invalid_argument);
  for (const DType dtype : {DType::undefined, DType::uint1, static_cast<DType>(14), static_cast<DType>(-3)}) {
    EXPECT_EQ(refusal({}, dtype, DType::float32).code, ErrorCode::invalid_argument);
    EXPECT_EQ(refusal({}, DType::float32, dtype).code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(refusal({.scale = 2.0}, DType::float32, DType::string).code, ErrorCode::invalid_argument);
  EXPECT_TRUE(resolve_policy({.scale = 0.0}, DType::float32, DType::int8).ok());
}

TEST(Policy, FnuzInfinityIsNanFromOpset19To23) {
  for (int opset = 19; opset <= newest_opset; ++opset) {
    for (const DType to : {DType::float8_e4m3fnuz, DType::float8_e5m2fnuz}) {
      EXPECT_EQ(resolved({.opset = opset}, DType::float32, to).fnuz_inf_is_nan, opset < 24) << opset;
      EXPECT_FALSE(resolved({.opset = opset, .saturate = false}, DType::float32, to).fnuz_inf_is_nan);
      EXPECT_FALSE(resolved({.opset = opset, .fnuz_inf = FnuzInf::flt_max}, DType::float32, to).fnuz_inf_is_nan);
    }
    EXPECT_FALSE(resolved({.opset = opset}, DType::float32, DType::float8_e4m3fn).fnuz_inf_is_nan);
  }
}

TEST(Policy, RealsSaturateInto4BitsFromOpset21To23) {
  for (int opset = 21; opset <= newest_opset; ++opset) {
    const IntegerRange expected = opset < 24 ? IntegerRange::saturate : IntegerRange::wrap;
    for (const DType to : {DType::int4, DType::uint4}) {
      EXPECT_EQ(resolved({.opset = opset}, DType::float32, to).integer_range, expected) << opset;
      EXPECT_EQ(resolved({.opset = opset}, DType::string, to).integer_range, expected) << opset;
      EXPECT_EQ(resolved({.opset = opset, .scale = 2.0}, DType::int32, to).integer_range, expected) << opset;
      EXPECT_EQ(resolved({.opset = opset}, DType::int32, to).integer_range, IntegerRange::wrap);
      const CastOptions wrap{.opset = opset, .out_of_range = OutOfRange::wrap};
      EXPECT_EQ(resolved(wrap, DType::float32, to).integer_range, IntegerRange::wrap);
    }
    EXPECT_EQ(resolved({.opset = opset}, DType::float32, DType::int8).integer_range, IntegerRange::wrap);
  }
}

TEST(Policy, Float4NanIsZeroSinceOpset24) {
  EXPECT_FALSE(resolved({.opset = 23}, DType::float32, DType::float4_e2m1fn).float4_nan_is_zero);
  EXPECT_TRUE(resolved({.opset = 24}, DType::float32, DType::float4_e2m1fn).float4_nan_is_zero);
}

TEST(Policy, Float6CameWithOpset28) {
  for (const DType type : {DType::float6_e2m3fn, DType::float6_e3m2fn}) {
    for (const int opset : {1, 25, 26, 27}) {
      EXPECT_EQ(refusal({.opset = opset}, DType::float32, type).code, ErrorCode::unsupported) << opset;
    }
    EXPECT_EQ(resolved({.opset = 28}, DType::float32, type), Policy{});
  }
}

TEST(Policy, OptionsArriveAsTheyAre) {
  const CastOptions options{.saturate = false,
                            .round_mode = RoundMode::nearest,
                            .out_of_range = OutOfRange::error,
                            .int_rounding = IntRounding::nearest_even,
                            .invalid = Invalid::error,
                            .float_string = FloatString::g8,
                            .scale = -0.5};
  const Policy policy = resolved(options, DType::float32, DType::int8);
  EXPECT_FALSE(policy.saturate);
  EXPECT_TRUE(policy.invalid_is_error);
  EXPECT_EQ(policy.integer_range, IntegerRange::error);
  EXPECT_EQ(policy.int_rounding, IntRounding::nearest_even);
  EXPECT_EQ(policy.e8m0_rounding, RoundMode::nearest);
  EXPECT_EQ(policy.float_string, FloatString::g8);
  EXPECT_EQ(policy.scale, -0.5);
}

}  // namespace
}  // namespace tensorcast::codec
