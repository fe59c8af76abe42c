// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/promote.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace tensorcast {
namespace {

constexpr PromoteOptions safe{};
constexpr PromoteOptions unsafe{.promote_unsafe = true};

std::string promoted(const char* a, const char* b, const PromoteOptions& options, bool a_scalar = false,
                     bool b_scalar = false) {
  const Result<DType> common = promote_types({*parse_dtype(a), a_scalar}, {*parse_dtype(b), b_scalar}, options);
  return common.ok() ? std::string(name(*common)) : "error";
}

struct Pair {
  const char *a, *b, *unsafe, *safe;
};

TEST(PromoteTypes, FollowsTheTableOfTheText) {
  const Pair pairs[] = {
      {"int8", "uint8", "int16", "error"},
      {"i16", "u32", "int64", "error"},
      {"i32", "uint8", "int32", "int32"},
      {"i64", "u64", "float32", "error"},
      {"uint8", "u64", "uint64", "uint64"},
      {"i32", "f32", "float32", "error"},
      {"i64", "f16", "float16", "error"},
      {"i16", "f32", "float32", "float32"},
      {"int8", "f16", "float16", "float16"},
      {"i16", "f16", "float16", "error"},
      {"i64", "f64", "float64", "error"},
      {"i32", "f64", "float64", "float64"},
      {"f16", "bf16", "float32", "error"},
      {"e4m3fn", "f8e5m2", "float16", "error"},
      {"e4m3fn", "f16", "float16", "float16"},
      {"bool", "int8", "int8", "int8"},
      {"bool", "f8e5m2", "float8_e5m2", "float8_e5m2"},
      {"uint4", "f8e5m2", "float8_e5m2", "float8_e5m2"},
      {"uint8", "f8e5m2", "float8_e5m2", "error"},
      {"uint1", "int4", "int4", "int4"},
      {"uint1", "uint4", "uint4", "uint4"},
      {"uint1", "e4m3fn", "float8_e4m3fn", "float8_e4m3fn"},
      {"uint4", "int4", "int8", "error"},
      {"uint4", "int8", "int8", "int8"},
      {"u64", "int8", "float32", "error"},
      {"u32", "i64", "int64", "int64"},
      {"f64", "u64", "float64", "error"},
      {"uint1", "bool", "uint1", "uint1"},
  };
  for (const Pair& pair : pairs) {
    EXPECT_EQ(promoted(pair.a, pair.b, unsafe), pair.unsafe) << pair.a << " " << pair.b;
    EXPECT_EQ(promoted(pair.b, pair.a, unsafe), pair.unsafe) << pair.b << " " << pair.a;
    EXPECT_EQ(promoted(pair.a, pair.b, safe), pair.safe) << pair.a << " " << pair.b;
    EXPECT_EQ(promoted(pair.b, pair.a, safe), pair.safe) << pair.b << " " << pair.a;
  }
}

// The pairs where OpenVINO's code allows what its text refuses, (scalar, tensor).
TEST(PromoteTypes, ScalarModeRefusesLowerRangesAsTheTextDemands) {
  const PromoteOptions scalar_safe{.pytorch_scalar_promotion = true};
  const PromoteOptions scalar_unsafe{.promote_unsafe = true, .pytorch_scalar_promotion = true};
  const std::pair<const char*, const char*> pairs[] = {
      {"uint4", "int4"}, {"uint8", "int4"}, {"uint8", "int8"}, {"u16", "int8"}, {"u16", "i16"},      {"u32", "i16"},
      {"u32", "i32"},    {"u64", "i32"},    {"u64", "i64"},    {"bf16", "f16"}, {"f8e5m2", "e4m3fn"}};
  for (const auto& [scalar, tensor] : pairs) {
    EXPECT_EQ(promoted(scalar, tensor, scalar_safe, true, false), "error") << scalar << " " << tensor;
    EXPECT_EQ(promoted(tensor, scalar, scalar_safe, false, true), "error") << scalar << " " << tensor;
    EXPECT_EQ(promoted(scalar, tensor, scalar_unsafe, true, false), name(*parse_dtype(tensor)));
  }
}

TEST(PromoteTypes, ScalarMode) {
  const PromoteOptions scalar_safe{.pytorch_scalar_promotion = true};
  const PromoteOptions scalar_unsafe{.promote_unsafe = true, .pytorch_scalar_promotion = true};
  EXPECT_EQ(promoted("i64", "uint8", scalar_unsafe, true, false), "uint8");
  EXPECT_EQ(promoted("i64", "uint8", scalar_safe, true, false), "error");
  EXPECT_EQ(promoted("f64", "f16", scalar_unsafe, true, false), "float16");
  EXPECT_EQ(promoted("f64", "f16", scalar_safe, true, false), "error");
  EXPECT_EQ(promoted("f16", "bf16", scalar_safe, true, false), "bfloat16");
  EXPECT_EQ(promoted("e4m3fn", "f8e5m2", scalar_safe, true, false), "float8_e5m2");
  EXPECT_EQ(promoted("f32", "bf16", scalar_safe, true, false), "error");
  EXPECT_EQ(promoted("int8", "uint8", scalar_safe, true, false), "error");
  EXPECT_EQ(promoted("uint8", "i16", scalar_safe, true, false), "int16");
  EXPECT_EQ(promoted("f16", "int8", scalar_safe, true, false), "float16");   // mixed families: ranks do not matter
  EXPECT_EQ(promoted("int8", "uint8", scalar_unsafe, true, true), "int16");  // two scalars: the ordinary rules
  EXPECT_EQ(promoted("int8", "uint8", scalar_unsafe, false, false), "int16");
}

TEST(PromoteTypes, TargetOfU64) {
  PromoteOptions options{.promote_unsafe = true, .u64_integer_promotion_target = DType::int64};
  EXPECT_EQ(promoted("u64", "int4", options), "int64");
  options.u64_integer_promotion_target = DType::string;
  EXPECT_EQ(promote_types({DType::int8}, {DType::int8}, options).error().code, ErrorCode::invalid_argument);
}

TEST(PromoteTypes, RefusesTypesOutsideItsList) {
  for (const char* other :
       {"string", "uint2", "int2", "float4_e2m1fn", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"}) {
    EXPECT_EQ(promoted(other, "float32", unsafe), "error") << other;
    EXPECT_EQ(promoted(other, other, unsafe), "error") << other;
  }
  EXPECT_EQ(promote_types({static_cast<DType>(14)}, {DType::int8}).error().code, ErrorCode::invalid_argument);
}

std::string reason(PromoteOperand a, PromoteOperand b, const PromoteOptions& options = {}) {
  const Result<DType> common = promote_types(a, b, options);
  return common.ok() ? "" : common.error().describe();
}

TEST(PromoteTypes, SaysWhyInWords) {
  EXPECT_EQ(reason({DType::int64}, {DType::float16}),
            "float16 cannot hold int64 safely: needs at least 128 bits; pass promote_unsafe to allow it");
  EXPECT_EQ(reason({DType::uint8}, {DType::int8}),
            "int8 cannot hold uint8 safely: needs int16; pass promote_unsafe to allow it");
  EXPECT_EQ(reason({DType::int8}, {DType::uint64}),
            "no integer type holds both int8 and uint64: u64_integer_promotion_target makes them float32; "
            "pass promote_unsafe to allow it");
  EXPECT_EQ(reason({DType::bfloat16}, {DType::float16}),
            "neither bfloat16 nor float16 holds the other: both fit float32, which has more bits; "
            "pass promote_unsafe to allow it");
  EXPECT_EQ(reason({DType::int64, true}, {DType::uint8}, {.pytorch_scalar_promotion = true}),
            "the tensor's type uint8 cannot hold the scalar's type int64 safely: its range is smaller; "
            "pass promote_unsafe to allow it");
  EXPECT_EQ(reason({DType::string}, {DType::int8}),
            "string is not a type of ConvertPromoteTypes-14; it has float64, float32, float16, bfloat16, "
            "float8_e4m3fn, float8_e5m2, int64, int32, int16, int8, int4, uint64, uint32, uint16, uint8, uint4, bool, "
            "uint1");
  EXPECT_EQ(reason({static_cast<DType>(14)}, {DType::int8}), "dtype number 14 does not exist");
  EXPECT_EQ(reason({DType::int8}, {DType::int8}, {.u64_integer_promotion_target = DType::string}),
            "u64_integer_promotion_target cannot be string; any number type can");
}

// Every refusal of every pair and mode has words of its own and says what to do.
TEST(PromoteTypes, EveryRefusalSaysWhatToDo) {
  int refusals = 0;
  for (const PromoteRules rules : all_promote_rules()) {
    for (const DType a : promotable_dtypes(rules)) {
      for (const DType b : promotable_dtypes(rules)) {
        for (const bool scalar : {false, true}) {
          for (const bool promote_unsafe : {false, true}) {
            const PromoteOptions options{
                .promote_unsafe = promote_unsafe, .pytorch_scalar_promotion = true, .rules = rules};
            const Result<DType> common = promote_types({a, scalar}, {b}, options);
            const Result<DType> mirrored = promote_types({b}, {a, scalar}, options);
            ASSERT_EQ(common.ok(), mirrored.ok()) << name(a) << " " << name(b);
            if (common.ok()) {
              EXPECT_EQ(*common, *mirrored) << name(a) << " " << name(b);
              continue;
            }
            ++refusals;
            EXPECT_NE(common.error().message.find(name(a)), std::string::npos) << common.error().message;
            EXPECT_NE(common.error().message.find(name(b)), std::string::npos) << common.error().message;
            EXPECT_FALSE(common.error().hint.empty()) << common.error().message;
            if (common.error().hint.find("promote_unsafe") != std::string::npos) {
              PromoteOptions allowed = options;
              allowed.promote_unsafe = true;
              EXPECT_TRUE(promote_types({a, scalar}, {b}, allowed).ok()) << common.error().describe();
            }
          }
        }
      }
    }
  }
  EXPECT_GT(refusals, 1000);
}

TEST(PromoteTypes, RulesHaveNames) {
  for (const PromoteRules rules : all_promote_rules()) {
    EXPECT_EQ(*parse_promote_rules(name(rules)), rules);
    for (const DType dtype : promotable_dtypes(rules)) {
      EXPECT_EQ(*promote_types({dtype}, {dtype}, {.rules = rules}), dtype);
    }
  }
  EXPECT_EQ(parse_promote_rules("mxnet").error().describe(),
            "there are no promotion rules \"mxnet\"; known are openvino, numpy, torch, jax, jax_strict, tensorflow");
  const auto none = static_cast<PromoteRules>(77);
  EXPECT_EQ(name(none), "");
  EXPECT_TRUE(promotable_dtypes(none).empty());
  EXPECT_EQ(promote_types({DType::int8}, {DType::int8}, {.rules = none}).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace tensorcast
