// SPDX-License-Identifier: Apache-2.0
// Folders of this machine: links, locks, empty folders, Hugging Face's cache.
#include "checkpoint/store/local_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io/test_folder.hpp"

namespace tensorcast::checkpoint {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

Error busy() { return Error{.code = ErrorCode::invalid_argument, .message = "busy"}; }

TEST(LocalFolder, FollowsLinksOfASourceThatStayInside) {
  const io::TestFolder here;
  fs::create_directories(here / "in/sub");
  io::put_file(here / "in/sub/file", "inside");
  io::put_file(here / "secret", "outside");
  fs::create_symlink("sub/file", here / "in/link");
  fs::create_symlink("../secret", here / "in/out");
  EXPECT_EQ(read_text(open_source(here / "in", "link").value(), 10).value(), "inside");
  for (const Error& error : {open_source(here / "in", "out").error(), check_source(here / "in", "out").error(),
                             open_local(here / "in", "out").error()}) {
    EXPECT_EQ(error.code, ErrorCode::parse);
    EXPECT_EQ(error.file, here / "in/out");
  }
}

TEST(LocalFolder, WhatWasMadeAndIsEmptyGoes) {
  const io::TestFolder here;
  fs::create_directories(here / "old");
  for (const char* name : {"old", "new/out", "new/out"}) {
    EXPECT_TRUE(Folder::create(here / name).ok());
  }
  EXPECT_TRUE(fs::exists(here / "old"));
  EXPECT_FALSE(fs::exists(here / "new"));
  {
    const auto folder = Folder::create(here / "new/out").value();
    ASSERT_TRUE(folder->write_text("file", "text").ok());
  }
  EXPECT_TRUE(fs::exists(here / "new/out/file"));
}

TEST(LocalFolder, FollowsNoLinksOfAnOutput) {
  const io::TestFolder here;
  fs::create_directories(here / "out");
  fs::create_directories(here / "elsewhere");
  io::put_file(here / "elsewhere/file", "text");
  fs::create_directory_symlink(here / "elsewhere", here / "out/link");
  const auto folder = Folder::open(here / "out").value();
  EXPECT_EQ(folder->find("link").value()->kind, io::Found::Kind::link);
  EXPECT_EQ(folder->names_below("").value(), Names{"link"});
  EXPECT_FALSE(folder->read_text("link/file", 10).ok());
  EXPECT_FALSE(folder->write_text("link/new", "x").ok());
  EXPECT_FALSE(folder->remove("link/file").ok());
  EXPECT_TRUE(fs::exists(here / "elsewhere/file"));
}

TEST(LocalFolder, SnapshotsOfACacheHaveTheirFilesInBlobs) {
  const io::TestFolder here;
  fs::create_directories(here / "models--a--b/snapshots/1");
  fs::create_directories(here / "models--a--b/blobs");
  io::put_file(here / "models--a--b/blobs/f00", "blob");
  fs::create_symlink("../../blobs/f00", here / "models--a--b/snapshots/1/config.json");
  const std::string snapshot = snapshot_of(here / "models--a--b").value();
  EXPECT_EQ(snapshot, here / "models--a--b/snapshots/1");
  EXPECT_EQ(read_text(open_source(snapshot, "config.json").value(), 10).value(), "blob");
  fs::create_directories(here / "models--a--b/snapshots/2");
  EXPECT_NE(snapshot_of(here / "models--a--b").error().message.find("2 snapshots: 1, 2"), std::string::npos);
  fs::create_directories(here / "models--a--b/refs");
  io::put_file(here / "models--a--b/refs/main", "2\n");
  EXPECT_EQ(snapshot_of(here / "models--a--b").value(), here / "models--a--b/snapshots/2");
  EXPECT_EQ(snapshot_of(here / "models--a--b/refs").value(), here / "models--a--b/refs");
}

TEST(LocalFolder, ALockExcludesOthersAndKnowsItsFolder) {
  const io::TestFolder here;
  const auto folder = Folder::create(here / "a/b/out").value();
  ASSERT_TRUE(folder->create_folder("state").ok());
  {
    const auto lock = folder->lock("state", "lock", io::LockKind::exclusive, busy()).value();
    ASSERT_TRUE(lock.has_value());
    EXPECT_TRUE(lock->is_still().value());
    EXPECT_EQ(folder->lock("state", "lock", io::LockKind::shared, busy()).error().message, "busy");
    ASSERT_TRUE(folder->move_folder("state", "old").value());
    EXPECT_FALSE(lock->is_still().value());
  }
  EXPECT_TRUE(folder->lock("old", "lock", io::LockKind::shared, busy()).ok());
  EXPECT_EQ(folder->lock("state", "lock", io::LockKind::shared, busy()).error().code, ErrorCode::io);
}

TEST(LocalFolder, RemovesEmptyFoldersOnly) {
  const io::TestFolder here;
  const auto folder = Folder::open(here.path().string()).value();
  for (const char* name : {"a/b/c", "a/d", "e"}) ASSERT_TRUE(folder->create_folder(name).ok());
  ASSERT_TRUE(folder->write_text("a/d/file", "x").ok());
  ASSERT_TRUE(folder->remove_empty_folders("a").ok());
  EXPECT_EQ(folder->names_in("a/").value(), Names{"a/d/"});
  ASSERT_TRUE(folder->remove_empty_folder("e").ok());
  EXPECT_TRUE(folder->remove_empty_folders("e").ok());
  EXPECT_EQ(folder->names_in("").value(), Names{"a/"});
}

TEST(LocalFolder, ListsEmptyFoldersAndRefusesLinksToFolders) {
  const io::TestFolder here;
  fs::create_directories(here / "in/empty/deep");
  fs::create_directories(here / "in/full");
  io::put_file(here / "in/full/file", "x");
  EXPECT_EQ(list_folder(here / "in").value().empty_folders, Names{"empty/deep"});
  fs::create_directory_symlink("full", here / "in/link");
  EXPECT_EQ(list_folder(here / "in").error().file, here / "in/link");
}

TEST(LocalFolder, SaysWhatIsNotThere) {
  const io::TestFolder here;
  EXPECT_EQ(Folder::open(here / "none").error().code, ErrorCode::io);
  EXPECT_FALSE(has_folder_above(here / "none/out"));
  EXPECT_EQ(real_path(std::string("a\0b", 3)).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(is_folder(std::string("/\0", 2)));
}

}  // namespace
}  // namespace tensorcast::checkpoint
