// SPDX-License-Identifier: Apache-2.0
#include "io/input_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <stdexcept>

#include "io/memory_store.hpp"
#include "io/test_folder.hpp"

namespace tensorcast::io {
namespace {

class InputFileTest : public testing::Test {
 protected:
  void SetUp() override { put_file(path_, "0123456789"); }

  TestFolder folder_;
  std::string path_ = folder_ / "in";
};

TEST_F(InputFileTest, ReadsExactRanges) {
  const Result<InputFile> file = InputFile::open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 10u);
  std::array<std::byte, 4> got{};
  ASSERT_TRUE(file->read(6, got).ok());
  EXPECT_EQ(static_cast<char>(got[0]), '6');
  EXPECT_EQ(static_cast<char>(got[3]), '9');
  EXPECT_TRUE(file->read(10, {}).ok());
  EXPECT_EQ(file->read(7, got).error().code, ErrorCode::parse);
  EXPECT_EQ(file->read(~std::uint64_t{0}, got).error().code, ErrorCode::parse);
}

TEST_F(InputFileTest, ReadsMemoryAsAFile) {
  const std::string text = "0123456789";
  const InputFile file = InputFile::in_memory(std::as_bytes(std::span(text)));
  EXPECT_EQ(file.size(), 10u);
  EXPECT_FALSE(file.has_folder());
  std::array<std::byte, 4> got{};
  ASSERT_TRUE(file.read(6, got).ok());
  EXPECT_EQ(static_cast<char>(got[0]), '6');
  EXPECT_EQ(static_cast<char>(got[3]), '9');
  EXPECT_TRUE(file.read(10, {}).ok());
  EXPECT_EQ(file.read(7, got).error().code, ErrorCode::parse);
  EXPECT_EQ(file.read(~std::uint64_t{0}, got).error().code, ErrorCode::parse);
  file.will_need(0, 10);
  file.dont_need(0, 10);
}

// A source of ten bytes, each of which is its offset.
struct Counting final : ByteSource {
  std::uint64_t bytes = 10;
  std::optional<Error> error;
  bool throws = false;
  std::uint64_t size() const override { return bytes; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override {
    if (throws) throw std::runtime_error("no line");
    if (error) return *error;
    for (std::byte& byte : out) byte = static_cast<std::byte>(offset++);
    return {};
  }
};

TEST_F(InputFileTest, ReadsASource) {
  const auto source = std::make_shared<Counting>();
  const Result<InputFile> file = InputFile::of(source, "numbers");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(file->path(), "numbers");
  EXPECT_FALSE(file->has_folder());
  std::array<std::byte, 4> got{};
  ASSERT_TRUE(file->read(6, got).ok());
  EXPECT_EQ(got[3], std::byte{9});
  EXPECT_EQ(file->read(7, got).error().code, ErrorCode::parse);
  EXPECT_EQ(InputFile::of(nullptr, "numbers").error().file, "numbers");
}

TEST_F(InputFileTest, ASourceThatFailsNamesTheFile) {
  const auto source = std::make_shared<Counting>();
  const InputFile file = InputFile::of(source, "numbers").value();
  std::array<std::byte, 4> got{};
  source->throws = true;
  EXPECT_EQ(file.read(0, got).error().describe(), "numbers: no line");
  source->throws = false;
  source->error = Error{.code = ErrorCode::io, .message = "the line is cut", .file = "elsewhere"};
  EXPECT_EQ(file.read(0, got).error().code, ErrorCode::io);
  EXPECT_EQ(file.read(0, got).error().describe(), "numbers: the line is cut");
  source->error.reset();
  source->bytes = 9;
  EXPECT_EQ(file.read(0, got).error().code, ErrorCode::parse);
  EXPECT_EQ(file.read(0, got).error().describe(), "numbers: the source has 9 bytes, and had 10 when it was opened");
}

TEST_F(InputFileTest, ReadsUrlsFromTheStore) {
  const auto store = std::make_shared<MemoryStore>();
  store->files["mem://b/numbers"] = "0123456789";
  EXPECT_EQ(InputFile::open("mem://b/numbers").error().code, ErrorCode::unsupported);
  set_remote_store(store);
  const Result<InputFile> file = InputFile::open("mem://b/numbers");
  const Result<InputFile> missing = InputFile::open("mem://b/missing");
  set_remote_store(nullptr);
  ASSERT_TRUE(file.ok()) << file.error().describe();
  std::array<std::byte, 4> got{};
  ASSERT_TRUE(file->read(6, got).ok());
  EXPECT_EQ(static_cast<char>(got[3]), '9');
  EXPECT_EQ(missing.error().describe(), "mem://b/missing: there is no such file");
}

TEST_F(InputFileTest, NoticesAFileBehindAUrlThatIsWrittenAgain) {
  constexpr std::size_t bytes = std::size_t{20} << 20;
  const std::string url = "mem://b/numbers";
  for (const std::size_t part : {std::size_t{9} << 20, std::size_t{1} << 10}) {  // without a window, and with
    const auto store = std::make_shared<MemoryStore>();
    store->files[url] = std::string(bytes, 'a');
    set_remote_store(store);
    const Result<InputFile> file = InputFile::open(url);
    set_remote_store(nullptr);
    ASSERT_TRUE(file.ok());
    std::string got(part, '?');
    const auto out = std::as_writable_bytes(std::span(got));
    ASSERT_TRUE(file->read(0, out).ok());
    store->on_read = [&store = *store, url] { store.files[url] = std::string(bytes, 'b'); };
    EXPECT_EQ(file->read(bytes / 2, out).error().describe(), url + ": the file was written again while it was read");
    EXPECT_EQ(file->read(bytes - part, out).error().code, ErrorCode::io);
  }
}

TEST_F(InputFileTest, ReadsPartsOfAFileAndTextAsOne) {
  const Result<InputFile> source = InputFile::open(path_);
  ASSERT_TRUE(source.ok());
  const InputFile file = InputFile::spliced(
      *source,
      {{.bytes = 3, .offset = 7}, {.bytes = 2, .text = "ab"}, {.bytes = 2, .offset = 0}, {.bytes = 1, .text = "c"}});
  const std::string expected = "789ab01c";
  ASSERT_EQ(file.size(), expected.size());
  EXPECT_EQ(file.path(), path_);
  EXPECT_TRUE(file.has_folder());
  for (std::size_t begin = 0; begin <= expected.size(); ++begin) {
    for (std::size_t count = 0; begin + count <= expected.size(); ++count) {
      std::string got(count, '?');
      ASSERT_TRUE(file.read(begin, std::as_writable_bytes(std::span(got))).ok());
      EXPECT_EQ(got, expected.substr(begin, count));
    }
  }
  std::array<std::byte, 2> beyond{};
  EXPECT_EQ(file.read(7, beyond).error().code, ErrorCode::parse);
  file.will_need(0, 8);
  file.dont_need(0, 8);
}

TEST_F(InputFileTest, AFileThatShrinksWhileReadIsAnError) {
  const Result<InputFile> file = InputFile::open(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(::truncate(path_.c_str(), 3), 0);
  std::array<std::byte, 4> got{};
  const Result<void> read = file->read(2, got);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::parse);
  EXPECT_EQ(read.error().file, path_);
}

TEST_F(InputFileTest, RefusesWhatIsNoFile) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(InputFile::open(pipe).error().message, "cannot open: not a regular file");
  EXPECT_EQ(InputFile::open(folder_.path().string()).error().message, "cannot open: Is a directory");
  EXPECT_EQ(InputFile::open(path_ + "x").error().message, "cannot open: No such file or directory");
  EXPECT_EQ(InputFile::open("").error().message, "cannot open: the path is empty");
  EXPECT_EQ(InputFile::open(path_ + "x").error().file, path_ + "x");
}

TEST_F(InputFileTest, UnreadableFileSaysSo) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  ASSERT_EQ(::chmod(path_.c_str(), 0), 0);
  EXPECT_EQ(InputFile::open(path_).error().message, "cannot open: Permission denied");
}

