// SPDX-License-Identifier: Apache-2.0
#include "io/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "io/file_descriptor.hpp"
#include "io/hidden_name.hpp"
#include "io/input_file.hpp"
#include "io/memory_store.hpp"
#include "io/test_folder.hpp"

namespace tensorcast::io {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  TestFolder folder_;
};

TEST_F(OutputFileTest, AppearsOnlyOnCommit) {
  const std::string path = folder_ / "out";
  Result<OutputFile> file = OutputFile::create(path, false);
  ASSERT_TRUE(file.ok()) << file.error().describe();
  ASSERT_TRUE(file->append(bytes_of("hello")).ok());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(file->patch(1, bytes_of("u")).ok());
  EXPECT_EQ(file->patch(5, bytes_of("u")).error().code, ErrorCode::internal);
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(file_contents(path), "hullo");
  EXPECT_EQ(folder_.entries(), 1u);
}

TEST_F(OutputFileTest, CanBeReadBackBeforeCommit) {
  Result<OutputFile> file = OutputFile::create(folder_ / "out", false);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append(bytes_of("hello")).ok());
  const Result<InputFile> back = InputFile::open(file->temporary_path());
  ASSERT_TRUE(back.ok()) << back.error().describe();
  std::vector<std::byte> got(5);
  ASSERT_TRUE(back->read(0, got).ok());
  EXPECT_EQ(got, bytes_of("hello"));
}

TEST_F(OutputFileTest, SendsAUrlsFileToTheStore) {
  const auto store = std::make_shared<MemoryStore>();
  EXPECT_EQ(OutputFile::create("mem://b/out", false).error().code, ErrorCode::unsupported);
  set_remote_store(store);
  const auto write = [](bool overwrite, bool commit) -> Result<void> {
    Result<OutputFile> file = OutputFile::create("mem://b/out", overwrite);
    if (!file) return file.error();
    EXPECT_TRUE(file->append(bytes_of("hello")).ok());
    EXPECT_TRUE(file->patch(1, bytes_of("u")).ok());
    const Result<InputFile> back = InputFile::open(file->temporary_path());
    EXPECT_TRUE(back.ok() && back->size() == 5);
    return commit ? file->commit() : Result<void>();
  };
  EXPECT_TRUE(write(false, false).ok());
  EXPECT_TRUE(store->files.empty());
  EXPECT_TRUE(OutputFile::check_place("mem://b/out", false).ok());
  EXPECT_TRUE(write(false, true).ok());
  EXPECT_EQ(store->files["mem://b/out"], "hullo");
  EXPECT_EQ(write(false, true).error().describe(), "mem://b/out: the file exists already; `overwrite` replaces it");
  EXPECT_FALSE(OutputFile::check_place("mem://b/out", false).ok());
  EXPECT_TRUE(write(true, true).ok());
  set_remote_store(nullptr);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  put_file(folder_ / "out", "old");
  {
    Result<OutputFile> file = OutputFile::create(folder_ / "out", true);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->append(bytes_of("new")).ok());
  }
  EXPECT_EQ(file_contents(folder_ / "out"), "old");
  EXPECT_EQ(folder_.entries(), 1u);
}

TEST_F(OutputFileTest, OverwritesOnlyWhenAskedTo) {
  put_file(folder_ / "out", "old");
  const Result<OutputFile> refused = OutputFile::create(folder_ / "out", false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().message, "the file exists already");

  Result<OutputFile> file = OutputFile::create(folder_ / "out", true);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append(bytes_of("new")).ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(file_contents(folder_ / "out"), "new");
  EXPECT_EQ(folder_.entries(), 1u);
}

TEST_F(OutputFileTest, DoesNotReplaceWhatAppearedMeanwhile) {
  Result<OutputFile> file = OutputFile::create(folder_ / "out", false);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append(bytes_of("new")).ok());
  put_file(folder_ / "out", "somebody else's");
  const Result<void> committed = file->commit();
  ASSERT_FALSE(committed.ok());
  EXPECT_EQ(committed.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(file_contents(folder_ / "out"), "somebody else's");
}

