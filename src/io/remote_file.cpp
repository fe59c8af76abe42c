// SPDX-License-Identifier: Apache-2.0
#include "io/remote_file.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

struct CurrentStore {
  std::mutex mutex;
  std::shared_ptr<RemoteStore> store;
};

CurrentStore& current_store() {
  static CurrentStore current;
  return current;
}

}  // namespace

RemoteWriter::~RemoteWriter() = default;
RemoteStore::~RemoteStore() = default;

void set_remote_store(std::shared_ptr<RemoteStore> store) noexcept {
  CurrentStore& current = current_store();
  const std::scoped_lock lock(current.mutex);
  current.store.swap(store);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

namespace tensorcast::io {
namespace {

// Reads that are smaller than this are served from one request of this size: a request takes a round trip.
constexpr std::size_t window_bytes = std::size_t{8} << 20;

}  // namespace

Result<std::shared_ptr<RemoteStore>> store_of(const std::string& url) {
  CurrentStore& current = current_store();
  const std::scoped_lock lock(current.mutex);
  if (current.store != nullptr) return current.store;
  return in_file(url, unsupported("URLs are not read here",
                                  "copy it to this machine; in Python, tensorcast.convert(), inspect() and load() take "
                                  "URLs, by fsspec"));
}

RemoteSource::RemoteSource(std::shared_ptr<RemoteStore> store, RemoteFile file)
    : store_(std::move(store)), file_(std::move(file)) {}

Result<void> RemoteSource::read(std::uint64_t offset, std::span<std::byte> out) {
  if (offset > file_.bytes || out.size() > file_.bytes - offset) {
    return in_file(file_.url, parse_error("the file ends too early"));
  }
  if (out.size() >= window_bytes) return read_range(offset, out);
  const std::scoped_lock lock(mutex_);
  while (!out.empty()) {
    if (offset < window_begin_ || offset >= window_begin_ + window_size_) TRY(fill(offset));
    const std::size_t at = offset - window_begin_;
    const std::size_t bytes = std::min(out.size(), window_size_ - at);
    std::copy_n(window_.get() + at, bytes, out.begin());
    out = out.subspan(bytes);
    offset += bytes;
  }
  return {};
}

// A range is only good with those that were read before it if the file is the same still.
Result<void> RemoteSource::read_range(std::uint64_t offset, std::span<std::byte> out) {
  TRY(store_->read(file_.url, offset, out));
  if (out.size() == file_.bytes) return {};  // all of it at once
  const std::optional<RemoteFile> now = TRY(store_->find(file_.url));
  if (now.has_value() && now->bytes == file_.bytes && now->version == file_.version) return {};
  return Error{.code = ErrorCode::io, .message = "the file was written again while it was read", .file = file_.url};
}

Result<void> RemoteSource::fill(std::uint64_t offset) {
  // The first request is small: many files are opened for their headers alone.
  constexpr std::size_t first_bytes = std::size_t{1} << 20;
  const std::size_t wanted = window_ == nullptr ? first_bytes : window_bytes;
  if (window_ == nullptr) {
    window_ = std::make_unique_for_overwrite<std::byte[]>(std::min<std::uint64_t>(window_bytes, file_.bytes));
  }
  const std::size_t bytes = std::min<std::uint64_t>(wanted, file_.bytes - offset);
  window_size_ = 0;
  TRY(read_range(offset, {window_.get(), bytes}));
  window_begin_ = offset;
  window_size_ = bytes;
  return {};
}

Result<std::shared_ptr<RemoteSource>> open_remote(std::shared_ptr<RemoteStore> store, const std::string& url) {
  std::optional<RemoteFile> file = TRY(store->find(url));
  if (!file.has_value()) {
    return Error{.code = ErrorCode::io, .message = "there is no such file", .file = url, .system_error = ENOENT};
  }
  return std::make_shared<RemoteSource>(std::move(store), *std::move(file));
}

}  // namespace tensorcast::io
