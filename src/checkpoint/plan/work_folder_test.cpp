// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/work_folder.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "checkpoint/checkpoint_testing.hpp"
#include "checkpoint/store/file_name.hpp"

namespace tensorcast::checkpoint {
namespace {

TEST(WorkFolder, IsNamedByItsPlanOrState) {
  for (const char* name : {"out", "out/", "out/.tcast", "out/.tcast/", "out/.tcast/plan.json", "out/plan.json"}) {
    EXPECT_EQ(WorkFolder::folder_of_output(name), "out") << name;
  }
  EXPECT_EQ(WorkFolder::folder_of_output("plan.json"), ".");
  EXPECT_EQ(WorkFolder::folder_of_output("/"), "/");
}

TEST(WorkFolder, IsOfOneRunAtATime) {
  const TestCheckpoint files;
  const CheckpointPlan plan = make_checkpoint_plan(files.request(DType::float16)).value();
  Result<WorkFolder> work = WorkFolder::create(files.out());
  ASSERT_TRUE(work) << work.error().describe();
  EXPECT_EQ(WorkFolder::create(files.out()).error().system_error, EBUSY);
  EXPECT_FALSE(work->find_plan().value().has_value());
  EXPECT_EQ(work->load_plan().error().code, ErrorCode::invalid_argument);
  ASSERT_TRUE(work->begin(plan).ok());
  EXPECT_TRUE(work->check_identity().ok());
  EXPECT_EQ(plan_text(work->load_plan().value()), plan_text(plan));
  EXPECT_EQ(WorkFolder::open(files.out(), io::LockKind::shared).error().system_error, EBUSY);
  EXPECT_TRUE(WorkFolder::open(files.out(), std::nullopt).ok());
  EXPECT_TRUE(WorkFolder::is_empty(work->files()).value());
  EXPECT_FALSE(WorkFolder::has_no_state(work->files()).value());
}

TEST(WorkFolder, KnowsWhatIsDone) {
  const TestCheckpoint files;
  const CheckpointPlan plan = make_checkpoint_plan(files.request(DType::float16)).value();
  WorkFolder work = WorkFolder::create(files.out()).value();
  ASSERT_TRUE(work.begin(plan).ok());
  const PlannedShard& shard = plan.shards[0];
  EXPECT_FALSE(work.done(shard).value().has_value());
  const DoneShard done{.sha256 = std::string(64, '0'),
                       .bytes = shard.bytes,
                       .fingerprint = shard.fingerprint,
                       .tensors = shard.tensors,
                       .notes = {}};
  ASSERT_TRUE(work.set_done(shard, done).ok());
  EXPECT_FALSE(work.done(shard).value().has_value());  // its file is not there
  ASSERT_TRUE(work.files().write_text(WorkFolder::staged(shard), std::string(shard.bytes, 'x')).ok());
  EXPECT_TRUE(work.done(shard).value().has_value());
  ASSERT_TRUE(work.files().write_text(WorkFolder::staged(shard), "short").ok());
  EXPECT_FALSE(work.done(shard).value().has_value());
}

TEST(WorkFolder, NoticesThatItsStateIsGone) {
  const TestCheckpoint files;
  WorkFolder work = WorkFolder::create(files.out()).value();
  ASSERT_TRUE(work.begin(make_checkpoint_plan(files.request(DType::float16)).value()).ok());
  std::filesystem::rename(files.out() + "/.tcast", files.out() + "/.other");
  EXPECT_EQ(work.check_identity().error().code, ErrorCode::io);
  std::filesystem::create_directory(files.out() + "/.tcast");
  EXPECT_EQ(work.check_identity().error().code, ErrorCode::io);
}

TEST(WorkFolder, RemovesWhatItMade) {
  const TestCheckpoint files;
  {
    const WorkFolder unused = WorkFolder::create(files.out()).value();
    unused.remove_unused();
  }
  EXPECT_FALSE(std::filesystem::exists(files.out()));
  WorkFolder work = WorkFolder::create(files.out()).value();
  ASSERT_TRUE(work.begin(make_checkpoint_plan(files.request(DType::float16)).value()).ok());
  work.remove_unused();
  EXPECT_TRUE(work.check_identity().ok());
  io::put_file(files.out() + "/.tcast/stop-0123456789abcdef", "");  // of a driver on Ray
  ASSERT_TRUE(work.finish_state().ok());
  EXPECT_TRUE(std::filesystem::is_empty(files.out()));
}

TEST(WorkFolder, LeavesAFolderOfThatNameAlone) {
  const TestCheckpoint files;
  std::filesystem::create_directories(files.out() + "/.tcast");
  io::put_file(files.out() + "/.tcast/notes", "mine");
  EXPECT_EQ(WorkFolder::create(files.out()).error().file, files.out() + "/.tcast/notes");
  EXPECT_FALSE(std::filesystem::exists(files.out() + "/.tcast/lock"));
}

TEST(WorkFolder, ADamagedPlanOrRecordIsAnError) {
  const TestCheckpoint files;
  WorkFolder work = WorkFolder::create(files.out()).value();
  EXPECT_FALSE(read_record(work.files()).value().has_value());
  ASSERT_TRUE(work.files().write_text(record_name, "{").ok());
  EXPECT_EQ(read_record(work.files()).error().code, ErrorCode::parse);
  ASSERT_TRUE(work.begin(make_checkpoint_plan(files.request(DType::float16)).value()).ok());
  ASSERT_TRUE(work.files().write_text(".tcast/identity", std::string(64, '0') + "\n").ok());
  EXPECT_EQ(work.find_plan().error().message, "the plan is damaged: it is not the one that was written");
}

}  // namespace
}  // namespace tensorcast::checkpoint
