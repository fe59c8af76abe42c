// SPDX-License-Identifier: Apache-2.0
#include "io/hidden_name.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace tensorcast::io {
namespace {

constexpr std::size_t max_kept_name = 200;  // of the 255 bytes that a name may have

bool is_named(int folder, const std::string& hidden, int fd) noexcept {
  struct stat named {};
  struct stat open {};
  return ::fstatat(folder, hidden.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(fd, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace

std::string hidden_name(const std::string& name, int slot) {
  std::string hidden(1, '.');
  hidden.append(name, 0, max_kept_name).append(".tcast-").append(std::to_string(slot)).append(".tmp");
  return hidden;
}

bool lock_hidden_file(int folder, const std::string& hidden, FileDescriptor& fd) noexcept {
  const bool locked = ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  if (locked && is_named(folder, hidden, fd.get())) return true;
  fd.reset();
  remove_abandoned_file(folder, hidden);  // it may still be there, if the system could not tell
  return false;
}

bool remove_abandoned_file(int folder, const std::string& hidden) noexcept {
  const FileDescriptor fd(::openat(folder, hidden.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return errno == ENOENT;
  // Only the holder of the file's lock may remove its name.
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (!is_named(folder, hidden, fd.get()) || ::unlinkat(folder, hidden.c_str(), 0) == 0) return true;
  return errno == EISDIR && remove_hidden_folder(folder, hidden, fd.get());
}

bool remove_hidden_folder(int folder, const std::string& hidden, int fd) noexcept {
  FileDescriptor again(::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* entries = again ? ::fdopendir(again.get()) : nullptr;
  if (entries == nullptr) return false;
  again.release();
  while (const dirent* entry = ::readdir(entries)) ::unlinkat(fd, entry->d_name, 0);  // fails for "." and ".."
  ::closedir(entries);
  return ::unlinkat(folder, hidden.c_str(), AT_REMOVEDIR) == 0;
}

}  // namespace tensorcast::io
