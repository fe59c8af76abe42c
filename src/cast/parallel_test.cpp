#include "cast/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace tensorcast {
namespace {

TEST(Parallel, RunsEachTaskOnce) {
  for (const int threads : {1, thread_count(2), thread_count(5)}) {
    for (const std::size_t tasks : {0, 1, 2, 3, 100}) {
      std::vector<std::atomic<int>> runs(tasks);
      run_tasks(tasks, threads, [&](std::size_t task) { ++runs[task]; });
      EXPECT_TRUE(std::ranges::all_of(runs, [](const std::atomic<int>& count) { return count == 1; }))
          << tasks << " tasks on " << threads << " threads";
    }
  }
}

TEST(Parallel, OneThreadKeepsTheOrder) {
  std::vector<std::size_t> order;
  run_tasks(4, 1, [&](std::size_t task) { order.push_back(task); });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(Parallel, ExceptionsReachTheCaller) {
  for (const int threads : {1, thread_count(3)}) {
    const auto third_fails = [](std::size_t task) {
      if (task == 3) throw std::runtime_error("third");
    };
    EXPECT_THROW(run_tasks(50, threads, third_fails), std::runtime_error) << threads;
  }
}

TEST(Parallel, UsesAtMostTheCoresThereAre) {
  EXPECT_GE(thread_count(0), 1);
  EXPECT_EQ(thread_count(1), 1);
  EXPECT_EQ(thread_count(1 << 20), thread_count(0));
}

}  // namespace
}  // namespace tensorcast
