// SPDX-License-Identifier: Apache-2.0
// What folders here and behind URLs have in common.
#include "checkpoint/store/folder.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "io/memory_store.hpp"
#include "io/sha256.hpp"
#include "io/test_folder.hpp"

namespace tensorcast::checkpoint {
namespace {

using Names = std::vector<std::string>;

class FolderTest : public testing::TestWithParam<bool> {
 protected:
  FolderTest() {
    set_remote_store(std::make_shared<MemoryStore>());
    folder_ = Folder::create(root_).value();
  }
  ~FolderTest() override { set_remote_store(nullptr); }

  void put(const std::string& name, const std::string& text) {
    const std::size_t slash = name.rfind('/');
    if (slash != std::string::npos) {
      ASSERT_TRUE(folder_->create_folder(name.substr(0, slash)).ok());
    }
    ASSERT_TRUE(folder_->write_text(name, text).ok());
  }

  io::TestFolder here_;
  std::string root_ = GetParam() ? "mem://bucket/out" : here_ / "out";
  std::unique_ptr<Folder> folder_;
};

TEST_P(FolderTest, FindsReadsMovesAndRemovesFiles) {
  put("a.json", "text");
  put("unet/b.json", "more");
  EXPECT_EQ(folder_->path(), root_);
  const auto found = folder_->find("unet/b.json").value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->kind, io::Found::Kind::file);
  EXPECT_EQ(found->bytes, 4);
  EXPECT_NE(found->version, "");
  EXPECT_FALSE(folder_->find("unet/c.json").value().has_value());
  EXPECT_EQ(folder_->read_text("a.json", 4).value(), "text");
  EXPECT_EQ(folder_->read_text("a.json", 3).error().code, ErrorCode::unsupported);
  EXPECT_EQ(folder_->read_text("none", 3).error().code, ErrorCode::io);
  ASSERT_TRUE(folder_->move("a.json", "unet/b.json").ok());
  EXPECT_EQ(folder_->read_text("unet/b.json", 100).value(), "text");
  ASSERT_TRUE(folder_->remove("unet/b.json").ok());
  EXPECT_TRUE(folder_->remove("unet/b.json").ok());
  EXPECT_EQ(folder_->names_below("").value(), Names{});
}

TEST_P(FolderTest, ListsNames) {
  for (const char* name : {"a", "unet/b", "unet/deep/c", "unet2/d"}) put(name, "x");
  EXPECT_EQ(folder_->names_in("").value(), (Names{"a", "unet/", "unet2/"}));
  EXPECT_EQ(folder_->names_in("unet/").value(), (Names{"unet/b", "unet/deep/"}));
  EXPECT_EQ(folder_->names_in("none/").value(), Names{});
  EXPECT_EQ(folder_->names_below("unet").value(), (Names{"unet/b", "unet/deep/c"}));
  EXPECT_EQ(folder_->names_below("none").value(), Names{});
  EXPECT_EQ(folder_->names_below("").value().size(), 4);
}

TEST_P(FolderTest, AFileAppearsOnCommit) {
  auto file = folder_->create_file("a", 3).value();
  ASSERT_TRUE(file->append(io::bytes_of("abc")).ok());
  EXPECT_FALSE(folder_->find("a").value().has_value());
  EXPECT_EQ(read_text(file->read_back().value(), 10).value(), "abc");
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(folder_->read_text("a", 10).value(), "abc");
  EXPECT_EQ(file->path(), root_ + "/a");
}

TEST_P(FolderTest, KnowsWhatWasWritten) {
  put("a", "abc");
  io::WrittenFile file{.name = "a", .bytes = 3, .version = {}, .sha256 = io::sha256_of("abc")};
  EXPECT_TRUE(folder_->is_as_written(file).value());
  file.sha256 = io::sha256_of("abd");
  EXPECT_FALSE(folder_->is_as_written(file).value());
  file.version = folder_->find("a").value()->version;
  EXPECT_TRUE(folder_->is_as_written(file).value());
  file.bytes = 4;
  EXPECT_FALSE(folder_->is_as_written(file).value());
  file.name = "none";
  EXPECT_FALSE(folder_->is_as_written(file).value());
}

TEST_P(FolderTest, PathsStandForFilesAndFolders) {
  put("unet/b", "text");
  EXPECT_TRUE(is_folder(root_ + "/unet"));
  EXPECT_FALSE(is_folder(root_ + "/unet/b"));
  EXPECT_TRUE(is_file(root_ + "/unet/b"));
  EXPECT_FALSE(is_file(root_ + "/unet"));
  EXPECT_EQ(file_bytes(root_ + "/unet/b"), 4);
  EXPECT_EQ(file_bytes(root_ + "/none"), std::nullopt);
  EXPECT_NE(free_bytes(root_ + "/none"), 0);
  EXPECT_TRUE(has_folder_above(root_ + "/new"));
  EXPECT_EQ(with_given_path(Error{.file = real_path(root_).value() + "/unet"}, root_ + "/").file, root_ + "/unet");
}

TEST_P(FolderTest, OpensFilesOfASource) {
  put("unet/b", "text");
  EXPECT_EQ(read_text(open_source(root_, "unet/b").value(), 10).value(), "text");
  for (const char* name : {"", "../out/unet/b", "/unet/b", "unet//b"}) {
    EXPECT_EQ(open_source(root_, name).error().code, ErrorCode::parse) << name;
  }
  EXPECT_EQ(open_source(root_, "none").error().code, ErrorCode::io);
  EXPECT_TRUE(check_source(root_, "unet/b").ok());
}

TEST_P(FolderTest, ListsASource) {
  for (const char* name : {".git/x", "a", "unet/.cache/y/z", "unet/.b.tcast-0.tmp", "unet/c", "skip.txt"})
    put(name, "xy");
  FileGlobs skip = FileGlobs::compile({"*.txt"}).value();
  const Listing listing = list_folder(root_, &skip).value();
  ASSERT_EQ(listing.files.size(), 2);
  EXPECT_EQ(listing.files[0].name, "a");
  EXPECT_EQ(listing.files[1].name, "unet/c");
  EXPECT_EQ(listing.files[1].bytes, 2);
  Names left_out;
  for (const LeftOut& left : listing.left_out) left_out.push_back(left.name);
  EXPECT_EQ(left_out, (Names{".git/", "skip.txt", "unet/.cache/"}));
}

INSTANTIATE_TEST_SUITE_P(Places, FolderTest, testing::Bool(),
                         [](const auto& where) { return where.param ? "Remote" : "Local"; });

}  // namespace
}  // namespace tensorcast::checkpoint
