// SPDX-License-Identifier: Apache-2.0
// Lines of progress without a terminal.
#include "process/progress_bar.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tcast {
namespace {

// The seconds at which a line is printed, of work that is asked every second and takes `seconds` in all.
std::vector<int> times_of_lines(int seconds) {
  RareLines lines;
  std::vector<int> times;
  for (int second = 0; second <= seconds; ++second) {
    if (lines.due(second, static_cast<double>(second) / seconds)) times.push_back(second);
  }
  return times;
}

TEST(Progress, ShortWorkPrintsNothing) { EXPECT_EQ(times_of_lines(9), std::vector<int>()); }

TEST(Progress, ALineEveryTenSecondsAtMost) { EXPECT_EQ(times_of_lines(50), (std::vector<int>{10, 20, 30, 40, 50})); }

TEST(Progress, ALineForEachTenthOfLongWork) {
  const std::vector<int> times = times_of_lines(400);
  EXPECT_EQ(times[0], 10);
  EXPECT_EQ(times[1], 50);
  EXPECT_EQ(times.size(), 10U);
}

TEST(Progress, ALineEveryMinuteAtLeast) {
  const std::vector<int> times = times_of_lines(3600);
  EXPECT_EQ(times.size(), 60U);
  EXPECT_EQ(times[1] - times[0], 60);
}

TEST(Progress, LinesHaveNoBar) {
  const tensorcast::Progress progress{.bytes_done = 1 << 20, .bytes_total = 1 << 21};
  const std::string line = progress_line(progress, 1.0, 100, false);
  EXPECT_EQ(line.find_first_of("[\r\x1b"), std::string::npos) << line;
  EXPECT_NE(line.find("50 %"), std::string::npos) << line;
}

}  // namespace
}  // namespace tcast
