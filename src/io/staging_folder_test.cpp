// SPDX-License-Identifier: Apache-2.0
#include "io/staging_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "io/hidden_name.hpp"
#include "io/output_file.hpp"
#include "io/test_folder.hpp"

namespace tensorcast::io {
namespace {

namespace fs = std::filesystem;

class StagingFolderTest : public testing::Test {
 protected:
  TestFolder folder_;
};

TEST_F(StagingFolderTest, GoesWithItsFiles) {
  {
    const Result<StagingFolder> staging = StagingFolder::create(folder_ / "out");
    ASSERT_TRUE(staging.ok()) << staging.error().describe();
    EXPECT_EQ(fs::path(staging->path()).parent_path(), folder_.path());
    EXPECT_EQ(fs::status(staging->path()).permissions(), fs::perms::owner_all);
    put_file(staging->path() + "/out", "new");
    put_file(staging->path() + "/.out.data", "new");
  }
  EXPECT_EQ(folder_.entries(), 0u);
}

TEST_F(StagingFolderTest, WritersOfOneNameHaveTheirOwn) {
  const Result<StagingFolder> first = StagingFolder::create(folder_ / "out");
  const Result<StagingFolder> second = StagingFolder::create(folder_ / "out");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->path(), second->path());
}

TEST_F(StagingFolderTest, TheNextWriterRemovesOneThatWasLeft) {
  const std::string left = folder_ / hidden_name("out", 0);
  fs::create_directory(left);
  put_file(left + "/out", "old");
  { ASSERT_TRUE(StagingFolder::create(folder_ / "out").ok()); }
  EXPECT_EQ(folder_.entries(), 0u);
  fs::create_directory(left);
  put_file(left + "/out", "old");
  { ASSERT_TRUE(OutputFile::create(folder_ / "out", false).ok()); }
  EXPECT_EQ(folder_.entries(), 0u);
}

TEST_F(StagingFolderTest, AFolderWithMoreThanFilesStays) {
  const std::string other = folder_ / hidden_name("out", 0);
  fs::create_directories(other + "/folder");
  const Result<StagingFolder> staging = StagingFolder::create(folder_ / "out");
  ASSERT_TRUE(staging.ok());
  EXPECT_NE(staging->path(), other);
  EXPECT_TRUE(fs::exists(other + "/folder"));
}

TEST_F(StagingFolderTest, ALinkInItsPlaceIsNotFollowed) {
  fs::create_directory(folder_ / "elsewhere");
  put_file(folder_ / "elsewhere/file", "kept");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / hidden_name("out", 0));
  { ASSERT_TRUE(StagingFolder::create(folder_ / "out").ok()); }
  EXPECT_EQ(file_contents(folder_ / "elsewhere/file"), "kept");
}

TEST_F(StagingFolderTest, MissingFolder) {
  const Result<StagingFolder> staging = StagingFolder::create(folder_ / "no/out");
  ASSERT_FALSE(staging.ok());
  EXPECT_EQ(staging.error().code, ErrorCode::io);
}

TEST_F(StagingFolderTest, AFileThatIsAdoptedMovesToItsPlace) {
  const Result<StagingFolder> staging = StagingFolder::create(folder_ / "out");
  ASSERT_TRUE(staging.ok());
  const std::string made = staging->path() + "/out";
  put_file(made, "new");
  put_file(folder_ / "out", "old");
  ::chmod((folder_ / "out").c_str(), 0640);
  const Result<OutputFile> refused = OutputFile::adopt(made, folder_ / "out", false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "the file exists already");
  ASSERT_TRUE(fs::exists(made));
  Result<OutputFile> file = OutputFile::adopt(made, folder_ / "out", true);
  ASSERT_TRUE(file.ok()) << file.error().describe();
  EXPECT_EQ(file->size(), 3u);
  EXPECT_EQ(file_contents(folder_ / "out"), "old");
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(file_contents(folder_ / "out"), "new");
  EXPECT_EQ(static_cast<unsigned>(fs::status(folder_ / "out").permissions()), 0640u);
  EXPECT_FALSE(fs::exists(made));
}

TEST_F(StagingFolderTest, AFileThatSomebodyMakesMeanwhileStays) {
  put_file(folder_ / "made", "new");
  Result<OutputFile> file = OutputFile::adopt(folder_ / "made", folder_ / "out", false);
  ASSERT_TRUE(file.ok());
  put_file(folder_ / "out", "theirs");
  EXPECT_EQ(file->commit().error().message, "the file exists already");
  EXPECT_EQ(file_contents(folder_ / "out"), "theirs");
}

TEST_F(StagingFolderTest, AFileThatIsAdoptedFollowsALink) {
  put_file(folder_ / "made", "new");
  fs::create_directory(folder_ / "sub");
  put_file(folder_ / "sub/file", "old");
  fs::create_symlink("sub/file", folder_ / "out");
  Result<OutputFile> file = OutputFile::adopt(folder_ / "made", folder_ / "out", true);
  ASSERT_TRUE(file.ok() && file->commit().ok());
  EXPECT_TRUE(fs::is_symlink(folder_ / "out"));
  EXPECT_EQ(file_contents(folder_ / "sub/file"), "new");
}

}  // namespace
}  // namespace tensorcast::io