TEST_F(OutputFileTest, KeepsTheModeOfTheOldFile) {
  put_file(folder_ / "out", "old");
  ASSERT_EQ(::chmod((folder_ / "out").c_str(), 0640), 0);
  Result<OutputFile> file = OutputFile::create(folder_ / "out", true);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->commit().ok());
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
}

TEST_F(OutputFileTest, WritesThroughASymbolicLink) {
  fs::create_directory(folder_ / "real");
  put_file(folder_ / "real/data", "old");
  fs::create_symlink("real/data", folder_ / "link");
  Result<OutputFile> file = OutputFile::create(folder_ / "link", true);
  ASSERT_TRUE(file.ok()) << file.error().describe();
  ASSERT_TRUE(file->append(bytes_of("new")).ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(file_contents(folder_ / "real/data"), "new");
}

TEST_F(OutputFileTest, DoesNotReplaceALinkThatAppearsMeanwhile) {
  put_file(folder_ / "theirs", "theirs");
  Result<OutputFile> file = OutputFile::create(folder_ / "out", true);
  ASSERT_TRUE(file.ok()) << file.error().describe();
  fs::create_symlink("theirs", folder_ / "out");
  EXPECT_EQ(file->commit().error().message, "cannot write: a symbolic link, which was not there before");
  EXPECT_TRUE(fs::is_symlink(folder_ / "out"));
  EXPECT_EQ(file_contents(folder_ / "theirs"), "theirs");
  EXPECT_EQ(folder_.entries(), 2u);
}

TEST_F(OutputFileTest, RefusesWhatIsNoFile) {
  fs::create_symlink("nowhere", folder_ / "dangling");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(OutputFile::create(folder_.path().string(), true).error().message, "cannot write: a directory");
  EXPECT_EQ(OutputFile::create(folder_ / "pipe", true).error().message, "cannot write: not a regular file");
  EXPECT_EQ(OutputFile::create(folder_ / "dangling", true).error().message,
            "cannot write: a symbolic link that leads nowhere");
  EXPECT_EQ(OutputFile::create(folder_ / "no/such/folder", true).error().message, "the folder does not exist");
  EXPECT_EQ(OutputFile::create(folder_ / "new/", true).error().code, ErrorCode::invalid_argument);
}

TEST_F(OutputFileTest, AVeryLongNameWorks) {
  const std::string path = folder_ / (std::string(255, 'n'));
  put_file(path, "old");
  Result<OutputFile> file = OutputFile::create(path, true);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(fs::file_size(path), 0u);
}

// Only the lock decides, not process numbers or ages.
TEST_F(OutputFileTest, RemovesWhatADeadWriterLeft) {
  const std::string left = folder_ / hidden_name("out", 0);
  const std::string other = folder_ / hidden_name("other", 0);
  put_file(left, "half");
  put_file(other, "half");
  ASSERT_TRUE(OutputFile::create(folder_ / "out", false).ok());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other));
}

