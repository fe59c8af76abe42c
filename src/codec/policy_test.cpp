// SPDX-License-Identifier: Apache-2.0
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
    EXPECT_EQ(resolved({.opset = newest_known_opset}, DType::float32, to), Policy{}) << name(to);
  }
}

TEST(Policy, RefusesValuesThatNoOptionHas) {
  std::vector<CastOptions> wrong(8);
  wrong[0].opset = 99;
  wrong[1].opset = -1;
  wrong[2].round_mode = static_cast<RoundMode>(3);
  wrong[3].rounding = static_cast<Rounding>(-1);
  wrong[4].out_of_range = static_cast<OutOfRange>(-1);
  wrong[5].fnuz_inf = static_cast<FnuzInf>(2);
  wrong[6].float_string = static_cast<FloatString>(3);
  wrong[7].scale = std::numeric_limits<double>::quiet_NaN();
  for (const CastOptions& options : wrong) {
    const Result<Policy> policy = resolve_policy(options, DType::float32, DType::int8);
    ASSERT_FALSE(policy.ok());
    EXPECT_EQ(policy.error().code, ErrorCode::invalid_argument);
  }
}

TEST(Policy, WithoutErrorsDemandsNone) {
  const Policy strict =
      resolved({.out_of_range = OutOfRange::error, .invalid = Invalid::error}, DType::float32, DType::int8);
  EXPECT_TRUE(strict.demands_errors());
  EXPECT_FALSE(strict.without_errors().demands_errors());
  EXPECT_EQ(strict.without_errors(), Policy{});
}

