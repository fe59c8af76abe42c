// SPDX-License-Identifier: Apache-2.0
#include "codec/reference_cast.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "codec/packing.hpp"

namespace tensorcast::codec {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes cast_bytes(const Bytes& src, DType from, DType to, std::size_t count, const Policy& policy = {}) {
  Bytes dst(storage_bytes(to, count), 0xEE);
  const Result<void> done = reference_cast(reinterpret_cast<const std::byte*>(src.data()), from,
                                           reinterpret_cast<std::byte*>(dst.data()), to, count, policy);
  EXPECT_TRUE(done.ok());
  return dst;
}

TEST(Packing, LowBitsFirst) {
  const std::byte data[] = {std::byte{0xE4}, std::byte{0x1B}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(load_code(DType::uint2, data, i), i);
    EXPECT_EQ(load_code(DType::int2, data, i + 4), 3 - i);
  }
  EXPECT_EQ(load_code(DType::uint4, data, 0), 0x4u);
  EXPECT_EQ(load_code(DType::float4_e2m1fn, data, 1), 0xEu);
  EXPECT_EQ(load_code(DType::int4, data, 2), 0xBu);
  EXPECT_EQ(load_code(DType::uint16, data, 0), 0x1BE4u);
}

TEST(Packing, SixBitsAreFourElementsInThreeBytes) {
  // 0x01, 0x3E, 0x15, 0x20: x0 | (x1 & 3) << 6, x1 >> 2 | (x2 & 15) << 4, x2 >> 4 | x3 << 2
  const std::byte expected[] = {std::byte{0x81}, std::byte{0x5F}, std::byte{0x81}};
  std::byte data[3] = {};
  const std::uint64_t codes[] = {0x01, 0x3E, 0x15, 0x20};
  for (std::size_t i = 0; i < 4; ++i) store_code(DType::float6_e2m3fn, data, i, codes[i]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(data[i], expected[i]) << i;
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(load_code(DType::float6_e3m2fn, data, i), codes[i]) << i;
}

TEST(Packing, StoreLeavesNeighboursAlone) {
  std::byte data[] = {std::byte{0xFF}, std::byte{0x00}};
  store_code(DType::uint2, data, 2, 0x1);
  EXPECT_EQ(data[0], std::byte{0xDF});
  store_code(DType::uint4, data, 3, 0xA);
  EXPECT_EQ(data[1], std::byte{0xA0});
  store_code(DType::int4, data, 0, 0xFFFF'FFF3);  // bits above the code are ignored
  EXPECT_EQ(data[0], std::byte{0xD3});
}

TEST(Packing, EveryTypeGivesBackWhatWasStored) {
  std::mt19937_64 random(7);
  for (const DType dtype : all_dtypes()) {
    if (dtype == DType::string) continue;
    std::vector<std::byte> data(storage_bytes(dtype, 11) + 1);
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bit_width(dtype));
    std::array<std::uint64_t, 11> codes{};
    for (std::size_t i = 0; i < codes.size(); ++i) {
      codes[i] = random() & mask;
      store_code(dtype, data.data() + 1, i, codes[i]);  // an odd address
    }
    for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(load_code(dtype, data.data() + 1, i), codes[i]);
  }
}

TEST(Packing, ClearTailKeepsTheElements) {
  for (const DType dtype : {DType::uint4, DType::uint2, DType::float6_e2m3fn}) {
    for (std::size_t count = 1; count < 9; ++count) {
      std::array<std::byte, 8> data;
      data.fill(std::byte{0xFF});
      clear_tail(dtype, data.data(), count);
      const std::uint64_t ones = load_code(dtype, data.data(), 0);
      const std::size_t stored = storage_bytes(dtype, count) * 8 / static_cast<std::size_t>(bit_width(dtype));
      for (std::size_t i = 0; i < stored; ++i) EXPECT_EQ(load_code(dtype, data.data(), i), i < count ? ones : 0u);
      EXPECT_EQ(data[storage_bytes(dtype, count)], std::byte{0xFF});
    }
  }
}

TEST(ReferenceCast, SameTypeIsABitCopy) {
  EXPECT_EQ(cast_bytes({0x00, 0x05, 0xFF}, DType::boolean, DType::boolean, 3), (Bytes{0x00, 0x05, 0xFF}));
  EXPECT_EQ(cast_bytes({0x7C, 0x7D, 0xFF}, DType::float8_e5m2, DType::float8_e5m2, 3), (Bytes{0x7C, 0x7D, 0xFF}));
  EXPECT_EQ(cast_bytes({0x01, 0x00, 0x80, 0x7F}, DType::float32, DType::float32, 1), (Bytes{0x01, 0x00, 0x80, 0x7F}));
}

TEST(ReferenceCast, AScaleMakesTheSameTypeAConversion) {
  EXPECT_EQ(cast_bytes({0x7C}, DType::float8_e5m2, DType::float8_e5m2, 1, {.scale = 2.0}), (Bytes{0x7B}));
  EXPECT_EQ(cast_bytes({0x05}, DType::boolean, DType::boolean, 1, {.scale = 2.0}), (Bytes{0x01}));
  EXPECT_EQ(cast_bytes({0x05}, DType::boolean, DType::boolean, 1, {.scale = 0.0}), (Bytes{0x00}));
}

TEST(ReferenceCast, OddTailsAreZeroAndIgnored) {
  EXPECT_EQ(cast_bytes({0x21, 0xF3}, DType::uint4, DType::uint4, 3), (Bytes{0x21, 0x03}));
  EXPECT_EQ(cast_bytes({0x21, 0xF3}, DType::uint4, DType::uint8, 3), (Bytes{1, 2, 3}));
  EXPECT_EQ(cast_bytes({0xFF, 0xFF}, DType::int2, DType::int2, 5), (Bytes{0xFF, 0x03}));
  EXPECT_EQ(cast_bytes({0x80, 0x81, 0x87}, DType::uint8, DType::float4_e2m1fn, 3), (Bytes{0x77, 0x07}));
  EXPECT_EQ(cast_bytes({0xFF, 0xFF}, DType::float6_e2m3fn, DType::float6_e2m3fn, 2), (Bytes{0xFF, 0x0F}));
  EXPECT_EQ(cast_bytes({}, DType::float32, DType::int4, 0), Bytes{});
}

TEST(ReferenceCast, InPlaceEqualsOutOfPlace) {
  std::mt19937 random(3);
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      if (from == DType::string || to == DType::string || bit_width(to) > bit_width(from)) continue;
      constexpr std::size_t count = 37;
      Bytes src(storage_bytes(from, count));
      for (std::uint8_t& byte : src) byte = static_cast<std::uint8_t>(random());
      const Policy policy{.scale = random() % 2 == 0 ? 1.0 : 0.75};
      const Bytes expected = cast_bytes(src, from, to, count, policy);
      auto* data = reinterpret_cast<std::byte*>(src.data());
      ASSERT_TRUE(reference_cast(data, from, data, to, count, policy).ok());
      src.resize(expected.size());
      EXPECT_EQ(src, expected) << name(from) << " to " << name(to);
    }
  }
}

