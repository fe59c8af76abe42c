// SPDX-License-Identifier: Apache-2.0
#include "io/system_calls.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#if defined(__linux__)
#include <sys/syscall.h>
#include <sys/vfs.h>
#endif
#if defined(__GLIBC__)
#define TENSORCAST_HAS_RENAMEAT2 __GLIBC_PREREQ(2, 28)  // no macro of other C libraries
#else
#define TENSORCAST_HAS_RENAMEAT2 0
#endif

namespace tensorcast::io {
namespace {

template <class Time>
std::int64_t nanoseconds(const Time& time) noexcept {
  constexpr std::int64_t ns_per_second = 1000000000;
  return std::int64_t{time.tv_sec} * ns_per_second + time.tv_nsec;
}

}  // namespace

#if defined(__APPLE__)

void advise(int fd, off_t offset, off_t bytes, Advice advice) noexcept {
  if (advice != Advice::will_need) return;
  constexpr off_t most = off_t{1} << 30;  // the argument is an int
  struct radvisory wanted {
    .ra_offset = offset, .ra_count = static_cast<int>(bytes == 0 || bytes > most ? most : bytes)
  };
  ::fcntl(fd, F_RDADVISE, &wanted);
}

std::int64_t modified_ns(const struct stat& status) noexcept { return nanoseconds(status.st_mtimespec); }

int rename_to_free_name(int folder, const char* from, const char* to) noexcept {
  return ::renameatx_np(folder, from, folder, to, RENAME_EXCL);
}

int reserve_space(int fd, off_t bytes) noexcept {
  fstore_t wanted{.fst_flags = F_ALLOCATEALL, .fst_posmode = F_PEOFPOSMODE, .fst_offset = 0, .fst_length = bytes};
  return ::fcntl(fd, F_PREALLOCATE, &wanted) == -1 ? -1 : 0;
}

int sync_to_disk(int fd) noexcept {
  // fsync() returns when the disk has been told. Not every file system has the call that waits for its answer.
  return ::fcntl(fd, F_FULLFSYNC) != -1 ? 0 : ::fsync(fd);
}

#else

void advise(int fd, off_t offset, off_t bytes, Advice advice) noexcept {
  const int code = advice == Advice::sequential  ? POSIX_FADV_SEQUENTIAL
                   : advice == Advice::will_need ? POSIX_FADV_WILLNEED
                                                 : POSIX_FADV_DONTNEED;
  ::posix_fadvise(fd, offset, bytes, code);
}

std::int64_t modified_ns(const struct stat& status) noexcept { return nanoseconds(status.st_mtim); }

int rename_to_free_name(int folder, const char* from, const char* to) noexcept {
#if TENSORCAST_HAS_RENAMEAT2
  return ::renameat2(folder, from, folder, to, RENAME_NOREPLACE);
#else
  constexpr unsigned no_replace = 1;
  return static_cast<int>(::syscall(SYS_renameat2, folder, from, folder, to, no_replace));
#endif
}

int reserve_space(int fd, off_t bytes) noexcept {
  // tmpfs would get all pages in this call, 0.45 s a GiB; a write gets its own while other threads compute.
  constexpr long tmpfs = 0x01021994;
  struct statfs system {};
  if (::fstatfs(fd, &system) == 0 && static_cast<long>(system.f_type) == tmpfs) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes);
}

int sync_to_disk(int fd) noexcept { return ::fsync(fd); }

#endif

}  // namespace tensorcast::io
