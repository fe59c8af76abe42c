#include "checkpoint/remote_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <mutex>
#include <utility>

#include "convert/aligned_buffer.hpp"

namespace tensorcast::inline TENSORCAST_ABI {
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

}  // namespace tensorcast::inline TENSORCAST_ABI

namespace tensorcast::checkpoint {
namespace {

// Reads that are smaller than this are served from one request of this size: a request takes a round trip.
constexpr std::size_t window_bytes = std::size_t{8} << 20;

class RemoteStoredFile final : public StoredFile {
 public:
  RemoteStoredFile(std::shared_ptr<RemoteStore> store, RemoteFile file)
      : store_(std::move(store)), file_(std::move(file)) {}

  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > file_.bytes || out.size() > file_.bytes - offset) {
      return Error{.code = ErrorCode::parse, .message = "the file ends too early", .file = file_.url};
    }
    if (out.size() >= window_bytes) return store_->read(file_.url, offset, out);
    const std::scoped_lock lock(mutex_);
    while (!out.empty()) {
      if (offset < window_begin_ || offset >= window_begin_ + window_size_) {
        if (Result<void> filled = fill(offset); !filled) return filled;
      }
      const std::size_t at = offset - window_begin_;
      const std::size_t bytes = std::min(out.size(), window_size_ - at);
      std::ranges::copy(window_->span().subspan(at, bytes), out.begin());
      out = out.subspan(bytes);
      offset += bytes;
    }
    return {};
  }
  std::uint64_t size() const noexcept override { return file_.bytes; }
  std::string version() const override { return file_.version; }
  const std::string& path() const noexcept override { return file_.url; }

 private:
  Result<void> fill(std::uint64_t offset) const {
    // The first request is small: many files are opened for their headers alone.
    constexpr std::size_t first_bytes = std::size_t{1} << 20;
    const std::size_t wanted = window_ == nullptr ? first_bytes : window_bytes;
    if (window_ == nullptr) window_ = std::make_unique<conversion::AlignedBuffer>(window_bytes);
    const std::size_t bytes = std::min<std::uint64_t>(wanted, file_.bytes - offset);
    window_size_ = 0;
    if (Result<void> got = store_->read(file_.url, offset, window_->span().first(bytes)); !got) return got;
    window_begin_ = offset;
    window_size_ = bytes;
    return {};
  }

  std::shared_ptr<RemoteStore> store_;
  RemoteFile file_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<conversion::AlignedBuffer> window_;
  mutable std::uint64_t window_begin_ = 0;
  mutable std::size_t window_size_ = 0;
};

class RemoteNewFile final : public NewFile {
 public:
  RemoteNewFile(std::unique_ptr<RemoteWriter> writer, std::string url)
      : writer_(std::move(writer)), url_(std::move(url)) {}

  Result<void> append(std::span<const std::byte> bytes) override { return writer_->append(bytes); }
  // A store has no file before it is complete. It may have one early: nothing counts before its record is there.
  Result<std::unique_ptr<StoredFile>> read_back() override {
    if (Result<void> committed = commit(); !committed) return std::move(committed).error();
    return open_remote(url_);
  }
  Result<void> commit() override {
    if (std::exchange(committed_, true)) return {};
    return writer_->commit();
  }
  const std::string& path() const noexcept override { return url_; }

 private:
  std::unique_ptr<RemoteWriter> writer_;
  std::string url_;
  bool committed_ = false;
};

}  // namespace

bool is_remote(const std::string& path) noexcept {
  const std::size_t colon = path.find("://");
  return colon != std::string::npos && colon != 0 && path.find('/') == colon + 1;
}

Result<std::shared_ptr<RemoteStore>> remote_store(const std::string& url) {
  CurrentStore& current = current_store();
  const std::scoped_lock lock(current.mutex);
  if (current.store != nullptr) return current.store;
  return Error{.code = ErrorCode::unsupported,
               .message = "URLs are not read here",
               .hint = "in Python, tensorcast.convert() takes them, by fsspec",
               .file = url};
}

Result<std::unique_ptr<StoredFile>> open_remote(const std::string& url) {
  Result<std::shared_ptr<RemoteStore>> store = remote_store(url);
  if (!store) return std::move(store).error();
  Result<std::optional<RemoteFile>> file = (*store)->find(url);
  if (!file) return std::move(file).error();
  if (!file->has_value()) {
    return Error{.code = ErrorCode::io, .message = "there is no such file", .file = url, .system_error = ENOENT};
  }
  return std::unique_ptr<StoredFile>(std::make_unique<RemoteStoredFile>(std::move(store).value(), **std::move(file)));
}

Result<std::unique_ptr<NewFile>> create_remote(const std::string& url) {
  const Result<std::shared_ptr<RemoteStore>> store = remote_store(url);
  if (!store) return store.error();
  Result<std::unique_ptr<RemoteWriter>> writer = (*store)->create(url);
  if (!writer) return std::move(writer).error();
  return std::unique_ptr<NewFile>(std::make_unique<RemoteNewFile>(std::move(writer).value(), url));
}

std::uint64_t remote_bytes(const std::string& url) noexcept {
  const Result<std::shared_ptr<RemoteStore>> store = remote_store(url);
  const Result<std::optional<RemoteFile>> file = store ? (*store)->find(url) : store.error();
  return file && file->has_value() ? (*file)->bytes : std::numeric_limits<std::uint64_t>::max();
}

bool is_remote_folder(const std::string& url) noexcept {
  const Result<std::shared_ptr<RemoteStore>> store = remote_store(url);
  const Result<bool> folder = store ? (*store)->is_folder(url) : store.error();
  return folder && *folder;
}

Result<std::vector<RemoteFile>> list_remote(const std::string& folder) {
  const Result<std::shared_ptr<RemoteStore>> store = remote_store(folder);
  if (!store) return store.error();
  Result<std::vector<RemoteFile>> files = (*store)->list(folder);
  if (!files) return files;
  const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
  std::erase_if(*files, [&](const RemoteFile& file) { return !file.url.starts_with(prefix); });
  std::ranges::sort(*files, {}, &RemoteFile::url);
  return files;
}

Result<void> move_remote(const std::string& from, const std::string& to) {
  const Result<std::shared_ptr<RemoteStore>> store = remote_store(from);
  return store ? (*store)->move(from, to) : store.error();
}

Result<std::optional<RemoteFile>> find_remote(const std::string& url) {
  const Result<std::shared_ptr<RemoteStore>> store = remote_store(url);
  return store ? (*store)->find(url) : store.error();
}

Result<void> remove_remote(const std::string& url) {
  const Result<std::optional<RemoteFile>> file = find_remote(url);
  if (!file) return file.error();
  const Result<std::shared_ptr<RemoteStore>> store = remote_store(url);
  if (!store) return store.error();
  return file->has_value() ? (*store)->remove({url}) : Result<void>();
}

}  // namespace tensorcast::checkpoint
