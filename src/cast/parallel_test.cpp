// SPDX-License-Identifier: Apache-2.0
#include "cast/parallel.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tensorcast/typed_cast.hpp"

namespace tensorcast {
namespace {

TEST(Parallel, RunsEachTaskOnce) {
  for (const int threads : {1, 2, 5, 0}) {
    for (const std::size_t tasks : {0, 1, 2, 3, 100}) {
      std::vector<std::atomic<int>> runs(tasks);
      run_tasks(tasks, {.threads = threads}, [&](std::size_t task) { ++runs[task]; });
      EXPECT_TRUE(std::ranges::all_of(runs, [](const std::atomic<int>& count) { return count == 1; }))
          << tasks << " tasks on " << threads << " threads";
    }
  }
}

TEST(Parallel, OneThreadKeepsTheOrder) {
  std::vector<std::size_t> order;
  run_tasks(4, {.threads = 1}, [&](std::size_t task) { order.push_back(task); });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST(Parallel, ExceptionsReachTheCaller) {
  for (const int threads : {1, 3}) {
    const auto third_fails = [](std::size_t task) {
      if (task == 3) throw std::runtime_error("third");
    };
    EXPECT_THROW(run_tasks(50, Execution{.threads = threads}, third_fails), std::runtime_error) << threads;
  }
}

// Runs tasks from the last to the first, and counts them.
class BackwardPool final : public Executor {
 public:
  void run(std::size_t count, const Task& task) override {
    for (std::size_t i = count; i-- > 0;) task(i);
    tasks += count;
  }
  std::size_t tasks = 0;
};

TEST(Parallel, TheCallersPoolRunsEveryTask) {
  BackwardPool pool;
  std::vector<std::size_t> order;
  run_tasks(3, {.executor = &pool}, [&](std::size_t task) { order.push_back(task); });
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_THROW(run_tasks(3, {.executor = &pool}, [](std::size_t) { throw std::runtime_error("x"); }),
               std::runtime_error);
  run_tasks(3, {.threads = 1, .executor = &pool}, [](std::size_t) {});
  EXPECT_EQ(pool.tasks, 6u) << "one thread is the caller's own";
}

// Runs the tasks that it is told to, whatever the call asked for.
class WrongPool final : public Executor {
 public:
  explicit WrongPool(std::vector<std::size_t> runs) : runs_(std::move(runs)) {}
  void run(std::size_t, const Task& task) override {
    for (const std::size_t i : runs_) task(i);
  }

 private:
  std::vector<std::size_t> runs_;
};

TEST(Parallel, ACallersPoolThatErrsDoesNoHarmUnnoticed) {
  std::vector<std::size_t> ran;
  const auto record = [&](std::size_t task) { ran.push_back(task); };
  WrongPool repeats({0, 1, 1, 2, 0});
  run_tasks(3, {.executor = &repeats}, record);
  EXPECT_EQ(ran, (std::vector<std::size_t>{0, 1, 2}));
  WrongPool goes_on({2, 1, 0, 3, 1000});
  run_tasks(3, {.executor = &goes_on}, record);
  EXPECT_EQ(ran, (std::vector<std::size_t>{0, 1, 2, 2, 1, 0}));
  WrongPool stops({0, 0, 2});
  try {
    run_tasks(3, {.executor = &stops}, record);
    ADD_FAILURE() << "a task was left out";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the executor returned after 2 of 3 tasks");
  }
  WrongPool idle({});
  std::vector<float> source(std::size_t{1} << 20, 1.5f);
  std::vector<std::uint8_t> target(source.size());
  const Result<void> done = cast(source, target, {}, {.executor = &idle});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::internal);
}

// Runs in its own process. The presets tsan and asan-ubsan leave this test out: their run times cannot fork from a
// program with threads, as a lock of the allocator may be held then.
TEST(ParallelForked, AChildCastsWhileAnotherThreadDid) {
  const std::vector<float> source(1 << 20, 1.5f);
  const std::jthread casts([&](const std::stop_token& stop) {
    std::vector<std::uint16_t> halves(source.size());
    const std::int64_t shape[] = {static_cast<std::int64_t>(source.size())};
    while (!stop.stop_requested()) {
      const Result<void> done = cast({DType::float32, shape, std::as_bytes(std::span(source))},
                                     {DType::float16, shape, std::as_writable_bytes(std::span(halves))}, {});
      EXPECT_TRUE(done.ok());
    }
  });
  constexpr int children = 40;
  constexpr unsigned most_seconds = 60;  // a child that hangs is killed by SIGALRM
  for (int i = 0; i < children; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(most_seconds);
      std::atomic<int> ran = 0;
      for (int round = 0; round < 10; ++round) run_tasks(100, {.threads = 2}, [&](std::size_t) { ++ran; });
      ::_exit(ran == 1000 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "child " << i << ": " << status;
  }
}

TEST(Parallel, OneThreadIsTheCallersOwn) {
  BackwardPool pool;
  EXPECT_FALSE(may_use_threads({.threads = 1}));
  EXPECT_FALSE(may_use_threads({.threads = 1, .executor = &pool}));
  EXPECT_TRUE(may_use_threads({.executor = &pool}));
}

}  // namespace
}  // namespace tensorcast