TEST(ReferenceCast, RefusalNamesElementValueAndTypes) {
  const float values[] = {1.0f, 300.0f, 400.0f};
  std::byte dst[3];
  const Policy strict{.range = RangeRule::error};
  const Result<void> refused =
      reference_cast(reinterpret_cast<const std::byte*>(values), DType::float32, dst, DType::uint8, 3, strict);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_range);
  EXPECT_EQ(refused.error().message, "value 300 does not fit uint8 (from float32)");
  EXPECT_EQ(refused.error().element, 1u);

  const std::int32_t numbers[] = {-7};
  Policy scaled_strict = strict;
  scaled_strict.scale = 0.5;
  EXPECT_EQ(
      reference_cast(reinterpret_cast<const std::byte*>(numbers), DType::int32, dst, DType::uint8, 1, scaled_strict)
          .error()
          .message,
      "value -7 times scale 0.5 does not fit uint8 (from int32)");
}

TEST(ReferenceCast, IsTotal) {
  // Every pair, every kind of code: nothing crashes and nothing sets bits outside the target's width.
  const std::uint64_t patterns[] = {0, 1, 0x7F, 0x80, 0xFF, 0x7C00, 0x7F800001, 0x7FF0000000000000, ~std::uint64_t{0}};
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      for (const std::uint64_t pattern : patterns) {
        if (from == DType::string || to == DType::string) {
          EXPECT_EQ(cast_code(DType::string, pattern, DType::float32, {.scale = 2.0}).bits, 0u);
          continue;
        }
        const std::uint64_t bits = pattern & ~std::uint64_t{0} >> (64 - bit_width(from));
        const std::uint64_t result = cast_code(from, bits, to, {.scale = 3.0}).bits;
        EXPECT_EQ(result & ~(~std::uint64_t{0} >> (64 - bit_width(to))), 0u) << name(from) << " to " << name(to);
      }
    }
  }
}

// The scale.

double scaled_double(double value, double scale) {
  const Policy policy{.scale = scale};
  return std::bit_cast<double>(
      cast_code(DType::float64, std::bit_cast<std::uint64_t>(value), DType::float64, policy).bits);
}

TEST(Scale, ProductsAreRoundedOnce) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> any(-1e10, 1e10);
  for (int i = 0; i < 10000; ++i) {
    const double value = any(random), scale = any(random);
    EXPECT_EQ(scaled_double(value, scale), value * scale);
  }
  // 0.1f * 10 is not 1 in float32, but the exact product rounds to 1.
  const auto tenth = std::bit_cast<std::uint32_t>(0.1f);
  EXPECT_EQ(cast_code(DType::float32, tenth, DType::float32, {.scale = 10.0}).bits, std::bit_cast<std::uint32_t>(1.0f));
  // A 64-bit integer times 53 bits: all 117 bits count.
  EXPECT_EQ(cast_code(DType::uint64, ~std::uint64_t{0}, DType::uint64, {.scale = 0.5}).bits, ~std::uint64_t{0} >> 1);
  EXPECT_EQ(scaled_double(0x1p-1000, 0x1p-74), 0x1p-1074);
  EXPECT_EQ(scaled_double(0x1p-1000, 0x1p-76), 0.0);
}

TEST(Scale, SpecialValues) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(scaled_double(infinity, -2.0), -infinity);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(scaled_double(-infinity, 0.0)), 0x7FF8000000000000u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(scaled_double(-3.0, 0.0)), std::uint64_t{1} << 63);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(scaled_double(0.0, -1.0)), std::uint64_t{1} << 63);
  const Real nan = scaled(Real::NaN(true, 5), -2.0);
  EXPECT_TRUE(nan.is_nan() && nan.negative && nan.nan_payload == 5);
}

TEST(Scale, KeepsWhatLiesBelow128Bits) {
  const Real third = *decode_text("0.33333333333333333333333333333333333333333333333333333");
  EXPECT_TRUE(third.sticky);
  EXPECT_TRUE(scaled(third, 0.5).sticky);
  EXPECT_EQ(scaled(third, 0.5).significand, third.significand);
  EXPECT_EQ(scaled(third, 0.5).exponent, third.exponent - 1);
}

}  // namespace
}  // namespace tensorcast::codec
