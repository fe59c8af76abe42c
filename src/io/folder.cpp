// SPDX-License-Identifier: Apache-2.0
#include "io/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>

#include "dtype/try.hpp"
#include "io/path_name.hpp"
#include "io/system_calls.hpp"
#include "io/system_error.hpp"

namespace tensorcast::io {
namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr mode_t usual_folder_mode = 0777;  // the umask takes its part

Found found_of(const struct stat& status) {
  Found found{.kind = Found::Kind::other,
              .bytes = static_cast<std::uint64_t>(status.st_size),
              .modified_ns = modified_ns(status),
              .identity = identity_of(status)};
  if (S_ISREG(status.st_mode)) found.kind = Found::Kind::file;
  if (S_ISDIR(status.st_mode)) found.kind = Found::Kind::folder;
  if (S_ISLNK(status.st_mode)) found.kind = Found::Kind::link;
  return found;
}

Error linked(const std::string& path) {
  return Error{.code = ErrorCode::io,
               .message = "cannot open: this is a symbolic link or a file, not a folder",
               .hint = "links inside an output folder are not followed",
               .file = path,
               .system_error = ENOTDIR};
}

// The parts of a relative name. Empty if one of them could lead elsewhere.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    const std::string& part = parts.back();
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos) return {};
    begin = end + 1;
  }
  return parts;
}

// Opens a folder inside another, without following links.
Result<FileDescriptor> enter(int folder, const std::string& name, const std::string& path) {
  FileDescriptor fd(::openat(folder, name.c_str(), folder_flags | O_NOFOLLOW));
  if (fd) return fd;
  if (errno == ENOTDIR || errno == ELOOP || errno == EMLINK) return linked(path);
  return system_error("open", path, errno);
}

Result<FileDescriptor> walk(int folder, std::span<const std::string> parts, const std::string& path, bool create) {
  FileDescriptor fd(::openat(folder, ".", folder_flags));
  if (!fd) return system_error("open", path, errno);
  for (const std::string& part : parts) {
    if (create && ::mkdirat(fd.get(), part.c_str(), usual_folder_mode) != 0 && errno != EEXIST) {
      return system_error("create the folder", path, errno);
    }
    fd = TRY(enter(fd.get(), part, path));
  }
  return fd;
}

// Without the file, or its folder, there is nothing to do; nor with a folder that is not empty.
Result<void> remove_in(const Result<FileDescriptor>& folder, const std::string& name, int flags,
                       const std::string& path) {
  if (!folder && folder.error().system_error == ENOENT) return {};
  if (!folder) return folder.error();
  if (::unlinkat(folder->get(), name.c_str(), flags) == 0 || errno == ENOENT) return {};
  if (flags == AT_REMOVEDIR && (errno == ENOTEMPTY || errno == EEXIST)) return {};
  return system_error("remove", path, errno);
}

Error bad_name(const std::string& path) {
  return Error{.code = ErrorCode::parse, .message = "the name leads out of its folder", .file = path};
}

}  // namespace

Result<Folder> Folder::open(const std::string& path) {
  TRY(check_path(path));
  Folder folder;
  folder.path_ = path;
  folder.fd_ = FileDescriptor(::open(path.c_str(), folder_flags));
  if (!folder.fd_) return system_error("open", path, errno);
  return folder;
}

Result<Folder> Folder::below(const std::string& name, bool create) const {
  const std::vector<std::string> parts = parts_of(name);
  if (parts.empty()) return bad_name(path_of(name));
  FileDescriptor fd = TRY(walk(fd_.get(), parts, path_of(name), create));
  Folder folder;
  folder.path_ = path_of(name);
  folder.fd_ = std::move(fd);
  return folder;
}

Result<Folder> Folder::open_below(const std::string& name) const { return below(name, false); }

Result<Folder> Folder::create_below(const std::string& name) const { return below(name, true); }

Result<FileDescriptor> Folder::above(const std::string& name, std::string& last) const {
  const std::vector<std::string> parts = parts_of(name);
  if (parts.empty()) return bad_name(path_of(name));
  last = parts.back();
  return walk(fd_.get(), std::span(parts).first(parts.size() - 1), path_of(name), false);
}

Result<std::optional<Found>> Folder::find(const std::string& name) const {
  std::string last;
  const Result<FileDescriptor> folder = above(name, last);
  if (!folder && folder.error().system_error == ENOENT) return std::optional<Found>();
  if (!folder) return folder.error();
  struct stat status {};
  if (::fstatat(folder->get(), last.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return std::optional(found_of(status));
  if (errno == ENOENT) return std::optional<Found>();
  return system_error("look up", path_of(name), errno);
}

Result<std::vector<std::pair<std::string, Found>>> Folder::list() const {
  FileDescriptor again(::openat(fd_.get(), ".", folder_flags));
  if (!again) return system_error("list", path_, errno);
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> entries(::fdopendir(again.get()), close);
  if (!entries) return system_error("list", path_, errno);
  again.release();
  std::vector<std::pair<std::string, Found>> all;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr && errno != 0) return system_error("list", path_, errno);
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat status {};
    if (::fstatat(fd_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      all.emplace_back(name, found_of(status));
    } else if (errno != ENOENT) {  // gone meanwhile
      return system_error("look up", path_of(name), errno);
    }
  }
  std::ranges::sort(all, {}, [](const auto& entry) -> const std::string& { return entry.first; });
  return all;
}

Result<bool> Folder::is_still(const Folder& above, const std::string& name) const {
  const std::optional<Found> found = TRY(above.find(name));
  struct stat own {};
  if (::fstat(fd_.get(), &own) != 0) return system_error("look up", path_, errno);
  return found.has_value() && found->identity == found_of(own).identity;
}

Result<InputFile> Folder::open_file(const std::string& name) const {
  std::string last;
  const FileDescriptor folder = TRY(above(name, last));
  return InputFile::open_in(folder.get(), last, path_of(name));
}

Result<OutputFile> Folder::create_file(const std::string& name) const {
  std::string last;
  FileDescriptor folder = TRY(above(name, last));
  return OutputFile::create_in(std::move(folder), last, path_of(name));
}

Result<void> Folder::move(const std::string& name, const Folder& to, const std::string& new_name) const {
  std::string last;
  std::string new_last;
  const FileDescriptor from_folder = TRY(above(name, last));
  const FileDescriptor to_folder = TRY(to.above(new_name, new_last));
  if (::renameat(from_folder.get(), last.c_str(), to_folder.get(), new_last.c_str()) == 0) return {};
  return system_error("write", to.path_of(new_name), errno);
}

Result<void> Folder::remove_file(const std::string& name) const {
  std::string last;
  return remove_in(above(name, last), last, 0, path_of(name));
}

Result<void> Folder::remove_empty(const std::string& name) const {
  std::string last;
  return remove_in(above(name, last), last, AT_REMOVEDIR, path_of(name));
}

Result<void> Folder::sync() const {
  // File systems that cannot sync folders return EINVAL.
  if (sync_to_disk(fd_.get()) == 0 || errno == EINVAL) return {};
  return system_error("write", path_, errno);
}

}  // namespace tensorcast::io
