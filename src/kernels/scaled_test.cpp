// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "codec/codec_testing.hpp"
#include "codec/reference_cast.hpp"
#include "kernels/byte_table/table_conversion.hpp"
#include "kernels/scaled.hpp"
#include "kernels/scaled_testing.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tensorcast::kernels {
namespace {

constexpr std::size_t tested_elements = 1501;  // more than a buffer, and odd

Bytes source_of(DType from) {
  std::mt19937_64 random(7);
  Bytes bytes(storage_bytes(from, tested_elements));
  for (std::size_t i = 0; i < tested_elements; ++i) {
    std::uint64_t code = random();
    if (family(from) == Family::floating && bit_width(from) >= 32) {
      // Half of them near one, where the targets have their numbers.
      const double value =
          std::ldexp(1.0 + std::ldexp(static_cast<double>(code >> 12), -52), static_cast<int>(code % 61) - 30) *
          (code % 2 == 0 ? 1 : -1);
      const auto narrow = static_cast<float>(value);
      if (i % 2 == 0 && from == DType::float64) std::memcpy(&code, &value, sizeof value);
      if (i % 2 == 0 && from == DType::float32) std::memcpy(&code, &narrow, sizeof narrow);
    }
    // 64-bit integers: a buffer of those that fit float64, then all of them.
    if (family(from) == Family::integer && bit_width(from) == 64 && i < 1024) {
      code = is_signed(from) && code % 2 == 0 ? ~(code >> 12) : code >> 12;
    }
    codec::store_code(from, bytes.data(), i, code);
  }
  codec::store_code(from, bytes.data(), 5, 0);
  return bytes;
}

std::vector<codec::Policy> scaled_policies(double scale) {
  std::vector<codec::Policy> result;
  for (const bool saturate : {true, false}) {
    codec::Policy policy;
    policy.scale = scale;
    policy.saturate = saturate;
    policy.keeps_infinity = saturate;
    policy.rounding = saturate ? Rounding::automatic : Rounding::nearest_even;
    policy.range = saturate ? codec::RangeRule::saturate : codec::RangeRule::wrap;
    policy.e8m0_rounding = saturate ? RoundMode::up : RoundMode::nearest;
    result.push_back(policy);
  }
  return result;
}

class Scaled : public ::testing::TestWithParam<DType> {};

TEST_P(Scaled, EqualsReference) {
  const DType from = GetParam();
  const Bytes src = source_of(from);
  for (const DType to : all_dtypes()) {
    if (to == DType::string) continue;
    for (const double scale :
         {3.0, 0.1, -0x1p-7, static_cast<double>(1.0F / 3.0F), 1.0 / 3.0, 0x1p-55, 1e300, 1e-300, 5e-324, 0.0, 1e18}) {
      for (const codec::Policy& given : scaled_policies(scale)) {
        const codec::Policy policy = codec::without_word(given, to);
        Bytes expected(storage_bytes(to, tested_elements));
        ASSERT_TRUE(codec::reference_cast(src.data(), from, expected.data(), to, tested_elements, policy));
        for (const Target target : supported_targets()) {
          const ScaledConversion conversion(target, from, to, policy);
          Bytes actual(expected.size());
          conversion.run(src.data(), actual.data(), tested_elements);
          ASSERT_EQ(expected, actual) << name(from) << " -> " << name(to) << " times " << scale << " on "
                                      << name(target);
          if (bit_width(to) > bit_width(from)) continue;
          Bytes in_place = src;
          conversion.run(in_place.data(), in_place.data(), tested_elements);
          in_place.resize(expected.size());
          ASSERT_EQ(expected, in_place) << "in place: " << name(from) << " -> " << name(to);
        }
      }
    }
  }
}

std::vector<DType> scalable() {
  std::vector<DType> result;
  for (const DType dtype : all_dtypes()) {
    if (dtype != DType::string) result.push_back(dtype);
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Sources, Scaled, ::testing::ValuesIn(scalable()),
                         [](const auto& source) { return std::string(name(source.param)); });

// The last bit decides: float64 products that are not exact, next to midpoints of the target.
TEST(SlowScaled, ProductsNextToMidpointsRoundOnce) {
  const double scale = 1.0 + 0x1p-52;
  std::vector<double> src;
  for (const double midpoint : {1.0 + 0x1p-24, 1.0 + 0x1p-11, 1.0 + 0x1p-8, 1.0625, 1.125, 2.5}) {
    for (const double value : {midpoint, std::nextafter(midpoint, 0.0), std::nextafter(midpoint, 4.0)}) {
      src.push_back(value);
      src.push_back(std::nextafter(value, 0.0));
      src.push_back(-value);
    }
  }
  codec::Policy policy;
  policy.scale = scale;
  const auto* const bytes = reinterpret_cast<const std::byte*>(src.data());
  for (const DType to : {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2,
                         DType::float4_e2m1fn, DType::float8_e8m0fnu, DType::int8}) {
    Bytes expected(storage_bytes(to, src.size()));
    ASSERT_TRUE(codec::reference_cast(bytes, DType::float64, expected.data(), to, src.size(), policy));
    for (const Target target : supported_targets()) {
      Bytes actual(expected.size());
      ScaledConversion(target, DType::float64, to, policy).run(bytes, actual.data(), src.size());
      EXPECT_EQ(expected, actual) << name(to) << " on " << name(target);
    }
  }
}

// --- Every number of 16 bits, and wide ones next to where a target rounds to another number

class SlowScaledWords : public ::testing::TestWithParam<DType> {};

TEST_P(SlowScaledWords, EveryNumberEqualsReference) {
  const DType from = GetParam();
  constexpr std::size_t all = 1U << 16;
  Bytes src(all * 2);
  for (std::size_t code = 0; code < all; ++code) codec::store_code(from, src.data(), code, code);
  std::size_t index = 0;
  for (const double scale : scales) {
    for (const DType to : targets_of(from)) expect_reference(from, to, src, all - 3, policy_of(index++ * 7 / 3, scale));
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, SlowScaledWords,
                         ::testing::Values(DType::float16, DType::bfloat16, DType::int16, DType::uint16),
                         [](const auto& source) { return std::string(name(source.param)); });

TEST(SlowScaled, EveryByteToFloat64EqualsReference) {
  constexpr std::size_t all = 256 * 9;
  Bytes src(all);
  for (std::size_t i = 0; i < all; ++i) src[i] = static_cast<std::byte>(i * 167 + i / 256);
  for (const DType from : all_dtypes()) {
    if (from == DType::string || bit_width(from) != 8) continue;
    for (const double scale : scales) {
      expect_reference(from, DType::float64, src, all, policy_of(0, scale));
      expect_reference(from, DType::float64, src, all - 3, policy_of(1, scale));
    }
  }
}

// Floats to float8 and float4: scales of few digits, whose products may lie halfway between two numbers, and others; in
// the order of codes, so that most blocks are ordinary, and shuffled, so that few are.
class SlowScaledHalves : public ::testing::TestWithParam<std::tuple<DType, DType>> {};

TEST_P(SlowScaledHalves, EveryNumberEqualsReference) {
  const auto [from, to] = GetParam();
  std::mt19937_64 random(17);
  std::vector<std::uint16_t> codes(1U << 16);
  std::iota(codes.begin(), codes.end(), std::uint16_t{0});
  Bytes ordered(codes.size() * 2);
  std::memcpy(ordered.data(), codes.data(), ordered.size());
  std::shuffle(codes.begin(), codes.end(), random);
  Bytes shuffled(codes.size() * 2);
  std::memcpy(shuffled.data(), codes.data(), shuffled.size());
  std::vector<double> few_digits;
  for (int odd = 1; odd < 34; odd += 2) few_digits.push_back(std::ldexp(odd, static_cast<int>(random() % 24) - 16));
  for (const int exponent : {-1, -60, 60, -24, 8}) few_digits.push_back(std::ldexp(1.0, exponent));
  std::size_t index = 0;
  for (const double scale : few_digits) {
    for (const double near : {scale, -scale, std::nextafter(scale, 0.0), scale * (1.0 + 0x1p-22)}) {
      if (near == 1.0) continue;  // that is no scale
      const bool in_order = index % 3 == 0;
      expect_reference(from, to, in_order ? ordered : shuffled, codes.size() - index % 67, policy_of(index, near));
      ++index;
    }
    ++index;
  }
}

TEST_P(SlowScaledHalves, EveryNumberTimesAnyScaleEqualsReference) {
  const auto [from, to] = GetParam();
  std::mt19937_64 random(23);
  Bytes src((1U << 16) * 2);
  for (std::size_t code = 0; code < 1U << 16; ++code) codec::store_code(from, src.data(), code, code);
  for (std::size_t index = 0; index < 140; ++index) {
    // Around one, where float16's least numbers become normal; and any.
    const int exponents = index % 2 == 0 ? 8 : 64;
    const int exponent = static_cast<int>(random() % static_cast<unsigned>(exponents)) - exponents / 2;
    double scale = std::ldexp(1.0 + std::ldexp(static_cast<double>(random() >> 12), -52), exponent);
    if (index % 5 == 0) scale = static_cast<float>(scale);
    if (index % 3 == 0) scale = -scale;
    expect_reference(from, to, src, (1U << 16) - index % 67, policy_of(index / 2, scale));
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, SlowScaledHalves,
                         ::testing::Combine(::testing::Values(DType::float16, DType::bfloat16),
                                            ::testing::Values(DType::float8_e4m3fn, DType::float8_e4m3fnuz,
                                                              DType::float8_e5m2, DType::float8_e5m2fnuz,
                                                              DType::float8_e8m0fnu, DType::float4_e2m1fn)),
                         [](const auto& pair) {
                           return std::string(name(std::get<0>(pair.param))) + "_" +
                                  std::string(name(std::get<1>(pair.param)));
                         });

// Quotients of short numbers, and their neighbours: products next to boundaries.
TEST(SlowScaled, ScalesNextToQuotientsEqualReference) {
  constexpr std::size_t all = 1U << 16;
  Bytes src(all * 2);
  for (std::size_t code = 0; code < all; ++code) codec::store_code(DType::uint16, src.data(), code, code);
  std::mt19937_64 random(11);
  const std::pair<DType, DType> pairs[] = {
      {DType::float16, DType::float8_e4m3fn}, {DType::float16, DType::bfloat16},
      {DType::float16, DType::int8},          {DType::bfloat16, DType::float16},
      {DType::bfloat16, DType::uint8},        {DType::uint16, DType::float8_e4m3fn},
      {DType::int16, DType::float8_e5m2},     {DType::float16, DType::float4_e2m1fn},
      {DType::int16, DType::float4_e2m1fn},   {DType::uint16, DType::float4_e2m1fn},
      {DType::int16, DType::float16},         {DType::uint16, DType::float16},
      {DType::int16, DType::bfloat16},        {DType::uint16, DType::bfloat16}};
  for (std::size_t index = 0; index < 280; ++index) {
    const auto [from, to] = pairs[index % std::size(pairs)];
    const auto boundary = static_cast<double>(random() % (std::uint64_t{1} << (3 + random() % 10)) + 1);
    const auto number = static_cast<double>(random() % (std::uint64_t{1} << (3 + random() % 13)) + 1);
    double scale = boundary / number * (index % 3 == 0 ? -1.0 : 1.0);
    if (index % 4 == 1) scale = std::nextafter(scale, 0.0);
    if (index % 4 == 2) scale = std::nextafter(scale, 10.0);
    if (index % 4 == 3) scale *= 1.0 + static_cast<double>(random() % 1000) * 0x1p-32;
    expect_reference(from, to, src, all, policy_of(index / 8, scale));
  }
}

// Products that are only cut off: of scales that are quotients of an integer and a short number, and next to such.
TEST(SlowScaled, TruncatedProductsEqualReference) {
  constexpr std::size_t all = 1U << 16;
  Bytes src(all * 2);
  for (std::size_t code = 0; code < all; ++code) codec::store_code(DType::uint16, src.data(), code, code);
  std::mt19937_64 random(13);
  std::size_t index = 0;
  for (const DType from : {DType::float16, DType::bfloat16, DType::int16, DType::uint16}) {
    for (const DType to : {DType::int32, DType::uint16, DType::int16, DType::uint64, DType::int8, DType::uint4}) {
      for (int i = 0; i < 20; ++i) {
        const auto integer = static_cast<double>(random() % (std::uint64_t{1} << (1 + random() % 16)) + 1);
        const auto number = static_cast<double>(random() % (std::uint64_t{1} << (3 + random() % 13)) + 1);
        double scale = integer / number * (i % 3 == 0 ? -1.0 : 1.0);
        if (i % 5 == 1) scale = std::nextafter(scale, 0.0);
        if (i % 5 == 2) scale = std::nextafter(scale, 1e6);
        if (i % 5 == 3) scale *= 1.0 + static_cast<double>(random() % 1000) * 0x1p-42;
        if (i % 5 == 4) scale = static_cast<float>(scale);
        if (scale == 1.0) continue;  // that is no scale
        codec::Policy policy = policy_of(index++ % 2 == 0 ? 0 : 3, scale);
        expect_reference(from, to, src, all - index % 64, policy);
      }
    }
  }
}

// 16-bit integers, with scales just below, at and above those whose product reaches the next quotient.
TEST(SlowScaled, QuotientsOfWordsEqualReference) {
  constexpr std::size_t all = 1U << 16;
  Bytes src(all * 2);
  for (std::size_t code = 0; code < all; ++code) codec::store_code(DType::uint16, src.data(), code, code);
  std::mt19937_64 random(17);
  std::size_t index = 0;
  for (const DType from : {DType::int16, DType::uint16}) {
    for (int i = 0; i < 160; ++i) {
      const auto number = static_cast<double>(random() % (std::uint64_t{1} << (1 + random() % 16)) + 2);
      const auto integer =
          i % 4 == 0 ? static_cast<double>(1 + random() % static_cast<std::uint64_t>(number - 1)) : 1.0;
      double scale = integer / number * (i % 3 == 0 ? -1.0 : 1.0);
      if (i % 5 == 1) scale = std::nextafter(scale, 0.0);
      if (i % 5 == 2) scale = std::nextafter(scale, 2.0 * scale);
      if (i % 5 == 3) scale = std::ldexp(std::trunc(std::ldexp(scale, 20)) + 1.0, -20);
      constexpr DType targets[] = {DType::int2, DType::uint2, DType::int4,  DType::uint4,
                                   DType::int8, DType::uint8, DType::int16, DType::uint16};
      expect_reference(from, targets[index % 8], src, all - index % 61, policy_of(0, scale));
      ++index;
    }
  }
}

// To float8_e8m0fnu, of any scale: numbers around those from which on there is another exponent, and so near to them
// that float32 does not tell them apart.
TEST(SlowScaled, PowersOfTwoEqualReferenceForAnyScale) {
  std::mt19937_64 random(29);
  for (const DType from :
       {DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64, DType::uint64, DType::bfloat16}) {
    for (std::size_t index = 0; index < 60; ++index) {
      double scale =
          std::ldexp(1.0 + std::ldexp(static_cast<double>(random() >> 12), -52), static_cast<int>(random() % 100) - 50);
      if (index % 4 == 1) scale = std::ldexp(1.0, static_cast<int>(random() % 60) - 50);
      if (index % 4 == 2) scale = static_cast<double>(random() % 64 + 1) / static_cast<double>(random() % 64 + 1);
      if (index % 3 == 0) scale = -scale;
      if (scale == 1.0) continue;  // that is no scale
      codec::Policy policy = policy_of(index, scale);
      policy.e8m0_rounding = index % 3 == 0 ? RoundMode::up : index % 3 == 1 ? RoundMode::nearest : RoundMode::down;
      int exponent = 0;
      const double significand = std::frexp(std::fabs(scale), &exponent);
      Bytes src(1U << 17);
      const std::size_t elements = src.size() * 8 / static_cast<std::size_t>(bit_width(from)) - index % 64;
      for (std::size_t i = 0; i < elements; ++i) {
        std::uint64_t code = i;
        const auto sizes = static_cast<std::uint64_t>(std::min(bit_width(from), 62));
        if (bit_width(from) > 16) {
          const double boundary = std::ldexp(i % 2 == 0 ? 1.0 : 1.5, static_cast<int>(random() % sizes)) / significand;
          code = static_cast<std::uint64_t>(boundary) + (i % 4 < 2 ? random() % 5 - 2 : random() % 300 - 150);
          if (i % 8 == 7) code = 0 - code;
        }
        codec::store_code(from, src.data(), i, code & (~std::uint64_t{0} >> (64 - bit_width(from))));
      }
      expect_reference(from, DType::float8_e8m0fnu, src, elements, policy);
    }
  }
}

#if defined(__x86_64__)

// As in registry_test.cpp, for products.
TEST(SlowScaled, DoesNotDependOnTheCallersEnvironment) {
  constexpr unsigned denormals_are_zero = 0x40, flush_to_zero = 0x8000, upward = 0x4000, flags = 0x3f;
  constexpr std::size_t few = 321;
  const auto expect_kept = [](unsigned mode, const Bytes& expected, const auto& conversion, const Bytes& src) {
    Bytes actual(expected.size());
    const unsigned before = _mm_getcsr();
    const unsigned changed = (before & ~flags) | mode;
    _mm_setcsr(changed);
    conversion.run(src.data(), actual.data(), few);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after & ~flags, changed & ~flags);
    EXPECT_EQ(expected, actual) << "with MXCSR " << changed;
  };
  for (const DType from : scalable()) {
    const Bytes src = source_of(from);
    for (const DType to : scalable()) {
      for (const double scale : {0.1, 0x1p-1020}) {
        const codec::Policy policy{.scale = scale};
        Bytes expected(storage_bytes(to, few));
        ASSERT_TRUE(codec::reference_cast(src.data(), from, expected.data(), to, few, policy));
        for (const Target target : supported_targets()) {
          const ScaledConversion conversion(target, from, to, policy);
          std::optional<TableConversion> table;
          if (bit_width(from) <= 8) table.emplace(target, from, to, policy);
          for (const unsigned mode : {denormals_are_zero | flush_to_zero, upward}) {
            SCOPED_TRACE(std::string(name(from)) + " -> " + std::string(name(to)) + " on " + std::string(name(target)));
            expect_kept(mode, expected, conversion, src);
            if (table) expect_kept(mode, expected, *table, src);
          }
        }
      }
    }
  }
}

#endif

}  // namespace
}  // namespace tensorcast::kernels