// As if the system could not tell that the file has the name.
TEST_F(OutputFileTest, LeavesNothingOfAHiddenFileThatItCannotLock) {
  const std::string hidden = hidden_name("out", 0);
  const FileDescriptor folder(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  put_file(folder_ / hidden, "half");
  put_file(folder_ / "other", "other");
  FileDescriptor fd(::open((folder_ / "other").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(lock_hidden_file(folder.get(), hidden, fd));
  EXPECT_FALSE(fd);
  EXPECT_EQ(folder_.entries(), 1u);
  EXPECT_EQ(file_contents(folder_ / "other"), "other");
}

TEST_F(OutputFileTest, AnUnnamedFileIsHeldAndCanBeKept) {
  const Result<OutputFile> file = OutputFile::create(folder_ / "out", false);
  ASSERT_TRUE(file.ok());
  if (folder_.entries() != 0) GTEST_SKIP() << "this file system has no unnamed files";
  const Result<InputFile> again = InputFile::open(file->temporary_path());
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->keep());
  EXPECT_FALSE(again->may_go());
}

TEST_F(OutputFileTest, LeavesWhatALivingWriterHolds) {
  put_file(folder_ / "out", "old");
  const std::string held = folder_ / hidden_name("out", 0);
  put_file(held, "half");
  const FileDescriptor writer(::open(held.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(writer.get(), LOCK_EX | LOCK_NB), 0);
  Result<OutputFile> file = OutputFile::create(folder_ / "out", true);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append(bytes_of("new")).ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(file_contents(folder_ / "out"), "new");
  EXPECT_EQ(file_contents(held), "half");
  EXPECT_EQ(folder_.entries(), 2u);
}

TEST_F(OutputFileTest, KilledWriterLeavesTheOldFile) {
  put_file(folder_ / "out", "old");
  int ready[2] = {};
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Result<OutputFile> file = OutputFile::create(folder_ / "out", true);
    const bool written = file.ok() && file->append(bytes_of("half")).ok();
    if (::write(ready[1], written ? "y" : "n", 1) == 1) ::pause();
    ::_exit(1);
  }
  char state = 0;
  ASSERT_EQ(::read(ready[0], &state, 1), 1);
  EXPECT_EQ(state, 'y');
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(file_contents(folder_ / "out"), "old");

  Result<OutputFile> file = OutputFile::create(folder_ / "out", true);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(folder_.entries(), 1u) << "a hidden file is left";
}

// Runs `body` in a child process and returns its exit status, so that limits and signals stay there.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(OutputFileTest, FileSizeLimitIsAnError) {
  const int status = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    Result<OutputFile> file = OutputFile::create(folder_ / "out", false);
    if (!file.ok()) return 3;
    const std::vector<std::byte> block(600);
    if (!file->append(block).ok()) return 4;
    const Result<void> full = file->append(block);
    if (full.ok()) return 5;
    return full.error().code == ErrorCode::io && full.error().message == "cannot write: File too large" ? 0 : 6;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder_.entries(), 0u);
}

// Without nameless files a hidden name must do: here because /proc, which names them, is missing.
TEST_F(OutputFileTest, HiddenNameWhereNamelessFilesCannotBe) {
  constexpr int cannot_unmount = 77;
  put_file(folder_ / "taken", "old");
  const int status = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/proc", "tmpfs", 0, "size=4k") != 0) {
      return cannot_unmount;
    }
    Result<OutputFile> fresh = OutputFile::create(folder_ / "fresh", false);
    if (!fresh.ok() || !fresh->append(bytes_of("new")).ok() || !fs::exists(fresh->temporary_path())) return 1;
    if (!fresh->commit().ok() || file_contents(folder_ / "fresh") != "new") return 2;
    Result<OutputFile> late = OutputFile::create(folder_ / "late", false);
    put_file(folder_ / "late", "somebody else's");
    if (!late.ok() || late->commit().ok() || file_contents(folder_ / "late") != "somebody else's") return 3;
    Result<OutputFile> taken = OutputFile::create(folder_ / "taken", true);
    if (!taken.ok() || !taken->append(bytes_of("new")).ok() || file_contents(folder_ / "taken") != "old") return 4;
    if (!taken->commit().ok() || file_contents(folder_ / "taken") != "new") return 5;
    return OutputFile::create(folder_ / "taken", true).ok() ? 0 : 6;  // the third one is given up
  });
  if (status == cannot_unmount) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder_.entries(), 3u) << "a hidden file is left";
}

TEST_F(OutputFileTest, FullDiskIsKnownBeforeTheWork) {
  const std::string disk = folder_ / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "needs the right to mount a tmpfs";
  {
    Result<OutputFile> file = OutputFile::create(disk + "/out", false);
    EXPECT_TRUE(file.ok());
    if (file.ok()) {
      const std::string full = "cannot write: No space left on device";
      const Result<void> reserved = file->reserve(1 << 20);
      EXPECT_EQ(reserved.ok() ? "reserved" : reserved.error().message, full);
      const Result<void> appended = file->append(std::vector<std::byte>(1 << 20));
      EXPECT_EQ(appended.ok() ? "appended" : appended.error().message, full);
    }
  }
  EXPECT_TRUE(fs::is_empty(disk));
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST_F(OutputFileTest, ReservedSpaceBeyondTheEndIsGivenBack) {
  Result<OutputFile> file = OutputFile::create(folder_ / "out", false);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->reserve(1 << 22).ok());
  ASSERT_TRUE(file->append(bytes_of("hello")).ok());
  ASSERT_TRUE(file->commit().ok());
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "out").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 5);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
}

}  // namespace
}  // namespace tensorcast::io
