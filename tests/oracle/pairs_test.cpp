// SPDX-License-Identifier: Apache-2.0
// Every pair of numeric types under every option that matters to it: all codes of types of 16 bits or fewer, the
// boundaries of wider ones, and seeded random elements.
#include <gtest/gtest.h>

#include "check.hpp"
#include "samples.hpp"

namespace oracle {
namespace {

using Pair = std::tuple<Type, Type>;

std::string pair_name(const testing::TestParamInfo<Pair>& pair) {
  return std::string(info(std::get<0>(pair.param)).name) + "_to_" + info(std::get<1>(pair.param)).name;
}

std::vector<Type> types() { return {numeric_types().begin(), numeric_types().end()}; }

constexpr Type wide_types[] = {f64, f32, i64, i32, u64, u32};

class Pairs : public testing::TestWithParam<Pair> {
 protected:
  void expect_agreement(std::span<const std::uint64_t> codes, std::span<const tc_cast_options> some_sets) const {
    for (const std::string& complaint : disagreements(from, codes, to, some_sets)) ADD_FAILURE() << complaint;
  }

  const Type from = std::get<0>(GetParam());
  const Type to = std::get<1>(GetParam());
  const std::vector<tc_cast_options> sets = option_sets(from, to);
};

TEST_P(Pairs, BoundariesUnderDefaults) { expect_agreement(boundary_codes(from, to), std::span(sets).first(1)); }

TEST_P(Pairs, BoundariesUnderEveryOption) {
  std::vector<std::uint64_t> codes = boundary_codes(from, to, 1.0, false);
  // Types of 16 bits need all codes only where the options decide about values, not about a few specials.
  if (info(from).bits == 16 && is_integer(to)) codes = thinned(codes, 12000);
  expect_agreement(codes, std::span(sets).subspan(1));
}

// The others have no codes left to draw.
class PairsFromWide : public Pairs {};

TEST_P(PairsFromWide, RandomUnderEveryOption) { expect_agreement(random_codes(from, to, 20260801, 4000), sets); }

INSTANTIATE_TEST_SUITE_P(Oracle, Pairs, testing::Combine(testing::ValuesIn(types()), testing::ValuesIn(types())),
                         pair_name);
INSTANTIATE_TEST_SUITE_P(Oracle, PairsFromWide,
                         testing::Combine(testing::ValuesIn(wide_types), testing::ValuesIn(types())), pair_name);

}  // namespace
}  // namespace oracle
