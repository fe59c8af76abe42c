// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/whole_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "io/test_folder.hpp"

namespace tensorcast {
namespace {

TEST(WholeFile, WritesAndReadsBack) {
  const io::TestFolder folder;
  ASSERT_TRUE(write_whole_file(folder / "a", "text").ok());
  EXPECT_EQ(read_whole_file(folder / "a", 4).value(), "text");
  EXPECT_EQ(read_whole_file(folder / "a", 3).error().code, ErrorCode::unsupported);
  EXPECT_EQ(write_whole_file(folder / "a", "new").error().code, ErrorCode::invalid_argument);
  ASSERT_TRUE(write_whole_file(folder / "a", "new", {.overwrite = true}).ok());
  EXPECT_EQ(read_whole_file(folder / "a", 4).value(), "new");
  EXPECT_EQ(folder.entries(), 1u);
}

// Opening one end of a pipe waits for the other: both functions must fail at once.
TEST(WholeFile, PipesAndDevicesAreErrors) {
  const io::TestFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/null")}) {
    EXPECT_EQ(read_whole_file(path, 10).error().code, ErrorCode::io) << path;
    EXPECT_EQ(write_whole_file(path, "text", {.overwrite = true}).error().code, ErrorCode::invalid_argument) << path;
  }
}

TEST(WholeFile, ADanglingLinkIsNotWrittenThrough) {
  const io::TestFolder folder;
  std::filesystem::create_symlink("later", folder / "link");
  EXPECT_EQ(write_whole_file(folder / "link", "text", {.overwrite = true}).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(folder / "later"));
}

}  // namespace
}  // namespace tensorcast
