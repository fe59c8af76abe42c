// SPDX-License-Identifier: Apache-2.0
#include "promote/peer_rules.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcast {
namespace {

std::string promoted_by(PromoteRules rules, const char* a, const char* b, bool promote_unsafe = false) {
  const Result<DType> common =
      promote_types({*parse_dtype(a)}, {*parse_dtype(b)}, {.promote_unsafe = promote_unsafe, .rules = rules});
  return common.ok() ? std::string(name(*common)) : "none";
}

struct Row {
  const char *a, *b, *numpy, *torch, *jax, *tensorflow, *tensorflow_unsafe;
};

// The pairs that tell the systems apart; tests/golden/promotion has all.
TEST(PeerRules, NotablePairs) {
  const Row rows[] = {
      {"int8", "uint8", "int16", "int16", "int16", "none", "int16"},
      {"i16", "u32", "int64", "none", "int64", "none", "int64"},
      {"i64", "u64", "float64", "none", "float64", "none", "float64"},
      {"uint8", "u64", "uint64", "none", "uint64", "uint64", "uint64"},
      {"i32", "f32", "float64", "float32", "float32", "none", "float32"},
      {"i64", "f16", "float64", "float16", "float16", "none", "float16"},
      {"i16", "f16", "float32", "float16", "float16", "none", "float16"},
      {"f16", "bf16", "none", "float32", "float32", "none", "float32"},
      {"bool", "int8", "int8", "int8", "int8", "int8", "int8"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(promoted_by(PromoteRules::numpy, row.a, row.b), row.numpy) << row.a << " " << row.b;
    EXPECT_EQ(promoted_by(PromoteRules::torch, row.a, row.b), row.torch) << row.a << " " << row.b;
    EXPECT_EQ(promoted_by(PromoteRules::jax, row.a, row.b), row.jax) << row.a << " " << row.b;
    EXPECT_EQ(promoted_by(PromoteRules::jax_strict, row.a, row.b), "none") << row.a << " " << row.b;
    EXPECT_EQ(promoted_by(PromoteRules::tensorflow, row.a, row.b), row.tensorflow) << row.a << " " << row.b;
    EXPECT_EQ(promoted_by(PromoteRules::tensorflow, row.a, row.b, true), row.tensorflow_unsafe)
        << row.a << " " << row.b;
  }
}

TEST(PeerRules, ScalarsOfPyTorch) {
  const auto with_scalar = [](DType scalar, DType tensor) {
    const Result<DType> common = promote_types({scalar, true}, {tensor}, {.rules = PromoteRules::torch});
    return common.ok() ? *common : DType::undefined;
  };
  EXPECT_EQ(with_scalar(DType::int64, DType::uint8), DType::uint8);
  EXPECT_EQ(with_scalar(DType::float64, DType::float16), DType::float16);
  EXPECT_EQ(with_scalar(DType::float64, DType::int8), DType::float64);
  EXPECT_EQ(with_scalar(DType::int64, DType::boolean), DType::int64);
  EXPECT_EQ(with_scalar(DType::float32, DType::float8_e5m2), DType::float8_e5m2);
  EXPECT_EQ(with_scalar(DType::float8_e5m2, DType::float32), DType::float32);
  EXPECT_EQ(with_scalar(DType::float8_e5m2, DType::int8), DType::undefined);
  const Result<DType> scalars =
      promote_types({DType::int64, true}, {DType::uint8, true}, {.rules = PromoteRules::torch});
  EXPECT_EQ(*scalars, DType::int64);
}

TEST(PeerRules, RefusalsNameTheSystem) {
  const auto reason = [](DType a, DType b, PromoteRules rules) {
    return promote_types({a}, {b}, {.rules = rules}).error().describe();
  };
  EXPECT_EQ(reason(DType::float8_e5m2, DType::float32, PromoteRules::torch),
            "PyTorch has no common type for float8_e5m2 and float32; cast one of them first");
  EXPECT_EQ(
      reason(DType::int32, DType::float32, PromoteRules::tensorflow),
      "TensorFlow's mode \"safe\" does not promote int32 and float32 to float32; pass promote_unsafe to allow it");
  EXPECT_EQ(reason(DType::int32, DType::float32, PromoteRules::jax_strict),
            "JAX's strict mode has no common type for int32 and float32; cast one of them first");
  EXPECT_EQ(reason(DType::int4, DType::float32, PromoteRules::tensorflow).substr(0, 38),
            "int4 is not a type of TensorFlow; it h");
}

// A join stands above both: joined with either operand again, it stays.
TEST(PeerRules, JaxIsALattice) {
  const auto join = [](DType a, DType b) {
    if (a == DType::undefined || b == DType::undefined) return DType::undefined;
    return common_type(find_peer_rules(PromoteRules::jax)->lattice, a, b);
  };
  const std::span<const DType> types = promotable_dtypes(PromoteRules::jax);
  for (const DType a : types) {
    for (const DType b : types) {
      const DType ab = join(a, b);
      if (ab == DType::undefined) continue;
      EXPECT_EQ(join(a, ab), ab) << name(a) << " " << name(b);
    }
  }
}

}  // namespace
}  // namespace tensorcast
