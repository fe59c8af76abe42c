// SPDX-License-Identifier: Apache-2.0
#include "io/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "io/path_name.hpp"
#include "io/remote_file.hpp"
#include "io/system_calls.hpp"
#include "io/system_error.hpp"

namespace tensorcast::io {
namespace {

// One read() moves at most this; the system's own limit is just under 2 GiB.
constexpr std::size_t max_read_bytes = std::size_t{1} << 30;

// A read of this size or more is taken as a step of a sequential walk. On a cold cache, prefetching the next bytes is
// up to twice as fast as relying on the system's own read-ahead.
constexpr std::size_t walking_read_bytes = std::size_t{256} << 10;
constexpr std::uint64_t read_ahead_bytes = std::uint64_t{16} << 20;

Error ends_early(const std::string& path) {
  return Error{.code = ErrorCode::parse, .message = "the file ends before its data does", .file = path};
}

Error not_followed(const std::string& path) {
  return Error{.code = ErrorCode::io, .message = "cannot open: symbolic links are not followed here", .file = path};
}

void advise_part(int fd, std::uint64_t offset, std::uint64_t bytes, Advice advice) noexcept {
  constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (offset > limit || bytes == 0) return;  // 0 would mean "to the end"
  advise(fd, static_cast<off_t>(offset), static_cast<off_t>(std::min(bytes, limit - offset)), advice);
}

}  // namespace

InputFile::InputFile(FileDescriptor fd, Identity identity, std::uint64_t size, std::string path) noexcept
    : fd_(std::move(fd)), identity_(identity), size_(size), path_(std::move(path)) {}

InputFile::InputFile(InputFile&& other) noexcept { *this = std::move(other); }

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  fd_ = std::move(other.fd_);
  identity_ = other.identity_;
  size_ = other.size_;
  modified_ns_ = other.modified_ns_;
  mode_ = other.mode_;
  path_ = std::move(other.path_);
  source_ = std::move(other.source_);
  spliced_ = other.spliced_;
  parts_ = std::move(other.parts_);
  part_ends_ = std::move(other.part_ends_);
  ahead_ = other.ahead_.load();
  return *this;
}

Result<InputFile> InputFile::open(const std::string& path) {
  TRY(check_path(path));
  if (is_url(path)) return of(TRY(open_remote(TRY(store_of(path)), path)), path);
  // O_NONBLOCK: opening a pipe without a writer must not hang; it means nothing for regular files.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return system_error("open", path, errno);
  return from_descriptor(std::move(fd), path);
}

