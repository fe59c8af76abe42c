// SPDX-License-Identifier: Apache-2.0
// From a plan to a checkpoint: run_shard.hpp, finish.hpp, requirements.hpp.
#include "checkpoint/run/finish.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "checkpoint/checkpoint_testing.hpp"
#include "checkpoint/run/requirements.hpp"
#include "checkpoint/run/run_shard.hpp"
#include "io/sha256.hpp"

namespace tensorcast::checkpoint {
namespace {

class FinishTest : public testing::Test {
 protected:
  FinishTest() {
    ConvertRequest request = files_.request(DType::float16);
    request.report = true;
    request.verify = true;
    plan_ = make_checkpoint_plan(request).value();
    EXPECT_TRUE(work_.begin(plan_).ok());
  }
  Result<std::optional<DoneShard>> run(std::size_t shard) { return run_shard(plan_, shard, work_, {}, {}); }

  TestCheckpoint files_;
  CheckpointPlan plan_;
  WorkFolder work_ = WorkFolder::create(files_.out()).value();
};

TEST_F(FinishTest, ConvertsShardsAndGivesThemTheirPlaces) {
  std::vector<DoneShard> done;
  for (std::size_t i = 0; i < 2; ++i) {
    const Result<std::optional<DoneShard>> shard = run(i);
    ASSERT_TRUE(shard) << shard.error().describe();
    ASSERT_TRUE(shard->has_value());
    done.push_back(**shard);
    EXPECT_EQ(done[i].bytes, plan_.shards[i].bytes);
    EXPECT_EQ(done[i].notes.at(0).report->count, 2u);
    EXPECT_TRUE(work_.done(plan_.shards[i]).value().has_value());
  }
  ASSERT_TRUE(finish(plan_, std::vector{done[0].sha256, done[1].sha256}, work_).ok());
  EXPECT_EQ(files_.got("config.json"), R"({"torch_dtype": "float16"})");
  EXPECT_EQ(files_.got("sub/README.md"), "text");
  EXPECT_NE(files_.got("model.safetensors.index.json").find("\"total_size\": 8"), std::string::npos);
  const std::string shard = files_.got("model-00002-of-00002.safetensors");
  EXPECT_EQ(io::sha256_of(shard), done[1].sha256);
  EXPECT_EQ(shard.substr(shard.size() - 4), "\x66\x2e\x66\xae");  // 0.1 and -0.1
  EXPECT_NE(files_.got("SHA256SUMS").find(sums_line(done[0].sha256, plan_.shards[0].name)), std::string::npos);
}

TEST_F(FinishTest, ReportsProgressOfTheShardAndCancels) {
  std::vector<Progress> seen;
  const std::function<bool(const Progress&)> cancel = [&](const Progress& progress) {
    seen.push_back(progress);
    return false;
  };
  const Result<std::optional<DoneShard>> cancelled = run_shard(plan_, 1, work_, {}, cancel);
  ASSERT_TRUE(cancelled.ok());
  EXPECT_FALSE(cancelled->has_value());
  EXPECT_FALSE(work_.done(plan_.shards[1]).value().has_value());
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen[0].bytes_total, 24u);
  EXPECT_GT(seen[0].bytes_done, 0u);
  EXPECT_EQ(work_bytes(plan_, plan_.shards[0]), 24u);
}

TEST_F(FinishTest, ASourceThatChangedIsAnError) {
  files_.put("model-00001-of-00002.safetensors", safetensors("other", 1.0F));
  EXPECT_EQ(run(0).error().message, "the file has changed since the conversion was planned");
}

TEST_F(FinishTest, NeedsTimeMemoryAndDisk) {
  const Requirements needs = measure_requirements(plan_, files_.out(), {});
  EXPECT_EQ(needs.disk_bytes, plan_.disk_bytes());
  EXPECT_GT(needs.memory_bytes, 1u << 20);
  EXPECT_GT(needs.disk_free_bytes, 0u);
}

}  // namespace
}  // namespace tensorcast::checkpoint
