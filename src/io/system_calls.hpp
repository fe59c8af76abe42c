// SPDX-License-Identifier: Apache-2.0
// What operating systems call differently: Linux, with glibc or musl, and macOS.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "io/input_file.hpp"

namespace tensorcast::io {

#if defined(__APPLE__)
constexpr std::string_view descriptor_folder = "/dev/fd/";
#else
constexpr std::string_view descriptor_folder = "/proc/self/fd/";
#endif

// Reports whether a path names an open file, as standard input is named.
[[nodiscard]] constexpr bool names_descriptor(std::string_view path) noexcept {
  return path.starts_with(descriptor_folder);
}

enum class Advice { sequential, will_need, dont_need };

// Advises the system's cache about `bytes` bytes of a file; 0: to the end. Does nothing where there is no such call.
void advise(int fd, off_t offset, off_t bytes, Advice advice) noexcept;

[[nodiscard]] std::int64_t modified_ns(const struct stat& status) noexcept;

// A device is a signed number on macOS.
[[nodiscard]] inline InputFile::Identity identity_of(const struct stat& status) noexcept {
  return {.device = static_cast<std::uint64_t>(status.st_dev), .inode = status.st_ino};
}

// These return 0, or -1 with errno set.

// Renames a file within a folder unless something has the new name: EEXIST. EINVAL, ENOSYS and ENOTSUP: it cannot be
// done in one step here.
int rename_to_free_name(int folder, const char* from, const char* to) noexcept;

// Reserves disk space for the first `bytes` bytes of a file. The file's size stays.
int reserve_space(int fd, off_t bytes) noexcept;

// Returns when the disk has the file's or the folder's contents.
int sync_to_disk(int fd) noexcept;

}  // namespace tensorcast::io
