// SPDX-License-Identifier: Apache-2.0
#include "codec/integer_codec.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "codec/codec_testing.hpp"
#include "codec/reference_cast.hpp"

namespace tensorcast::codec {
namespace {

constexpr Policy saturating{.range = RangeRule::saturate};
constexpr Policy refusing{.range = RangeRule::error};

std::int64_t integer(double value, DType to, const Policy& policy = {}) {
  const int unused = is_signed(to) ? 64 - bit_width(to) : 0;
  return static_cast<std::int64_t>(from_double(value, to, policy).bits << unused) >> unused;
}

TEST(IntegerCodec, EveryCodeOfTheNarrowTypesSurvivesFloat64) {
  for (const DType dtype :
       {DType::int16, DType::int8, DType::int4, DType::int2, DType::uint16, DType::uint8, DType::uint4, DType::uint2}) {
    for (std::uint64_t code = 0; code < std::uint64_t{1} << bit_width(dtype); ++code) {
      const Encoded widened = cast_code(dtype, code, DType::float64, {});
      EXPECT_EQ(widened.events, 0);
      EXPECT_EQ(cast_code(DType::float64, widened.bits, dtype, refusing).bits, code) << name(dtype);
    }
  }
}

TEST(IntegerCodec, TruncatesTowardZero) {
  EXPECT_EQ(integer(2.7, DType::int4), 2);
  EXPECT_EQ(integer(-2.7, DType::int4), -2);
  EXPECT_EQ(integer(-0.9, DType::uint8, refusing), 0);
  EXPECT_EQ(from_double(-0.9, DType::uint8, refusing).events, event_underflowed | event_inexact);
  EXPECT_EQ(integer(255.99, DType::uint8, refusing), 255);
  EXPECT_EQ(integer(-128.5, DType::int8, refusing), -128);
  EXPECT_EQ(from_double(256.0, DType::uint8, refusing).events, event_error);
  EXPECT_EQ(from_double(-129.0, DType::int8, refusing).events, event_error);
  EXPECT_EQ(from_double(1e-300, DType::int8).events, event_underflowed | event_inexact);
}

TEST(IntegerCodec, NearestEvenRoundsTiesToEven) {
  const Policy nearest{.rounding = Rounding::nearest_even};
  EXPECT_EQ(integer(0.5, DType::int8, nearest), 0);
  EXPECT_EQ(integer(1.5, DType::int8, nearest), 2);
  EXPECT_EQ(integer(2.5, DType::int8, nearest), 2);
  EXPECT_EQ(integer(-2.5, DType::int8, nearest), -2);
  EXPECT_EQ(integer(std::nextafter(2.5, 3.0), DType::int8, nearest), 3);
  EXPECT_EQ(integer(1e-300, DType::int8, nearest), 0);
  const Policy strict_nearest{.range = RangeRule::error, .rounding = Rounding::nearest_even};
  EXPECT_EQ(integer(255.4, DType::uint8, strict_nearest), 255);
  EXPECT_EQ(from_double(255.5, DType::uint8, strict_nearest).events, event_error);
  EXPECT_EQ(integer(-0.5, DType::uint8, strict_nearest), 0);
  EXPECT_EQ(from_double(-0.51, DType::uint8, strict_nearest).events, event_error);
}

TEST(IntegerCodec, WrapKeepsTheLowBits) {
  EXPECT_EQ(integer(300.0, DType::uint8), 44);
  EXPECT_EQ(integer(-1.0, DType::uint8), 255);
  EXPECT_EQ(integer(-9.0, DType::int4), 7);
  EXPECT_EQ(integer(8.0, DType::int4), -8);
  EXPECT_EQ(integer(15.0, DType::int4), -1);
  EXPECT_EQ(integer(-3.0, DType::int2), 1);
  EXPECT_EQ(integer(2.0, DType::int2), -2);
  EXPECT_EQ(integer(3e9, DType::int32), 3000000000 - 4294967296);
  EXPECT_EQ(integer(0x1p31, DType::int4), 0);
  EXPECT_EQ(integer(0x1p63, DType::int64), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(integer(-0x1p63, DType::int64, refusing), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(from_double(0x1p64 + 4096.0, DType::uint64).bits, 4096u);
  EXPECT_EQ(from_double(1e300, DType::uint64).bits, 0u);
  EXPECT_EQ(from_double(300.0, DType::uint8).events, event_wrapped | event_inexact);
  for (const double special : {nan, -nan, infinity, -infinity}) EXPECT_EQ(integer(special, DType::int32), 0);
  EXPECT_EQ(from_double(nan, DType::int32).events, event_nan_lost);
  EXPECT_EQ(from_double(infinity, DType::int32).events, event_wrapped);
}

TEST(IntegerCodec, SaturateClampsAndMakesNanZero) {
  EXPECT_EQ(integer(300.0, DType::uint8, saturating), 255);
  EXPECT_EQ(integer(-1.0, DType::uint8, saturating), 0);
  EXPECT_EQ(integer(-9.0, DType::int4, saturating), -8);
  EXPECT_EQ(integer(infinity, DType::int4, saturating), 7);
  EXPECT_EQ(integer(-infinity, DType::int64, saturating), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(from_double(1e300, DType::uint64, saturating).bits, ~std::uint64_t{0});
  EXPECT_EQ(integer(nan, DType::int8, saturating), 0);
  EXPECT_EQ(from_double(-1.0, DType::uint8, saturating).events, event_saturated | event_underflowed | event_inexact);
  EXPECT_EQ(from_double(infinity, DType::uint8, saturating).events, event_saturated);
}

TEST(IntegerCodec, InvalidIsRefusedOnDemand) {
  const Policy invalid{.invalid_is_error = true};
  for (const double special : {nan, infinity, -infinity}) {
    EXPECT_EQ(from_double(special, DType::int8, invalid).events, event_error);
    EXPECT_EQ(from_double(special, DType::int8, refusing).events, event_error);
  }
  EXPECT_EQ(integer(300.0, DType::uint8, invalid), 44);
}

TEST(IntegerCodec, IntegersOutOfRangeWrapSaturateOrFail) {
  struct Case {
    DType from;
    std::uint64_t code;
    DType to;
    std::uint64_t wrapped, saturated;
  };
  for (const Case& c : {Case{DType::int32, 300, DType::uint8, 44, 255},
                        {DType::int8, 0xFF, DType::uint64, ~std::uint64_t{0}, 0},
                        {DType::int64, 0xFFFFFFFFFFFFFFFB, DType::uint8, 251, 0},
                        {DType::uint64, ~std::uint64_t{0}, DType::int64, ~std::uint64_t{0}, ~std::uint64_t{0} >> 1},
                        {DType::int16, 0x8000, DType::int8, 0, 0x80}}) {
    EXPECT_EQ(cast_code(c.from, c.code, c.to, {}).bits, c.wrapped);
    EXPECT_EQ(cast_code(c.from, c.code, c.to, {}).events & ~event_underflowed, event_wrapped | event_inexact);
    EXPECT_EQ(cast_code(c.from, c.code, c.to, saturating).bits, c.saturated);
    EXPECT_EQ(cast_code(c.from, c.code, c.to, saturating).events & ~event_underflowed, event_saturated | event_inexact);
    EXPECT_EQ(cast_code(c.from, c.code, c.to, refusing).events, event_error);
  }
  for (const Policy& policy : {Policy{}, saturating, refusing}) {
    EXPECT_EQ(cast_code(DType::int4, 0x8, DType::int16, policy).bits, 0xFFF8u);
    EXPECT_EQ(cast_code(DType::boolean, 0x80, DType::int2, policy).bits, 1u);
    EXPECT_EQ(cast_code(DType::int32, 200, DType::uint8, policy).events, 0);
    EXPECT_EQ(cast_code(DType::int32, 300, DType::boolean, policy).bits, 1u);
  }
}

TEST(IntegerCodec, AScaleMakesIntegersRealNumbers) {
  Policy half = refusing;
  half.scale = 0.5;
  EXPECT_EQ(cast_code(DType::int32, 301, DType::uint8, half).bits, 150u);
  EXPECT_EQ(cast_code(DType::int32, 600, DType::uint8, half).events, event_error);
  Policy same = saturating;
  same.scale = 3.0;
  EXPECT_EQ(cast_code(DType::int8, 100, DType::int8, same).bits, 127u);
}

TEST(IntegerCodec, BoolIsFalseForZerosAlone) {
  for (const double value : {1.0, 0.1, -5.0, 1e-300, infinity, nan}) EXPECT_EQ(integer(value, DType::boolean), 1);
  EXPECT_EQ(integer(0.0, DType::boolean), 0);
  EXPECT_EQ(integer(-0.0, DType::boolean), 0);
  EXPECT_EQ(cast_code(DType::float8_e4m3fnuz, 0x80, DType::boolean, {}).bits, 1u);
  for (const std::uint64_t code : {0x00, 0x7F, 0xFF}) {
    EXPECT_EQ(cast_code(DType::float8_e8m0fnu, code, DType::boolean, {}).bits, 1u);
  }
  EXPECT_EQ(cast_code(DType::int4, 0x8, DType::boolean, {}).bits, 1u);
  EXPECT_EQ(cast_code(DType::boolean, 0x40, DType::float32, {}).bits, 0x3F800000u);
  EXPECT_EQ(from_double(nan, DType::boolean).events, event_nan_lost);
  EXPECT_EQ(from_double(0.5, DType::boolean).events, event_inexact);
  EXPECT_EQ(from_double(1.0, DType::boolean).events, 0);
}

}  // namespace
}  // namespace tensorcast::codec
