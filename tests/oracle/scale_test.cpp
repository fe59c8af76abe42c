// SPDX-License-Identifier: Apache-2.0
// scale: the exact product is rounded once.
#include <gtest/gtest.h>

#include <cmath>

#include "check.hpp"
#include "samples.hpp"

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

TEST(Scale, OfZeroAndItsSigns) {
  for (const double zero : {0.0, -0.0}) {
    tc_cast_options options = default_options();
    options.scale = zero;
    const std::uint64_t sign = zero == 0.0 && std::signbit(zero) ? 0x8000 : 0;
    const std::vector<std::uint64_t> codes = {0x3F800000, 0xBF800000, 0x00000000, 0x80000000};
    const CAbiResult got = run_tc_cast(f32, codes, f16, options);
    ASSERT_EQ(got.status, TC_OK) << got.message;
    EXPECT_EQ(got.codes, (std::vector<std::uint64_t>{sign, sign ^ 0x8000, sign, sign ^ 0x8000}));
    const CAbiResult infinite = run_tc_cast(f32, std::vector<std::uint64_t>{0x7F800000}, f16, options);
    ASSERT_EQ(infinite.status, TC_OK) << infinite.message;
    EXPECT_GT(infinite.codes[0] & 0x7FFF, 0x7C00u) << "infinity times zero is NaN";
  }
}

}  // namespace
}  // namespace oracle
