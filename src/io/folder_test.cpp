// SPDX-License-Identifier: Apache-2.0
#include "io/folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "io/folder_lock.hpp"
#include "io/test_folder.hpp"
#include "io/written_files.hpp"

namespace tensorcast::io {
namespace {

namespace fs = std::filesystem;

class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    fs::create_directories(folder_ / "out/inner");
    fs::create_directory(folder_ / "elsewhere");
    put_file(folder_ / "elsewhere/file", "kept");
    put_file(folder_ / "out/file", "text");
    fs::create_directory_symlink("../elsewhere", folder_ / "out/link");
    fs::create_symlink("../elsewhere/file", folder_ / "out/file-link");
  }
  [[nodiscard]] Folder out() const { return Folder::open(folder_ / "out").value(); }

  TestFolder folder_;
};

TEST_F(FolderTest, FollowsNoLinkInside) {
  const Folder out = this->out();
  for (const char* name : {"link/file", "file-link", "../elsewhere/file", "/etc/passwd", "link/..", "", "./file"}) {
    EXPECT_FALSE(out.open_file(name).ok()) << name;
  }
  EXPECT_FALSE(out.open_below("link").ok());
  EXPECT_FALSE(out.create_below("link").ok());
  EXPECT_FALSE(out.create_below("link/new").ok());
  EXPECT_FALSE(out.create_file("link/new").ok());
  EXPECT_FALSE(out.find("link/file").ok());
  EXPECT_FALSE(out.remove_file("link/file").ok());
  EXPECT_FALSE(out.move("file", out, "link/file").ok());
  EXPECT_EQ(out.find("link").value()->kind, Found::Kind::link);
  EXPECT_EQ(out.find("file-link").value()->kind, Found::Kind::link);
  EXPECT_EQ(file_contents(folder_ / "elsewhere/file"), "kept");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "elsewhere"), {}), 1);
}

TEST_F(FolderTest, AFileReplacesALinkAndNotWhatItNames) {
  const Folder out = this->out();
  Result<OutputFile> file = out.create_file("file-link");
  ASSERT_TRUE(file.ok()) << file.error().describe();
  ASSERT_TRUE(file->append(bytes_of("new")).ok());
  EXPECT_TRUE(fs::is_symlink(folder_ / "out/file-link"));
  ASSERT_TRUE(file->commit().ok());
  EXPECT_FALSE(fs::is_symlink(folder_ / "out/file-link"));
  EXPECT_EQ(file_contents(folder_ / "out/file-link"), "new");
  EXPECT_EQ(file_contents(folder_ / "elsewhere/file"), "kept");
  EXPECT_FALSE(out.create_file("inner").ok());
}

TEST_F(FolderTest, StaysTheFolderThatWasOpened) {
  const Folder out = this->out();
  const Folder inner = out.open_below("inner").value();
  EXPECT_TRUE(inner.is_still(out, "inner").value());
  fs::rename(folder_ / "out/inner", folder_ / "out/away");
  EXPECT_FALSE(inner.is_still(out, "inner").value());
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "out/inner");
  EXPECT_FALSE(inner.is_still(out, "inner").value());
  ASSERT_TRUE(inner.create_file("new").value().commit().ok());
  EXPECT_TRUE(fs::exists(folder_ / "out/away/new"));
  ASSERT_TRUE(inner.remove_file("new").ok());
  fs::remove(folder_ / "out/away");
  Result<OutputFile> late = inner.create_file("late");
  EXPECT_FALSE(late.ok() && late->commit().ok()) << "the folder is gone";
}

TEST_F(FolderTest, MovesRemovesAndLists) {
  const Folder out = this->out();
  const Folder deeper = out.create_below("a/b").value();
  ASSERT_TRUE(out.move("file", deeper, "moved").ok());
  EXPECT_EQ(out.find("a/b/moved").value()->bytes, 4u);
  EXPECT_FALSE(out.find("file").value().has_value());
  EXPECT_FALSE(out.find("no/such/file").value().has_value());
  EXPECT_FALSE(out.move("file", deeper, "again").ok());
  EXPECT_TRUE(out.remove_empty("a/b").ok());
  EXPECT_TRUE(fs::exists(folder_ / "out/a/b/moved"));
  EXPECT_TRUE(out.remove_file("a/b/moved").ok());
  EXPECT_TRUE(out.remove_file("a/b/moved").ok());
  EXPECT_TRUE(out.remove_empty("a/b").ok());
  EXPECT_FALSE(fs::exists(folder_ / "out/a/b"));
  ASSERT_EQ(::mkfifo((folder_ / "out/pipe").c_str(), 0600), 0);
  std::string names;
  for (const auto& [name, found] : out.list().value()) names += name + std::to_string(static_cast<int>(found.kind));
  EXPECT_EQ(names, "a1file-link2inner1link2pipe3");
}

TEST_F(FolderTest, Locks) {
  const Folder out = this->out();
  const Error busy{.code = ErrorCode::io, .message = "busy"};
  const auto take = [&](LockKind kind) { return FolderLock::take(out, "lock", kind, busy); };
  {
    const Result<FolderLock> one = take(LockKind::shared);
    const Result<FolderLock> two = take(LockKind::shared);
    EXPECT_TRUE(one.ok() && two.ok());
    EXPECT_EQ(take(LockKind::exclusive).error().message, "busy");
  }
  const Result<FolderLock> alone = take(LockKind::exclusive);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(take(LockKind::shared).error().message, "busy");
  fs::remove(folder_ / "out/lock");
  EXPECT_TRUE(take(LockKind::exclusive).ok()) << "another file, another lock";
  fs::remove(folder_ / "out/lock");
  fs::create_symlink("file", folder_ / "out/lock");
  EXPECT_FALSE(take(LockKind::shared).ok());
}

TEST_F(FolderTest, TheRecordKnowsWhatWasWritten) {
  const Folder out = this->out();
  const std::string sha256 = sha256_of_file(out.open_file("file").value()).value();
  WrittenFile file{
      .name = "file", .bytes = 4, .version = std::to_string(out.find("file").value()->modified_ns), .sha256 = sha256};
  const std::string text = written_files_text({.identity = "id", .files = {file}});
  const WrittenFiles read = parse_written_files(text, "record").value();
  EXPECT_EQ(read.identity, "id");
  ASSERT_EQ(read.files.size(), 1u);
  EXPECT_EQ(read.files[0].sha256, sha256);
  EXPECT_TRUE(is_as_written(out, read.files[0]).value());
  file.version = "0";  // copied: the hash decides
  EXPECT_TRUE(is_as_written(out, file).value());
  put_file(folder_ / "out/file", "tex2");
  EXPECT_FALSE(is_as_written(out, file).value());
  put_file(folder_ / "out/file", "longer");
  EXPECT_FALSE(is_as_written(out, file).value());
  fs::remove(folder_ / "out/file");
  EXPECT_FALSE(is_as_written(out, file).value());
  file.name = "file-link";
  EXPECT_FALSE(is_as_written(out, file).value());
  for (const char* damaged : {"", "[]", "{}", "{\"format\": 1}"}) {
    EXPECT_FALSE(parse_written_files(damaged, "record").ok());
  }
  std::string no_hash = text;
  no_hash.replace(no_hash.find(sha256), sha256.size(), "");
  EXPECT_FALSE(parse_written_files(no_hash, "record").ok());
}

}  // namespace
}  // namespace tensorcast::io