TEST(Policy, TypesExistSinceTheirOpset) {
  for (const DType dtype : all_dtypes()) {
    for (int opset = 1; opset <= newest_known_opset; ++opset) {
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
      {.opset = newest_known_opset + 1},
      {.round_mode = static_cast<RoundMode>(3)},
      {.round_mode = static_cast<RoundMode>(-1)},
      {.out_of_range = static_cast<OutOfRange>(4)},
      {.rounding = static_cast<Rounding>(8)},
      {.seed = 1},
      {.rounding = Rounding::to_odd, .seed = 1},
      {.inexact = static_cast<Inexact>(2)},
      {.invalid = static_cast<Invalid>(2)},
      {.fnuz_inf = static_cast<FnuzInf>(2)},
      {.float_string = static_cast<FloatString>(3)},
      {.scale = std::numeric_limits<double>::infinity()},
      {.scale = std::numeric_limits<double>::quiet_NaN()},
  };
  for (const CastOptions& options : wrong) EXPECT_EQ(refusal(options).code, ErrorCode::invalid_argument);
  for (const DType dtype : {DType::undefined, static_cast<DType>(14), static_cast<DType>(-3)}) {
    EXPECT_EQ(refusal({}, dtype, DType::float32).code, ErrorCode::invalid_argument);
    EXPECT_EQ(refusal({}, DType::float32, dtype).code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(refusal({}, DType::uint1, DType::float32).code, ErrorCode::unsupported);
  EXPECT_EQ(refusal({.scale = 2.0}, DType::float32, DType::string).code, ErrorCode::invalid_argument);
  EXPECT_EQ(refusal({.float_string = FloatString::g8, .inexact = Inexact::error}, DType::float64, DType::string).code,
            ErrorCode::invalid_argument);
  EXPECT_TRUE(resolve_policy({.scale = 0.0}, DType::float32, DType::int8).ok());
}

TEST(Policy, FnuzInfinityIsNanFromOpset19To23) {
  for (int opset = 19; opset <= newest_known_opset; ++opset) {
    for (const DType to : {DType::float8_e4m3fnuz, DType::float8_e5m2fnuz}) {
      EXPECT_EQ(resolved({.opset = opset}, DType::float32, to).keeps_infinity, opset < 24) << opset;
      EXPECT_FALSE(resolved({.opset = opset, .saturate = false}, DType::float32, to).keeps_infinity);
      EXPECT_FALSE(resolved({.opset = opset, .fnuz_inf = FnuzInf::flt_max}, DType::float32, to).keeps_infinity);
    }
    EXPECT_FALSE(resolved({.opset = opset}, DType::float32, DType::float8_e4m3fn).keeps_infinity);
  }
}

TEST(Policy, RealsSaturateInto4BitsFromOpset21To23) {
  for (int opset = 21; opset <= newest_known_opset; ++opset) {
    const RangeRule expected = opset < 24 ? RangeRule::saturate : RangeRule::wrap;
    for (const DType to : {DType::int4, DType::uint4}) {
      EXPECT_EQ(resolved({.opset = opset}, DType::float32, to).range, expected) << opset;
      EXPECT_EQ(resolved({.opset = opset}, DType::string, to).range, expected) << opset;
      EXPECT_EQ(resolved({.opset = opset, .scale = 2.0}, DType::int32, to).range, expected) << opset;
      EXPECT_EQ(resolved({.opset = opset}, DType::int32, to).range, RangeRule::wrap);
      const CastOptions wrap{.opset = opset, .out_of_range = OutOfRange::wrap};
      EXPECT_EQ(resolved(wrap, DType::float32, to).range, RangeRule::wrap);
    }
    EXPECT_EQ(resolved({.opset = opset}, DType::float32, DType::int8).range, RangeRule::wrap);
  }
}

TEST(Policy, RangeCountsOnlyWhereItCanMatter) {
  for (const OutOfRange rule : {OutOfRange::saturate, OutOfRange::error}) {
    const RangeRule wanted = rule == OutOfRange::error ? RangeRule::error : RangeRule::saturate;
    const CastOptions options{.out_of_range = rule};
    const std::pair<DType, DType> may_leave[] = {
        {DType::int32, DType::uint32},          {DType::int8, DType::uint64},         {DType::uint64, DType::int64},
        {DType::uint16, DType::float16},        {DType::float8_e4m3fn, DType::int64}, {DType::float32, DType::int64},
        {DType::float64, DType::float32},       {DType::float32, DType::bfloat16},    {DType::string, DType::float64},
        {DType::float8_e8m0fnu, DType::float16}};
    for (const auto& [from, to] : may_leave) EXPECT_EQ(resolved(options, from, to).range, wanted) << name(to);
    const std::pair<DType, DType> never[] = {
        {DType::int8, DType::int16},          {DType::boolean, DType::int2},   {DType::int16, DType::float16},
        {DType::float16, DType::float32},     {DType::int64, DType::bfloat16}, {DType::float32, DType::boolean},
        {DType::float8_e5m2, DType::float16}, {DType::int8, DType::int8},      {DType::float64, DType::float64}};
    for (const auto& [from, to] : never) EXPECT_EQ(resolved(options, from, to).range, RangeRule::wrap) << name(to);
    CastOptions scaled = options;
    scaled.scale = 2.0;
    EXPECT_EQ(resolved(scaled, DType::float64, DType::float64).range, wanted);
    EXPECT_EQ(resolved(scaled, DType::float32, DType::boolean).range, RangeRule::wrap);
  }
}

TEST(Policy, SaturationOfNarrowFloatsIsInTheirOwnFields) {
  const auto policy = [](bool saturate, DType to) {
    return resolved({.saturate = saturate, .out_of_range = OutOfRange::saturate}, DType::float32, to);
  };
  for (const DType to : {DType::float8_e4m3fn, DType::float8_e5m2, DType::float8_e5m2fnuz, DType::float8_e8m0fnu}) {
    EXPECT_EQ(policy(true, to), Policy{});
    EXPECT_EQ(policy(false, to), Policy{.keeps_infinity = true}) << name(to);
  }
  EXPECT_EQ(policy(false, DType::float4_e2m1fn), Policy{});
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

TEST(Policy, WordsThatChangeNothingAreNone) {
  const auto word = [](Rounding rounding, DType from, DType to) {
    return static_cast<Rounding>(resolved({.rounding = rounding}, from, to).rounding);
  };
  EXPECT_EQ(word(Rounding::toward_zero, DType::float32, DType::int8), Rounding::automatic);
  EXPECT_EQ(word(Rounding::nearest_even, DType::float32, DType::float16), Rounding::automatic);
  EXPECT_EQ(word(Rounding::to_odd, DType::float16, DType::float32), Rounding::automatic);
  EXPECT_EQ(word(Rounding::to_odd, DType::float8_e5m2, DType::float16), Rounding::automatic);
  EXPECT_EQ(word(Rounding::to_odd, DType::int64, DType::int8), Rounding::automatic);
  EXPECT_EQ(word(Rounding::to_odd, DType::float32, DType::boolean), Rounding::automatic);
  EXPECT_EQ(word(Rounding::to_odd, DType::float32, DType::string), Rounding::automatic);
  EXPECT_EQ(word(Rounding::to_odd, DType::int16, DType::float16), Rounding::to_odd);
  EXPECT_EQ(word(Rounding::to_odd, DType::int8, DType::float16), Rounding::automatic);
  EXPECT_EQ(word(Rounding::toward_zero, DType::bfloat16, DType::float16), Rounding::toward_zero);
  EXPECT_EQ(resolved({.rounding = Rounding::to_odd, .scale = 2.0}, DType::float16, DType::float16).rounding,
            Rounding::to_odd);
  EXPECT_EQ(resolved({.rounding = Rounding::toward_negative}, DType::float32, DType::float8_e8m0fnu).e8m0_rounding,
            RoundMode::down);
  EXPECT_EQ(
      refusal({.round_mode = RoundMode::down, .rounding = Rounding::to_odd}, DType::float32, DType::float8_e8m0fnu)
          .code,
      ErrorCode::invalid_argument);
}

TEST(Policy, OptionsArriveAsTheyAre) {
  const CastOptions options{.saturate = false,
                            .round_mode = RoundMode::nearest,
                            .out_of_range = OutOfRange::error,
                            .rounding = Rounding::nearest_even,
                            .invalid = Invalid::error,
                            .float_string = FloatString::g8,
                            .scale = -0.5};
  const Policy policy = resolved(options, DType::float32, DType::int8);
  EXPECT_FALSE(policy.saturate);
  EXPECT_TRUE(policy.invalid_is_error);
  EXPECT_EQ(policy.range, RangeRule::error);
  EXPECT_EQ(policy.rounding, Rounding::nearest_even);
  EXPECT_EQ(policy.e8m0_rounding, RoundMode::nearest);
  EXPECT_EQ(policy.float_string, FloatString::g8);
  EXPECT_EQ(policy.scale, -0.5);
}

}  // namespace
}  // namespace tensorcast::codec
