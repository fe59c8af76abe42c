// SPDX-License-Identifier: Apache-2.0
#include "codec/decimal.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace tensorcast::codec {
namespace {

Decimal of(std::string_view literal) { return Decimal::parse(literal, 5000).value(); }

TEST(Decimal, WritesBinaryFractionsOut) {
  EXPECT_EQ(Decimal::FromDouble(0.1).to_string(), "0.1000000000000000055511151231257827021181583404541015625");
  EXPECT_EQ(Decimal::FromDouble(-0.5).to_string(), "-0.5");
  EXPECT_EQ(Decimal::FromDouble(0.0).to_string(), "0");
  EXPECT_EQ(Decimal::FromDouble(-0.0).to_string(), "-0");
  EXPECT_EQ(Decimal::FromDouble(1e9).to_string(), "1000000000");
  EXPECT_EQ(Decimal::FromDouble(1e22).to_string(), "10000000000000000000000");
  EXPECT_EQ(Decimal::FromBinary(false, 1, 128).to_string(), "340282366920938463463374607431768211456");
  EXPECT_EQ(Decimal::FromBinary(true, ~static_cast<unsigned __int128>(0), 0).to_string(),
            "-340282366920938463463374607431768211455");
}

TEST(Decimal, WritesEveryDigitOfTheSmallestFloat64) {
  const std::string text = Decimal::FromDouble(std::numeric_limits<double>::denorm_min()).to_string();
  EXPECT_EQ(text.size(), 2U + 1074U);
  EXPECT_TRUE(text.starts_with("0." + std::string(323, '0') + "49406564584124654417656879286822137236505980"));
  EXPECT_TRUE(text.ends_with("533447265625"));
}

TEST(Decimal, ReadsAnyLiteral) {
  EXPECT_EQ(of("0.100").to_string(), "0.1");
  EXPECT_EQ(of("-12.5e3").to_string(), "-12500");
  EXPECT_EQ(of(".5e-10").to_string(), "0.00000000005");
  EXPECT_EQ(of("5.").to_string(), "5");
  EXPECT_EQ(of("+1e18").to_string(), "1000000000000000000");
  EXPECT_EQ(of("0e999999999999999999999").to_string(), "0");
  EXPECT_EQ(of("123456789012345678901234567890.5").to_string(), "123456789012345678901234567890.5");
  EXPECT_FALSE(Decimal::parse("1e5000", 5000));
  EXPECT_TRUE(Decimal::parse("1e4999", 5000));
  EXPECT_FALSE(Decimal::parse("1e-99999999999999999999", 5000));
}

TEST(Decimal, SubtractsExactly) {
  EXPECT_EQ((of("1") - of("0.000000000000000000001")).to_string(), "0.999999999999999999999");
  EXPECT_EQ((of("0.000000000000000000001") - of("1")).to_string(), "-0.999999999999999999999");
  EXPECT_EQ((of("-1") - of("1e20")).to_string(), "-100000000000000000001");
  EXPECT_EQ((of("999999999") - of("-1")).to_string(), "1000000000");
  EXPECT_EQ((of("0") - of("2.5")).to_string(), "-2.5");
  EXPECT_EQ((of("2.5") - of("2.5")).to_string(), "0");
  EXPECT_EQ((of("-0") - of("0")).to_string(), "0");
  EXPECT_EQ((of("1e30") - of("999999999999999999999999999999")).to_string(), "1");
}

TEST(Decimal, MultipliesExactly) {
  EXPECT_EQ((of("-123456789.123456789") * of("987654321.987654321")).to_string(),
            "-121932631356500531.347203169112635269");
  EXPECT_EQ((of("1e-5") * of("1e5")).to_string(), "1");
  EXPECT_EQ((of("0") * of("5")).to_string(), "0");
}

TEST(Decimal, ComparesMagnitudes) {
  EXPECT_DOUBLE_EQ(of("-1e-300").magnitude_ratio(of("3")), 1e-300 / 3);
  EXPECT_DOUBLE_EQ(of("0.0015625").magnitude_ratio(of("0.1")), 0.015625);
  EXPECT_EQ(of("0").magnitude_ratio(of("0")), 0.0);
  EXPECT_TRUE(std::isinf(of("1").magnitude_ratio(of("0"))));
}

}  // namespace
}  // namespace tensorcast::codec
