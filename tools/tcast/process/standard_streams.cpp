// SPDX-License-Identifier: Apache-2.0
#include "process/standard_streams.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tcast {
namespace {

namespace fs = std::filesystem;
using tensorcast::Error;
using tensorcast::ErrorCode;
using tensorcast::Result;

constexpr std::size_t step_bytes = std::size_t{1} << 20;

Error failure(std::string_view doing) {
  return tensorcast::io_failure(fmt::format("cannot {}: {}", doing, std::generic_category().message(errno)));
}

bool is_regular(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

// Copies from the current offset of `from` to its end.
Result<void> copy_all(int from, int to, std::string_view reading, std::string_view writing) {
  std::vector<char> buffer(step_bytes);
  while (true) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got == 0) return {};
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure(reading);
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::write(to, buffer.data() + done, static_cast<std::size_t>(got - done));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return failure(writing);
      done += put;
    }
  }
}

// Opens a file of the temporary folder without a name.
int open_nameless() {
  std::error_code ignored;
  std::string name = (fs::temp_directory_path(ignored) / "tcast-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(name.c_str());
  return fd;
}

bool is_zip(int fd) {
  char head[4] = {};
  return ::pread(fd, head, sizeof head, 0) == sizeof head && std::string_view(head, 2) == "PK";
}

}  // namespace

Result<std::string> standard_input_as_file() {
  int fd = STDIN_FILENO;
  if (!is_regular(fd)) {
    fd = open_nameless();
    if (fd < 0) return failure("keep standard input in the temporary folder");
    TRY(copy_all(STDIN_FILENO, fd, "read standard input", "keep standard input in the temporary folder"));
  }
  if (is_zip(fd)) {
    return tensorcast::unsupported("an npz is not read from standard input, because its directory is at its end",
                                   "save it to a file first");
  }
#if defined(__APPLE__)
  return fmt::format("/dev/fd/{}", fd);
#else
  return fmt::format("/proc/self/fd/{}", fd);
#endif
}

StandardOutput::~StandardOutput() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

Result<std::string> StandardOutput::create() {
  std::error_code ignored;
  std::string name = (fs::temp_directory_path(ignored) / "tcast-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return failure("make a temporary folder");
  folder_ = name;
  return folder_ + "/output";
}

Result<void> StandardOutput::send() const {
  const int fd = ::open((folder_ + "/output").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failure("read the temporary file");
  auto sent = copy_all(fd, STDOUT_FILENO, "read the temporary file", "write to standard output");
  ::close(fd);
  return sent;
}

}  // namespace tcast
