// SPDX-License-Identifier: Apache-2.0
// Several shards at a time: the same files, progress of all together, errors and cancelling.
#include "checkpoint/run/run_shards.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/checkpoint_testing.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr std::size_t count = 12;
constexpr std::uint64_t shard_bytes = 2 * (4 + 2);  // read and written

std::string shard_name(std::size_t i) { return fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, count); }

class RunShardsTest : public testing::Test {
 protected:
  RunShardsTest() {
    std::string map;
    for (std::size_t i = 0; i < count; ++i) {
      files_.put(shard_name(i), safetensors(fmt::format("t{}", i), static_cast<float>(i)));
      map += fmt::format(R"({}"t{}": "{}")", i == 0 ? "" : ", ", i, shard_name(i));
    }
    std::filesystem::remove(files_.in() + "/model-00001-of-00002.safetensors");
    std::filesystem::remove(files_.in() + "/model-00002-of-00002.safetensors");
    files_.put("model.safetensors.index.json",
               fmt::format(R"({{"metadata": {{"total_size": {}}}, "weight_map": {{{}}}}})", 8 * count, map));
    plan_ = make_checkpoint_plan(files_.request(DType::float16)).value();
    for (std::size_t i = 0; i < count; ++i) all_.push_back(i);
    EXPECT_EQ(plan_.shards.size(), count);
    EXPECT_TRUE(work_.begin(plan_).ok());
  }

  Result<void> run(std::size_t at_once, const std::function<bool(const Progress&)>& on_progress = {}) {
    taken_.assign(count, {});
    return run_shards({plan_, work_, execution_, on_progress}, all_, at_once,
                      [&](std::size_t index, DoneShard done, bool was_done_before) {
                        taken_[index] = done.sha256;
                        before_ += was_done_before ? 1 : 0;
                      });
  }
  [[nodiscard]] std::size_t kept() const {
    std::size_t kept = 0;
    for (const PlannedShard& shard : plan_.shards) kept += work_.done(shard).value().has_value() ? 1 : 0;
    return kept;
  }

  TestCheckpoint files_;
  CheckpointPlan plan_;
  WorkFolder work_ = WorkFolder::create(files_.out()).value();
  const Execution execution_;
  std::vector<std::size_t> all_;
  std::vector<std::string> taken_;  // sums
  std::size_t before_ = 0;
};

TEST_F(RunShardsTest, GivesTheSameWithAnyNumberAtOnce) {
  ASSERT_TRUE(run(1).ok());
  const std::vector<std::string> one_by_one = taken_;
  for (const std::size_t at_once : {2u, 3u, 20u}) {
    TestCheckpoint other;
    WorkFolder work = WorkFolder::create(other.out()).value();
    ASSERT_TRUE(work.begin(plan_).ok());
    std::swap(work, work_);
    const Result<void> done = run(at_once);
    ASSERT_TRUE(done.ok()) << done.error().describe();
    EXPECT_EQ(taken_, one_by_one);
    EXPECT_EQ(kept(), count);
    std::swap(work, work_);
  }
  EXPECT_EQ(before_, 0u);
}

class RunShardsProgressTest : public RunShardsTest, public testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(AtOnce, RunShardsProgressTest, testing::Values(1, 4));

TEST_P(RunShardsProgressTest, TellsOfAllOnTheCallersThread) {
  const auto caller = std::this_thread::get_id();
  std::vector<std::uint64_t> seen;
  const Result<void> done = run(GetParam(), [&](const Progress& now) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(now.bytes_total, count * shard_bytes);
    EXPECT_EQ(now.shards, count);
    EXPECT_EQ(now.file, plan_.shards[now.shard - 1].name);
    EXPECT_EQ(now.tensor, fmt::format("t{}", now.shard - 1));
    seen.push_back(now.bytes_done);
    return true;
  });
  ASSERT_TRUE(done.ok()) << done.error().describe();
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), count * shard_bytes);
}

TEST_P(RunShardsProgressTest, KeepsWhatIsDoneWhenTheCallerCancels) {
  const Result<void> cancelled = run(GetParam(), [](const Progress&) { return false; });
  // With threads, all may be done before the caller is asked.
  EXPECT_TRUE(GetParam() > 1 || !cancelled.ok());
  EXPECT_TRUE(cancelled.ok() || cancelled.error().code == ErrorCode::cancelled);
  const std::size_t done = kept();
  EXPECT_EQ(cancelled.ok(), done == count);
  ASSERT_TRUE(run(GetParam()).ok());
  EXPECT_EQ(before_, done);
  EXPECT_EQ(kept(), count);
}

TEST_F(RunShardsTest, KeepsWhatIsDoneAtAnError) {
  files_.put(shard_name(5), safetensors("other", 1.0F));
  const Result<void> failed = run(3);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "the file has changed since the conversion was planned");
  EXPECT_TRUE(failed.error().file.ends_with(shard_name(5))) << failed.error().file;
  EXPECT_LT(kept(), count);
}

TEST_F(RunShardsTest, AFewAtOnceAtMost) {
  EXPECT_EQ(shards_at_once({.threads = 1}, 9), 1u);
  EXPECT_EQ(shards_at_once({}, 0), 1u);
  EXPECT_EQ(shards_at_once({}, 1), 1u);
  EXPECT_LE(shards_at_once({}, 1000), 4u);
}

}  // namespace
}  // namespace tensorcast::checkpoint
