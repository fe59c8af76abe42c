// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/damage.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace tensorcast {
namespace {

TEST(Damage, IsPossibleWhereTheTargetHasNoNumberNear) {
  EXPECT_TRUE(may_damage(DType::float32, DType::float16));
  EXPECT_TRUE(may_damage(DType::float32, DType::int8));
  EXPECT_TRUE(may_damage(DType::float16, DType::float8_e4m3fn));
  EXPECT_FALSE(may_damage(DType::float16, DType::float32));
  EXPECT_FALSE(may_damage(DType::int8, DType::int32));
  EXPECT_FALSE(may_damage(DType::float32, DType::string));
  EXPECT_TRUE(may_damage(DType::int8, DType::int32, {.scale = 1e12}));
}

TEST(Damage, IsTheGravest) {
  CastReport report{.count = 24, .underflowed_to_zero = 22};
  const std::optional<Damage> zeroed = find_damage(report, {24, 2}, DType::float32, DType::float16);
  ASSERT_TRUE(zeroed.has_value());
  EXPECT_EQ(zeroed->what, "22 of 24 nonzero elements became zero");
  EXPECT_TRUE(zeroed->destroys);
  EXPECT_FALSE(zeroed->remedy.empty());
  report.overflowed = 1;
  const std::optional<Damage> overflowed = find_damage(report, {24, 24}, DType::float32, DType::float16);
  ASSERT_TRUE(overflowed.has_value());
  EXPECT_EQ(overflowed->what, "1 of 24 elements are out of range");
  EXPECT_FALSE(overflowed->destroys);
  EXPECT_FALSE(find_damage({.count = 24}, {24, 24}, DType::float32, DType::float16).has_value());
  EXPECT_FALSE(find_damage(report, {24, 2}, DType::float32, DType::boolean).has_value());
}

TEST(Damage, OfNumbersThatAreNoTypesIsFoundByCounts) {
  for (const DType odd : {DType::undefined, static_cast<DType>(99), static_cast<DType>(-3)}) {
    EXPECT_FALSE(may_damage(odd, odd));
    EXPECT_FALSE(find_damage({}, {}, odd, odd).has_value());
    EXPECT_TRUE(find_damage({.count = 3}, {3, 0}, odd, odd).has_value());
  }
}

}  // namespace
}  // namespace tensorcast
