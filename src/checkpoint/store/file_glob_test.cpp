// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/file_glob.hpp"

#include <gtest/gtest.h>

namespace tensorcast::checkpoint {
namespace {

bool matches(const std::string& glob, const std::string& name) {
  Result<FileGlobs> globs = FileGlobs::compile({glob});
  EXPECT_TRUE(globs.ok()) << glob;
  return globs.ok() && globs->match(name);
}

TEST(FileGlobs, WithoutSlashMatchNamesInEveryFolder) {
  EXPECT_TRUE(matches("*.bin", "model.bin"));
  EXPECT_TRUE(matches("*.bin", "unet/model.bin"));
  EXPECT_FALSE(matches("*.bin", "model.bin.json"));
  EXPECT_FALSE(matches("m?del", "m/del"));
  EXPECT_TRUE(matches("original", "original/a/b"));
  EXPECT_TRUE(matches("original/", "original/a/b"));
  EXPECT_FALSE(matches("original", "originals"));
}

TEST(FileGlobs, WithSlashBeginAtTheFolder) {
  EXPECT_TRUE(matches("unet/*.bin", "unet/a.bin"));
  EXPECT_FALSE(matches("unet/*.bin", "unet/b/a.bin"));
  EXPECT_TRUE(matches("unet/**.bin", "unet/b/a.bin"));
  EXPECT_FALSE(matches("unet/*.bin", "x/unet/a.bin"));
  EXPECT_TRUE(matches("/config.json", "config.json"));
  EXPECT_FALSE(matches("/config.json", "unet/config.json"));
}

TEST(FileGlobs, SetsAndSpecialCharacters) {
  EXPECT_TRUE(matches("[a-c]x", "bx"));
  EXPECT_FALSE(matches("[!a-c]x", "bx"));
  EXPECT_TRUE(matches("a+(b).[", "a+(b).["));
  EXPECT_FALSE(matches("a.b", "axb"));
}

TEST(FileGlobs, OneThatMatchesNothingIsAnError) {
  Result<FileGlobs> globs = FileGlobs::compile({"a", "b"});
  ASSERT_TRUE(globs.ok());
  EXPECT_TRUE(globs->match("a"));
  EXPECT_EQ(globs->check_all_matched().error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(FileGlobs::compile({""}).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace tensorcast::checkpoint