TEST_F(InputFileTest, HintsBeyondTheEndAreHarmless) {
  const Result<InputFile> file = InputFile::open(path_);
  ASSERT_TRUE(file.ok());
  file->will_need(5, ~std::uint64_t{0});
  file->dont_need(~std::uint64_t{0}, 1);
  std::array<std::byte, 10> got{};
  EXPECT_TRUE(file->read(0, got).ok());
}

TEST_F(InputFileTest, OpensBelowAFolderOnly) {
  const std::string folder = folder_.path().string();
  ASSERT_EQ(::mkdir((folder_ / "sub").c_str(), 0700), 0);
  put_file(folder_ / "sub/data", "abc");
  EXPECT_EQ((*InputFile::open_below(folder, "sub/data")).size(), 3u);
  EXPECT_EQ((*InputFile::open_below(folder, ".//sub/./data")).size(), 3u);
  EXPECT_EQ((*InputFile::open_below(folder, "none/../sub/../sub/data")).size(), 3u);
  for (const std::string location : {"", "/etc/passwd", "..", "../in", "sub/../../in", "sub/..", "."}) {
    const Result<InputFile> file = InputFile::open_below(folder, location);
    ASSERT_FALSE(file.ok()) << location;
    EXPECT_EQ(file.error().code, ErrorCode::parse) << location;
  }
  EXPECT_EQ(InputFile::open_below(folder, std::string_view("in\0", 3)).error().code, ErrorCode::parse);
  EXPECT_EQ(InputFile::open_below(folder, "sub").error().message, "cannot open: Is a directory");
  EXPECT_EQ(InputFile::open_below(folder, "in/data").error().code, ErrorCode::io);
  EXPECT_EQ(InputFile::open_below(folder, "none").error().message, "cannot open: No such file or directory");
}

TEST_F(InputFileTest, SymbolicLinksAreNotFollowedBelowAFolder) {
  const std::string folder = folder_.path().string();
  ASSERT_EQ(::symlink("/etc", (folder_ / "elsewhere").c_str()), 0);
  ASSERT_EQ(::symlink("in", (folder_ / "link").c_str()), 0);
  EXPECT_EQ(InputFile::open_below(folder, "link").error().message, "cannot open: symbolic links are not followed here");
  EXPECT_EQ(InputFile::open_below(folder, "elsewhere/passwd").error().code, ErrorCode::io);
}

}  // namespace
}  // namespace tensorcast::io
