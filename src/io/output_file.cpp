// SPDX-License-Identifier: Apache-2.0
#include "io/output_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "dtype/try.hpp"
#include "io/hidden_name.hpp"
#include "io/path_name.hpp"
#include "io/remote_file.hpp"
#include "io/system_calls.hpp"
#include "io/system_error.hpp"

namespace tensorcast::io {
namespace {

constexpr mode_t usual_mode = 0666;  // the umask takes its part
constexpr std::size_t max_write_bytes = std::size_t{1} << 30;
// Write-back starts this often, so that the disk works while we do and the final sync is short.
constexpr std::uint64_t flush_step_bytes = std::uint64_t{16} << 20;

Error wrong_kind(const std::string& path, std::string what) {
  return Error{.code = ErrorCode::invalid_argument, .message = "cannot write: " + std::move(what), .file = path};
}

// Returns the path of an existing file with symbolic links resolved.
std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  return resolved ? std::optional<std::string>(resolved.get()) : std::nullopt;
}

// Sets errno on failure, EEXIST when the name is taken.
bool rename_unless_taken(int folder, const char* from, const char* to) {
  if (rename_to_free_name(folder, from, to) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return false;
  // The file system has no rename without replacement. A hard link does not replace either; without hard links, check
  // first.
  if (::linkat(folder, from, folder, to, 0) == 0) return ::unlinkat(folder, from, 0) == 0;
  if (errno == EEXIST) return false;
  if (::faccessat(folder, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return ::renameat(folder, from, folder, to) == 0;
}

// Moves `offset` behind what is written.
Result<void> write_at(int fd, std::uint64_t& offset, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), std::min(bytes.size(), max_write_bytes), static_cast<off_t>(offset));
    if (put < 0) {
      if (errno == EINTR) continue;
      return system_error("write", path, errno);
    }
    offset += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

}  // namespace

OutputFile::OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  folder_ = std::move(other.folder_);
  fd_ = std::move(other.fd_);
  size_ = other.size_;
  reserved_ = other.reserved_;
  flushing_ = other.flushing_;
  path_ = std::move(other.path_);
  name_ = std::move(other.name_);
  hidden_name_ = std::exchange(other.hidden_name_, {});
  temporary_ = std::move(other.temporary_);
  store_ = std::move(other.store_);
  overwrite_ = other.overwrite_;
  replaces_ = other.replaces_;
  return *this;
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() noexcept {
  if (!hidden_name_.empty()) ::unlinkat(folder_.get(), hidden_name_.c_str(), 0);
  hidden_name_.clear();
  fd_.reset();
}

Error OutputFile::already_exists() const {
  return Error{.code = ErrorCode::invalid_argument,
               .message = "the file exists already",
               .hint = "`overwrite` replaces it",
               .file = path_,
               .system_error = EEXIST};
}

// The file that `path` names before.
struct OutputFile::Old {
  bool exists = false;
  std::string folder = {};
  struct stat stat {};
};

// Finds the place of a file, which is not open yet.
Result<OutputFile> OutputFile::locate(const std::string& path, bool overwrite, Old& found) {
  TRY(check_path(path));
  OutputFile file;
  file.path_ = path;
  file.overwrite_ = overwrite;
  std::string place = path;

  struct stat& old = found.stat;
  const bool exists = ::lstat(path.c_str(), &old) == 0;
  found.exists = exists;
  file.replaces_ = exists;
  if (!exists && errno != ENOENT) return system_error("create", path, errno);
  if (exists && S_ISLNK(old.st_mode)) {
    const std::optional<std::string> behind = real_path(path);
    if (!behind) return wrong_kind(path, "a symbolic link that leads nowhere");
    place = *behind;
    if (::stat(place.c_str(), &old) != 0) return system_error("create", path, errno);
  }
  if (exists) {
    if (S_ISDIR(old.st_mode)) return wrong_kind(path, "a directory");
    if (!S_ISREG(old.st_mode)) return wrong_kind(path, "not a regular file");
    if (!overwrite) return file.already_exists();
  }

  const std::size_t slash = place.rfind('/');
  found.folder = slash == std::string::npos ? "." : place.substr(0, std::max<std::size_t>(slash, 1));
  file.name_ = slash == std::string::npos ? place : place.substr(slash + 1);
  if (file.name_.empty()) return wrong_kind(path, "no file name");
  file.folder_ = FileDescriptor(::open(found.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.folder_ && errno == ENOENT) {
    return Error{.code = ErrorCode::io, .message = "the folder does not exist", .file = path, .system_error = ENOENT};
  }
  if (!file.folder_) return system_error("create", path, errno);
  remove_abandoned_file(file.folder_.get(), hidden_name(file.name_, 0));
  return file;
}

// Best effort: permission to replace a file does not always include giving one away.
void OutputFile::take_owner(const Old& old) const noexcept {
  if (!old.exists) return;
  if (::fchown(fd_.get(), old.stat.st_uid, old.stat.st_gid) != 0) errno = 0;
  ::fchmod(fd_.get(), old.stat.st_mode & 0777);
}

Result<void> OutputFile::check_remote_name() const {
  if (overwrite_) return {};
  const std::optional<RemoteFile> old = TRY(store_->find(path_));
  return old.has_value() ? Result<void>(already_exists()) : Result<void>();
}

Result<OutputFile> OutputFile::create_remote(const std::string& url, bool overwrite) {
  OutputFile file;
  file.path_ = url;
  file.overwrite_ = overwrite;
  file.store_ = TRY(store_of(url));
  TRY(file.check_remote_name());
  std::error_code failed;
  const std::string folder = std::filesystem::temp_directory_path(failed).string();
  file.name_ = "tcast-" + std::to_string(::getpid());
  file.folder_ = FileDescriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (failed || !file.folder_) return system_error("create a temporary file for", url, failed ? failed.value() : errno);
  if (file.open_unnamed(0600)) return file;
  TRY(file.open_named(0600, folder));
  return file;
}

// Sends the temporary file to the store.
Result<void> OutputFile::send() {
  TRY(check_remote_name());
  const std::unique_ptr<RemoteWriter> writer = TRY(store_->create(path_));
  std::vector<std::byte> block(std::min<std::uint64_t>(size_, std::uint64_t{8} << 20));
  for (std::uint64_t at = 0; at < size_;) {
    const ssize_t got = ::pread(fd_.get(), block.data(), block.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return system_error("read the temporary file of", path_, got < 0 ? errno : EIO);
    const auto bytes = std::min<std::uint64_t>(static_cast<std::uint64_t>(got), size_ - at);
    TRY(writer->append(std::span(block).first(bytes)));
    at += bytes;
  }
  return writer->commit();
}

Result<OutputFile> OutputFile::create(const std::string& path, bool overwrite) {
  TRY(check_path(path));
  if (is_url(path)) return create_remote(path, overwrite);
  Old old;
  OutputFile file = TRY(locate(path, overwrite, old));
  if (!file.open_unnamed(usual_mode)) {
    TRY(file.open_named(usual_mode, old.folder));
  }
  file.take_owner(old);
  return file;
}

Result<OutputFile> OutputFile::create_in(FileDescriptor folder, const std::string& name, const std::string& path) {
  OutputFile file;
  file.path_ = path;
  file.name_ = name;
  file.overwrite_ = true;
  file.replaces_ = true;
  file.folder_ = std::move(folder);
  struct stat old {};
  if (::fstatat(file.folder_.get(), name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISDIR(old.st_mode)) return wrong_kind(path, "a directory");
  } else if (errno != ENOENT) {
    return system_error("create", path, errno);
  }
  remove_abandoned_file(file.folder_.get(), hidden_name(name, 0));
  if (file.open_unnamed(usual_mode)) return file;
  const std::size_t slash = path.rfind('/');
  TRY(file.open_named(usual_mode, path.substr(0, slash)));
  return file;
}

Result<void> OutputFile::check_place(const std::string& path, bool overwrite) {
  TRY(check_path(path));
  if (is_url(path)) {
    OutputFile file;
    file.path_ = path;
    file.overwrite_ = overwrite;
    file.store_ = TRY(store_of(path));
    return file.check_remote_name();
  }
  Old old;
  TRY(locate(path, overwrite, old));
  return {};
}

Result<OutputFile> OutputFile::adopt(const std::string& made, const std::string& path, bool overwrite) {
  Old old;
  OutputFile file = TRY(locate(path, overwrite, old));
  std::error_code failed;
  std::string whole = std::filesystem::absolute(made, failed).string();
  file.fd_ = FileDescriptor(::open(whole.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat found {};
  if (failed || !file.fd_ || ::fstat(file.fd_.get(), &found) != 0) return system_error("open", made, errno);
  file.size_ = static_cast<std::uint64_t>(found.st_size);
  file.temporary_ = whole;
  file.hidden_name_ = std::move(whole);
  file.take_owner(old);
  return file;
}

bool OutputFile::open_unnamed(unsigned mode) {
#ifdef O_TMPFILE
  fd_ = FileDescriptor(::openat(folder_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  if (!fd_) return false;
  temporary_ = std::string(descriptor_folder) + std::to_string(fd_.get());
  // For the time between its hidden name and its final one. Shared, as others may use the file with its final name.
  ::flock(fd_.get(), LOCK_SH | LOCK_NB);
  if (::access(temporary_.c_str(), F_OK) == 0) return true;  // without /proc the file could never get a name
  fd_.reset();
#endif
  return false;
}

Result<void> OutputFile::open_named(unsigned mode, const std::string& folder) {
  for (int slot = 0; slot < hidden_slots; ++slot) {
    std::string hidden = hidden_name(name_, slot);
    remove_abandoned_file(folder_.get(), hidden);
    fd_ = FileDescriptor(::openat(folder_.get(), hidden.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode));
    if (!fd_ && errno != EEXIST) break;
    if (!fd_ || !lock_hidden_file(folder_.get(), hidden, fd_)) continue;
    hidden_name_ = std::move(hidden);
    temporary_ = folder + "/" + hidden_name_;
    return {};
  }
  return system_error("create", path_, errno);
}

void OutputFile::set_mode(unsigned mode) noexcept {
  if (::fchmod(fd_.get(), mode & 0777) != 0) errno = 0;
}

Result<void> OutputFile::append(std::span<const std::byte> bytes) {
  TRY(write_at(fd_.get(), size_, bytes, path_));
#ifdef SYNC_FILE_RANGE_WRITE
  if (size_ - flushing_ >= flush_step_bytes) {
    ::sync_file_range(fd_.get(), static_cast<off_t>(flushing_), static_cast<off_t>(size_ - flushing_),
                      SYNC_FILE_RANGE_WRITE);
    flushing_ = size_;
  }
#endif
  return {};
}

Result<void> OutputFile::patch(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (offset > size_ || bytes.size() > size_ - offset) {
    return Error{.code = ErrorCode::internal, .message = "patch beyond the bytes written", .file = path_};
  }
  return write_at(fd_.get(), offset, bytes, path_);
}

Result<void> OutputFile::reserve(std::uint64_t bytes) {
  if (bytes == 0) return {};
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return system_error("write", path_, EFBIG);
  if (reserve_space(fd_.get(), static_cast<off_t>(bytes)) == 0) {
    reserved_ = bytes;
    return {};
  }
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) return system_error("write", path_, errno);
  struct statvfs space {};
  if (::fstatvfs(fd_.get(), &space) != 0 || space.f_blocks == 0) return {};
  // Compares blocks, as the product in bytes may overflow on synthetic file systems.
  if (bytes / std::max<std::uint64_t>(space.f_frsize, 1) > space.f_bavail) return system_error("write", path_, ENOSPC);
  return {};
}

void OutputFile::take_name(std::string name, std::string path) {
  name_ = std::move(name);
  path_ = std::move(path);
  overwrite_ = false;
}

Result<void> OutputFile::sync() {
  if (store_ != nullptr) return {};  // a temporary file is read back, and sent, from the cache
  if (sync_to_disk(fd_.get()) != 0) return system_error("write", path_, errno);
  return {};
}

Result<void> OutputFile::commit() {
  if (store_ != nullptr) {
    TRY(send());
    discard();
    return {};
  }
  if (reserved_ > size_ && ::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
    return system_error("write", path_, errno);
  }
  TRY(sync());
  TRY(publish());
  // The file is complete and in place; only a system crash at this moment could bring the old one back. File systems
  // that cannot sync folders return EINVAL.
  sync_to_disk(folder_.get());
  fd_.reset();
  return {};
}

// link_to() and link_hidden() set errno on failure.
bool OutputFile::link_to(const std::string& name) const noexcept {
  return ::linkat(AT_FDCWD, temporary_.c_str(), folder_.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

std::string OutputFile::link_hidden() const {
  for (int slot = 0; slot < hidden_slots; ++slot) {
    std::string hidden = hidden_name(name_, slot);
    remove_abandoned_file(folder_.get(), hidden);
    if (link_to(hidden)) return hidden;
    if (errno != EEXIST) return {};
  }
  return {};
}

Result<void> OutputFile::publish() {
  const int folder = folder_.get();
  // Nothing had the name before; a link that has it now leads to a file that nobody asked to replace.
  struct stat now {};
  if (overwrite_ && !replaces_ && ::fstatat(folder, name_.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(now.st_mode)) {
    return wrong_kind(path_, "a symbolic link, which was not there before");
  }
  if (hidden_name_.empty()) {
    // linkat() never replaces a file, which suffices if overwriting is off.
    const std::string link = overwrite_ ? link_hidden() : link_to(name_) ? name_ : std::string();
    if (link.empty()) return errno == EEXIST ? already_exists() : system_error("write", path_, errno);
    if (!overwrite_) return {};
    hidden_name_ = link;
  }
  const bool renamed = overwrite_ ? ::renameat(folder, hidden_name_.c_str(), folder, name_.c_str()) == 0
                                  : rename_unless_taken(folder, hidden_name_.c_str(), name_.c_str());
  if (!renamed && errno == EXDEV) {  // only a file that was adopted
    Error error = system_error("write", path_, errno);
    error.hint = "it is a symbolic link to another file system; name the file itself";
    return error;
  }
  if (!renamed) return errno == EEXIST ? already_exists() : system_error("write", path_, errno);
  hidden_name_.clear();
  return {};
}

}  // namespace tensorcast::io