Result<InputFile> InputFile::open_in(int folder, const std::string& name, const std::string& path) {
  FileDescriptor fd(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (!fd && (errno == ELOOP || errno == EMLINK)) return not_followed(path);
  if (!fd) return system_error("open", path, errno);
  return from_descriptor(std::move(fd), path);
}

struct InputFile::Source {
  explicit Source(std::shared_ptr<ByteSource> given) : bytes(std::move(given)) {}

  std::shared_ptr<ByteSource> bytes;
  std::mutex mutex = {};  // a caller's source need not be thread-safe
};

Result<InputFile> InputFile::of(std::shared_ptr<ByteSource> source, std::string name) {
  if (source == nullptr) return in_file(name, invalid("the source is null"));
  // No device has this number.
  const Identity identity{.device = ~std::uint64_t{0}, .inode = reinterpret_cast<std::uintptr_t>(source.get())};
  InputFile file(FileDescriptor(), identity, source->size(), std::move(name));
  file.source_ = std::make_shared<Source>(std::move(source));
  return file;
}

InputFile InputFile::in_memory(std::span<const std::byte> bytes) { return of(memory_source(bytes), {}).value(); }

InputFile InputFile::spliced(const InputFile& source, std::vector<Part> parts) {
  InputFile file(FileDescriptor(), source.identity_, 0, source.path_);
  file.modified_ns_ = source.modified_ns_;
  file.mode_ = source.mode_;
  file.spliced_ = &source;
  file.part_ends_.reserve(parts.size());
  for (const Part& part : parts) {
    file.size_ += part.bytes;
    file.part_ends_.push_back(file.size_);
  }
  file.parts_ = std::move(parts);
  return file;
}

Result<InputFile> InputFile::open_below(const std::string& folder, std::string_view relative) {
  const std::string path = folder + "/" + std::string(relative);
  const auto leads_elsewhere = [&](std::string_view why) {
    return Error{.code = ErrorCode::parse,
                 .message = "the location of the data leads out of the folder: " + std::string(why),
                 .file = path};
  };
  if (relative.empty() || relative.find('\0') != std::string_view::npos)
    return leads_elsewhere("it is empty or contains a zero byte");
  if (relative.front() == '/') return leads_elsewhere("it is absolute");
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  std::vector<std::string> components;  // without those that ".." takes back, as ONNX reads a location
  for (std::size_t begin = 0; begin <= relative.size();) {
    const std::size_t end = std::min(relative.find('/', begin), relative.size());
    std::string component(relative.substr(begin, end - begin));
    begin = end + 1;
    if (component.empty() || component == ".") continue;
    if (component != "..") {
      components.push_back(std::move(component));
      continue;
    }
    if (components.empty()) return leads_elsewhere("it goes up");
    components.pop_back();
  }
  if (components.empty()) return leads_elsewhere("it names no file");
  FileDescriptor fd(::open(folder.c_str(), flags | O_DIRECTORY));
  if (!fd) return system_error("open", path, errno);
  for (const std::string& component : components) {
    const bool last = &component == &components.back();
    FileDescriptor next(::openat(fd.get(), component.c_str(), flags | O_NOFOLLOW | (last ? 0 : O_DIRECTORY)));
    if (!next && (errno == ELOOP || errno == EMLINK)) return not_followed(path);
    if (!next) return system_error("open", path, errno);
    fd = std::move(next);
  }
  return from_descriptor(std::move(fd), path);
}

Result<InputFile> InputFile::from_descriptor(FileDescriptor fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error("open", path, errno);
  if (S_ISDIR(status.st_mode)) return system_error("open", path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    return Error{.code = ErrorCode::io,
                 .message = "cannot open: not a regular file",
                 .hint = "pipes and devices must be copied to a file first",
                 .file = path};
  }
  advise(fd.get(), 0, 0, Advice::sequential);
  InputFile file(std::move(fd), identity_of(status), static_cast<std::uint64_t>(status.st_size), path);
  file.mode_ = status.st_mode & 0777;
  file.modified_ns_ = io::modified_ns(status);
  return file;
}

Result<void> InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset) return ends_early(path_);
  if (spliced_ != nullptr) return read_parts(offset, out);
  if (source_ != nullptr) return read_source(offset, out);
  if (out.size() >= walking_read_bytes) read_ahead(offset + out.size());
  while (!out.empty()) {
    const ssize_t got =
        ::pread(fd_.get(), out.data(), std::min(out.size(), max_read_bytes), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return system_error("read", path_, errno);
    }
    if (got == 0) return ends_early(path_);  // another process truncated the file
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<void> InputFile::read_source(std::uint64_t offset, std::span<std::byte> out) const {
  const std::scoped_lock lock(source_->mutex);
  Result<void> done = guarded([&]() -> Result<void> {
    const std::uint64_t size = source_->bytes->size();
    if (size < size_) {
      return Error{.code = ErrorCode::parse,
                   .message = fmt::format("the source has {} bytes, and had {} when it was opened", size, size_)};
    }
    return source_->bytes->read(offset, out);
  });
  if (!done && !path_.empty()) done.error().file = path_;
  return done;
}

Result<void> InputFile::read_parts(std::uint64_t offset, std::span<std::byte> out) const {
  auto part =
      static_cast<std::size_t>(std::upper_bound(part_ends_.begin(), part_ends_.end(), offset) - part_ends_.begin());
  for (; !out.empty(); ++part) {
    const Part& from = parts_[part];
    const std::uint64_t skipped = from.bytes - (part_ends_[part] - offset);
    const std::span<std::byte> head = out.first(std::min<std::uint64_t>(out.size(), from.bytes - skipped));
    if (from.text.empty()) {
      TRY(spliced_->read(from.offset + skipped, head));
    } else {
      std::copy_n(std::as_bytes(std::span(from.text)).begin() + static_cast<std::ptrdiff_t>(skipped), head.size(),
                  head.begin());
    }
    offset += head.size();
    out = out.subspan(head.size());
  }
  return {};
}

void InputFile::read_ahead(std::uint64_t end) const noexcept {
  // Prefetches the next window when half of the current one is left; a jump in either direction starts anew.
  const std::uint64_t ahead = ahead_.load(std::memory_order_relaxed);
  const bool jumped = end > ahead || ahead - end > read_ahead_bytes;
  if (!jumped && ahead - end > read_ahead_bytes / 2) return;
  const std::uint64_t begin = jumped ? end : ahead;
  ahead_.store(end + read_ahead_bytes, std::memory_order_relaxed);
  will_need(begin, end + read_ahead_bytes - begin);
}

// File systems without locks take all of them.
bool InputFile::lock(int operation) const noexcept {
  while (fd_ && ::flock(fd_.get(), operation | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno != EWOULDBLOCK;
  }
  return true;
}

bool InputFile::keep() const noexcept { return lock(LOCK_SH); }

bool InputFile::may_go() const noexcept { return lock(LOCK_EX); }

void InputFile::will_need(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  if (fd_) advise_part(fd_.get(), offset, bytes, Advice::will_need);
}

void InputFile::dont_need(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  if (fd_) advise_part(fd_.get(), offset, bytes, Advice::dont_need);
}

}  // namespace tensorcast::io
