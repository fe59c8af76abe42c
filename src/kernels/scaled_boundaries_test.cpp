// SPDX-License-Identifier: Apache-2.0
// Wide sources, at numbers whose products are next to where the target's result changes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "kernels/scaled_testing.hpp"

namespace tensorcast::kernels {
namespace {

// Numbers between which the target's result changes, or near them.
std::vector<double> boundaries(DType to, std::mt19937_64& random) {
  std::vector<double> result;
  for (int i = 0; i < 150; ++i) {
    if (family(to) != Family::floating) {
      const auto small = static_cast<double>(random() % 300);
      result.push_back(small / 2);
      result.push_back(std::ldexp(small, static_cast<int>(random() % 48)) + 0.5);
      result.push_back(std::ldexp(1.0, static_cast<int>(random() % 66)) - static_cast<double>(random() % 3) / 2);
      continue;
    }
    const std::uint64_t any = bit_width(to) == 64 ? random() : random() & ((std::uint64_t{1} << bit_width(to)) - 1);
    Bytes pair(storage_bytes(to, 2));
    codec::store_code(to, pair.data(), 0, any);
    codec::store_code(to, pair.data(), 1, (any + 1) & (~std::uint64_t{0} >> (64 - bit_width(to))));
    double neighbours[2];
    if (to == DType::float64) {
      std::memcpy(neighbours, pair.data(), sizeof neighbours);
    } else {
      EXPECT_TRUE(codec::reference_cast(pair.data(), to, reinterpret_cast<std::byte*>(neighbours), DType::float64, 2,
                                        codec::Policy{}));
    }
    result.push_back(neighbours[0]);
    result.push_back(neighbours[0] / 2 + neighbours[1] / 2);
  }
  return result;
}

// Both signs; each number with those whose codes are next to its.
Bytes neighbourhoods(DType from, const std::vector<double>& numbers, std::size_t& elements) {
  codec::Policy saturating;
  saturating.range = codec::RangeRule::saturate;
  saturating.rounding = Rounding::nearest_even;
  std::vector<std::uint64_t> codes;
  for (const double number : numbers) {
    for (const double both : {number, -number}) {
      if (both < 0 && family(from) == Family::integer && !is_signed(from)) continue;
      std::uint64_t code = 0;
      if (from == DType::float64) {
        std::memcpy(&code, &both, sizeof code);
      } else {
        EXPECT_TRUE(codec::reference_cast(reinterpret_cast<const std::byte*>(&both), DType::float64,
                                          reinterpret_cast<std::byte*>(&code), from, 1, saturating));
      }
      for (std::uint64_t step = 0; step < 5; ++step) codes.push_back(code + step - 2);
    }
  }
  elements = codes.size();
  Bytes src(storage_bytes(from, elements));
  for (std::size_t i = 0; i < elements; ++i) codec::store_code(from, src.data(), i, codes[i]);
  return src;
}

class SlowScaledWide : public ::testing::TestWithParam<DType> {};

TEST_P(SlowScaledWide, EqualsReferenceNextToBoundaries) {
  const DType from = GetParam();
  std::mt19937_64 random(3);
  std::size_t index = 0;
  for (const double scale : scales) {
    for (const DType to : targets_of(from)) {
      std::vector<double> wild = boundaries(to, random);
      for (double& number : wild) number /= scale;
      std::vector<double> tame;  // no product so large that all around it takes another way
      for (const double number : wild) {
        if (std::fabs(number * scale) < 4e6 && std::fabs(number) < 4e15) tame.push_back(number);
      }
      for (int i = 0; i < 60; ++i) {  // products of few digits, and of many, and integers of all sizes
        const double many = std::ldexp(static_cast<double>(random() >> 11), -53);
        wild.push_back(std::ldexp(many, static_cast<int>(random() % 300) - 150) / scale);
        wild.push_back(std::ldexp(static_cast<double>(random() % 4096), static_cast<int>(random() % 53)));
        wild.push_back(std::ldexp(1.0, 64) - std::ldexp(many, static_cast<int>(random() % 64)));
        tame.push_back(static_cast<double>(random() % 100) * 5);
        tame.push_back(many * 1000);
        tame.push_back(0.0);
      }
      for (const double special : {HUGE_VAL, std::nan(""), 1e308, 3e38, 1e-300, 5e-324, 0x1p53, 0x1p63}) {
        wild.push_back(special);
      }
      for (const std::vector<double>& numbers : {tame, wild}) {
        std::size_t elements = 0;
        const Bytes src = neighbourhoods(from, numbers, elements);
        for (std::size_t next = 0; next < 3; ++next) {  // one of them truncates
          expect_reference(from, to, src, elements, policy_of(index + next, scale));
        }
      }
      ++index;
    }
  }
}

// Numbers with many digits, of which hardly any is next to a boundary: whole pieces take the first way. Sparsely among
// them some that do not.
TEST_P(SlowScaledWide, OrdinaryNumbersEqualReference) {
  const DType from = GetParam();
  std::mt19937_64 random(17);
  std::size_t index = 0;
  for (const double scale : scales) {
    for (const DType to : targets_of(from)) {
      const double size = std::ldexp(1.0, static_cast<int>(random() % 14));
      const std::vector<double> rare = boundaries(to, random);
      std::normal_distribution<double> normal(0.0, size / std::fabs(scale));
      const std::size_t elements = 2500 + index % 64;
      std::vector<double> numbers(elements);
      for (std::size_t i = 0; i < elements; ++i) {
        numbers[i] = i % 700 == 699 ? rare[i % rare.size()] / scale : i % 500 == 499 ? 0.0 : normal(random);
      }
      codec::Policy saturating;
      saturating.range = codec::RangeRule::saturate;
      Bytes src(storage_bytes(from, elements));
      if (from == DType::float64) {
        std::memcpy(src.data(), numbers.data(), src.size());
      } else {
        ASSERT_TRUE(codec::reference_cast(reinterpret_cast<const std::byte*>(numbers.data()), DType::float64,
                                          src.data(), from, elements, saturating));
      }
      expect_reference(from, to, src, elements, policy_of(index % 2 == 0 ? 0 : index, scale));
      ++index;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, SlowScaledWide,
                         ::testing::Values(DType::float64, DType::float32, DType::bfloat16, DType::int64, DType::uint64,
                                           DType::int32, DType::uint32),
                         [](const auto& source) { return std::string(name(source.param)); });

// A float32 times a scale of more digits: one number of each 64 is so close to a quotient of boundary and scale that
// its product is next to the boundary in float32. The others are ordinary, so that their piece is converted by float32.
TEST(SlowScaled, Float32ProductsNextToBoundariesEqualReference) {
  std::mt19937_64 random(41);
  std::size_t index = 0;
  for (const DType to : targets_of(DType::float32)) {
    for (int i = 0; i < 12; ++i, ++index) {
      const auto boundary = static_cast<double>(random() % (std::uint64_t{1} << (2 + random() % 10)) + 1);
      const auto number = static_cast<float>(random() % (std::uint64_t{1} << (3 + random() % 21)) + 3);
      double scale = boundary / static_cast<double>(number) * (i % 2 == 0 ? 0.5 : -1.0);
      if (i % 3 == 1) scale = std::nextafter(scale, 0.0);
      if (i % 3 == 2) scale = std::nextafter(scale, 1e6);
      const std::vector<double> others = boundaries(to, random);
      std::normal_distribution<double> normal(0.0, 20.0 / std::fabs(scale));
      const std::size_t elements = 4096 + index % 64;
      std::vector<float> numbers(elements);
      for (std::size_t j = 0; j < elements; ++j) {
        numbers[j] = static_cast<float>(normal(random));
        if (j % 64 != 63) continue;
        const auto at = j % 128 == 63 ? number : static_cast<float>(others[j / 64 % others.size()] / scale);
        std::uint32_t bits = 0;
        std::memcpy(&bits, &at, sizeof bits);
        bits += static_cast<std::uint32_t>(random() % 7) - 3;
        std::memcpy(&numbers[j], &bits, sizeof bits);
      }
      Bytes src(elements * sizeof(float));
      std::memcpy(src.data(), numbers.data(), src.size());
      expect_reference(DType::float32, to, src, elements, policy_of(index, scale));
    }
  }
}

// Integers of all sizes, small ones one by one and others next to boundaries, times scales that are quotients of a
// boundary and an integer, and next to such, or of few digits.
class ScaledLongIntegers : public ::testing::TestWithParam<DType> {};

TEST_P(ScaledLongIntegers, EqualReferenceForAnyScale) {
  const DType from = GetParam();
  std::mt19937_64 random(17);
  std::size_t index = 0;
  for (const DType to :
       {DType::bfloat16, DType::float16, DType::float8_e8m0fnu, DType::float8_e5m2, DType::float8_e5m2fnuz,
        DType::float8_e4m3fn, DType::float4_e2m1fn, DType::float32, DType::float64, DType::uint4, DType::int32}) {
    for (int i = 0; i < 24; ++i) {
      const auto boundary = static_cast<double>(random() % (std::uint64_t{1} << (1 + random() % 12)) + 1);
      const auto number = static_cast<double>(random() % (std::uint64_t{1} << (1 + random() % 40)) + 1);
      double scale = boundary / number * (i % 5 == 0 ? -1.0 : 1.0);
      if (i % 6 == 1) scale = std::nextafter(scale, 0.0);
      if (i % 6 == 2) scale = std::nextafter(scale, 1e6);
      if (i % 6 == 3) scale = static_cast<float>(scale);
      if (i % 6 == 4) scale = std::ldexp(1.0 + static_cast<double>(i % 4), static_cast<int>(random() % 64) - 50);
      if (scale == 1.0) continue;  // that is no scale
      std::vector<double> numbers = boundaries(to, random);
      for (double& x : numbers) x /= scale;
      for (int j = 0; j < 100; ++j) {
        numbers.push_back(number * j);
        numbers.push_back(std::ldexp(static_cast<double>(random() % 8), static_cast<int>(random() % 63)));
        numbers.push_back(std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 64) - 53));
      }
      for (int j = 0; j < 2000; j += 5) numbers.push_back(j);
      std::size_t elements = 0;
      const Bytes src = neighbourhoods(from, numbers, elements);
      expect_reference(from, to, src, elements - index % 64, policy_of(index, scale));
      ++index;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, ScaledLongIntegers,
                         ::testing::Values(DType::int32, DType::uint32, DType::int64, DType::uint64),
                         [](const auto& source) { return std::string(name(source.param)); });

// Unsigned integers of 64 bits, of which all digits count: around the first ones whose product has another integer.
TEST(SlowScaled, WholeProductsEqualReferenceForAnyScale) {
  std::mt19937_64 random(37);
  for (int i = 0; i < 200; ++i) {
    double scale = std::ldexp(1.0 + std::ldexp(static_cast<double>(random() >> 12), -52), -1 - i % 66);
    if (i % 5 == 1) scale = std::ldexp(1.0, -1 - i % 66);
    if (i % 5 == 2) scale = std::nextafter(std::ldexp(1.0, -(i % 66)), 0.0);
    if (i % 3 == 0) scale = -scale;
    constexpr std::size_t elements = 2003;
    Bytes src(elements * 8);
    for (std::size_t j = 0; j < elements; ++j) {
      const auto product = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 64) - 53);
      const double x = std::min(std::floor(product) / std::fabs(scale), 18446744073709549568.0);
      const std::uint64_t code = j % 8 == 7 ? random() : static_cast<std::uint64_t>(x) + random() % 3 - 1;
      std::memcpy(src.data() + j * 8, &code, sizeof code);
    }
    for (const DType to : {DType::int64, DType::uint32, DType::int16, DType::uint8, DType::int4, DType::uint2}) {
      expect_reference(DType::uint64, to, src, elements, policy_of(0, scale));
    }
  }
}

}  // namespace
}  // namespace tensorcast::kernels
