// SPDX-License-Identifier: Apache-2.0
// First the oracle itself is held against hand-written results, then the engine.
#include <gtest/gtest.h>

#include "check.hpp"
#include "golden.hpp"

namespace oracle {
namespace {

const std::vector<Corner>& corners() {
  static const std::vector<Corner> all = read_corners(TENSORCAST_GOLDEN_DIR "/corners.tsv");
  return all;
}

TEST(Corners, AreManyAndAdmissible) {
  EXPECT_GT(corners().size(), 180u);
  for (const Corner& corner : corners()) {
    EXPECT_EQ(admission(corner.from, corner.to, corner.options), TC_OK) << "corners.tsv:" << corner.line;
  }
}

TEST(Corners, OracleAgrees) {
  for (const Corner& corner : corners()) {
    const Outcome got = convert(corner.from, corner.code, corner.to, corner.options);
    ASSERT_EQ(got.refused, !corner.result) << "corners.tsv:" << corner.line;
    EXPECT_EQ(got.code, corner.result.value_or(got.code)) << "corners.tsv:" << corner.line;
  }
}

TEST(Corners, EngineAgrees) {
  for (const Corner& corner : corners()) {
    const CAbiResult got = run_tc_cast(corner.from, std::vector{corner.code}, corner.to, corner.options);
    if (corner.result) {
      ASSERT_EQ(got.status, TC_OK) << "corners.tsv:" << corner.line << ": " << got.message;
      EXPECT_EQ(got.codes[0], *corner.result) << "corners.tsv:" << corner.line;
    } else {
      EXPECT_EQ(got.status, TC_OUT_OF_RANGE) << "corners.tsv:" << corner.line;
    }
  }
}

}  // namespace
}  // namespace oracle
