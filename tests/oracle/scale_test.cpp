// SPDX-License-Identifier: Apache-2.0
// scale: the exact product is rounded once.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>

#include "check.hpp"
#include "samples.hpp"
#include "tensorcast/cast.hpp"

namespace oracle {
namespace {

constexpr double scales[] = {0.5, 3.0, 0.1, -1.75, 0x1p-20, 0x1.fffffffffffffp+30, 1e-40, 1e300, 0x1p-1074, 1.0 / 3};

TEST(Scale, EveryPairRoundsTheExactProductOnce) {
  for (const Type from : numeric_types()) {
    for (const Type to : numeric_types()) {
      for (const double scale : scales) {
        std::vector<std::uint64_t> codes = thinned(boundary_codes(from, to, scale, false), 150);
        const std::vector<std::uint64_t> random = random_codes(from, to, 7, 50);
        codes.insert(codes.end(), random.begin(), random.end());
        std::vector<tc_cast_options> sets = option_sets(from, to);
        if (sets.size() > 4) sets = {sets[0], sets[1], sets[sets.size() / 2], sets.back()};
        for (tc_cast_options& set : sets) set.scale = scale;
        for (const std::string& complaint : disagreements(from, codes, to, sets)) FAIL() << complaint;
      }
    }
  }
}

// Between equal types too, where a scale of 1 copies bits.
TEST(Scale, OfOneIsTheDefault) {
  for (const Type type : numeric_types()) {
    const std::vector<std::uint64_t> codes = thinned(boundary_codes(type, type, 1.0, false), 5000);
    EXPECT_EQ(run_tc_cast(type, codes, type, default_options()).codes, codes) << info(type).name;
  }
}

// In C, a scale of 0 is that of a struct without its defaults.
TEST(Scale, OfZeroAndItsSigns) {
  using tensorcast::DType;
  const float numbers[5] = {1.0f, -1.0f, 0.0f, -0.0f, INFINITY};
  for (const double zero : {0.0, -0.0}) {
    std::uint16_t halves[5];
    const auto done =
        tensorcast::cast({DType::float32, {5}, std::as_bytes(std::span(numbers))},
                         {DType::float16, {5}, std::as_writable_bytes(std::span(halves))}, {.scale = zero});
    ASSERT_TRUE(done.ok()) << done.error().describe();
    const unsigned sign = std::signbit(zero) ? 0x8000 : 0;
    for (const std::size_t i : {0u, 1u, 2u, 3u}) {
      EXPECT_EQ(halves[i], std::signbit(numbers[i]) ? sign ^ 0x8000 : sign) << numbers[i] << " times " << zero;
    }
    EXPECT_GT(halves[4] & 0x7FFF, 0x7C00) << "infinity times zero is NaN";
    tc_cast_options options = default_options();
    options.scale = zero;
    EXPECT_EQ(tc_cast(numbers, TC_FLOAT32, halves, TC_FLOAT16, 5, &options), TC_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace oracle
