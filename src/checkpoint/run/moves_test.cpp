// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/moves.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "checkpoint/checkpoint_testing.hpp"
#include "io/sha256.hpp"

namespace tensorcast::checkpoint {
namespace {

class MovesTest : public testing::Test {
 protected:
  MovesTest() {
    EXPECT_TRUE(work_.begin(make_checkpoint_plan(files_.request(DType::float16)).value()).ok());
    EXPECT_TRUE(work_.files().create_folder(".tcast/files/x").ok());
  }

  Move staged(const std::string& name, const std::string& text) {
    const std::string from = ".tcast/files/x/" + std::to_string(++count_);
    EXPECT_TRUE(work_.files().write_text(from, text).ok());
    return {.from = from, .name = name, .bytes = text.size(), .sha256 = io::sha256_of(text)};
  }
  io::WrittenFile old(const std::string& name, const std::string& text) {
    io::put_file(files_.out() + "/" + name, text);
    return {.name = name, .bytes = text.size(), .version = {}, .sha256 = io::sha256_of(text)};
  }

  TestCheckpoint files_;
  WorkFolder work_ = WorkFolder::create(files_.out()).value();
  int count_ = 0;
};

TEST_F(MovesTest, ReplaceWhatAFormerRunWrote) {
  Moves moves{.moves = {staged("a.safetensors", "new a"), staged("sub/b", "new b")},
              .old = {old("a.safetensors", "old a"), old("gone.safetensors", "old"), old("changed", "as it was")}};
  io::put_file(files_.out() + "/changed", "by others");
  ASSERT_TRUE(begin_moves(moves, work_).ok());
  EXPECT_TRUE(work_.is_moving().value());
  ASSERT_TRUE(carry_out(work_).ok());
  EXPECT_EQ(files_.got("a.safetensors"), "new a");
  EXPECT_EQ(files_.got("sub/b"), "new b");
  EXPECT_EQ(files_.got("changed"), "by others");
  EXPECT_FALSE(std::filesystem::exists(files_.out() + "/gone.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(files_.out() + "/.tcast"));
  EXPECT_EQ(read_record(*Folder::open(files_.out()).value()).value()->files.size(), 2u);
}

TEST_F(MovesTest, GoOnWhereACrashStopped) {
  const Moves moves{.moves = {staged("a", "new a"), staged("b", "new b")}, .old = {}};
  ASSERT_TRUE(begin_moves(moves, work_).ok());
  ASSERT_TRUE(work_.files().move(moves.moves[0].from, "a").ok());
  ASSERT_TRUE(carry_out(work_).ok());
  EXPECT_EQ(files_.got("a"), "new a");
  EXPECT_EQ(files_.got("b"), "new b");
}

TEST_F(MovesTest, LeaveTheOldFilesIfANewOneIsDamaged) {
  const Moves moves{.moves = {staged("a", "new a"), staged("b", "new b")}, .old = {old("a", "old a")}};
  ASSERT_TRUE(begin_moves(moves, work_).ok());
  ASSERT_TRUE(work_.files().remove(moves.moves[1].from).ok());
  EXPECT_EQ(carry_out(work_).error().file, files_.out() + "/b");
  EXPECT_EQ(files_.got("a"), "old a");
}

TEST_F(MovesTest, ADamagedListMovesNothing) {
  Move outside = staged("a", "new a");
  outside.name = "../a";
  Move stranger = staged("b", "new b");
  stranger.from = "config.json";
  for (const Move& move : {outside, stranger}) {
    ASSERT_TRUE(begin_moves({.moves = {move}, .old = {}}, work_).ok());
    EXPECT_EQ(carry_out(work_).error().message, "the list of moves is damaged");
  }
  ASSERT_TRUE(work_.files().write_text(moving_name, "{}").ok());
  EXPECT_EQ(carry_out(work_).error().code, ErrorCode::parse);
}

}  // namespace
}  // namespace tensorcast::checkpoint
