// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/remote_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <mutex>
#include <utility>

#include "checkpoint/store/file_name.hpp"
#include "convert/run/aligned_buffer.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "tensorcast/remote_store.hpp"

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
      return in_file(file_.url, parse_error("the file ends too early"));
    }
    if (out.size() >= window_bytes) return store_->read(file_.url, offset, out);
    const std::scoped_lock lock(mutex_);
    while (!out.empty()) {
      if (offset < window_begin_ || offset >= window_begin_ + window_size_) TRY(fill(offset));
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
    if (window_ == nullptr) window_ = std::make_unique<file_conversion::AlignedBuffer>(window_bytes);
    const std::size_t bytes = std::min<std::uint64_t>(wanted, file_.bytes - offset);
    window_size_ = 0;
    TRY(store_->read(file_.url, offset, window_->span().first(bytes)));
    window_begin_ = offset;
    window_size_ = bytes;
    return {};
  }

  std::shared_ptr<RemoteStore> store_;
  RemoteFile file_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<file_conversion::AlignedBuffer> window_;
  mutable std::uint64_t window_begin_ = 0;
  mutable std::size_t window_size_ = 0;
};

Result<std::unique_ptr<StoredFile>> open_in(std::shared_ptr<RemoteStore> store, const std::string& url) {
  std::optional<RemoteFile> file = TRY(store->find(url));
  if (!file.has_value()) {
    return Error{.code = ErrorCode::io, .message = "there is no such file", .file = url, .system_error = ENOENT};
  }
  return std::unique_ptr<StoredFile>(std::make_unique<RemoteStoredFile>(std::move(store), *std::move(file)));
}

// Returns the files below a folder, without the folder, by name.
Result<std::vector<RemoteFile>> list(RemoteStore& store, const std::string& folder) {
  std::vector<RemoteFile> files = TRY(store.list(folder));
  const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
  std::erase_if(files, [&](const RemoteFile& file) { return !file.url.starts_with(prefix); });
  std::ranges::sort(files, {}, &RemoteFile::url);
  return files;
}

class RemoteNewFile final : public NewFile {
 public:
  RemoteNewFile(std::shared_ptr<RemoteStore> store, std::unique_ptr<RemoteWriter> writer, std::string url)
      : store_(std::move(store)), writer_(std::move(writer)), url_(std::move(url)) {}

  Result<void> append(std::span<const std::byte> bytes) override { return writer_->append(bytes); }
  // A store has no file before it is complete. It may have one early: nothing counts before its record is there.
  Result<std::unique_ptr<StoredFile>> read_back() override {
    TRY(commit());
    return open_in(store_, url_);
  }
  Result<void> commit() override {
    if (std::exchange(committed_, true)) return {};
    return writer_->commit();
  }
  const std::string& path() const noexcept override { return url_; }

 private:
  std::shared_ptr<RemoteStore> store_;
  std::unique_ptr<RemoteWriter> writer_;
  std::string url_;
  bool committed_ = false;
};

class RemoteFolder final : public Folder {
 public:
  RemoteFolder(std::shared_ptr<RemoteStore> store, std::string url)
      : Folder(std::move(url)), store_(std::move(store)) {}

  Result<std::optional<Entry>> find(const std::string& name) const override {
    const std::optional<RemoteFile> file = TRY(store_->find(path_of(name)));
    if (!file.has_value()) return std::optional<Entry>();
    return std::optional(Entry{.bytes = file->bytes, .version = file->version});
  }

  Result<std::vector<std::string>> names_in(const std::string& folder) const override {
    const std::vector<std::string> below = TRY(names_below(folder));
    std::vector<std::string> names;  // those of one folder follow each other
    for (const std::string& name : below) {
      std::string direct = name.substr(0, std::min(name.find('/', folder.size()), name.size() - 1) + 1);
      if (names.empty() || names.back() != direct) names.push_back(std::move(direct));
    }
    return names;
  }

  Result<std::vector<std::string>> names_below(const std::string& folder) const override {
    const std::string url = path_of(folder);
    const std::vector<RemoteFile> files = TRY(list(*store_, url.substr(0, url.find_last_not_of('/') + 1)));
    std::vector<std::string> names;
    for (const RemoteFile& file : files) names.push_back(file.url.substr(path().size() + 1));
    return names;
  }

  Result<std::unique_ptr<StoredFile>> open_file(const std::string& name) const override {
    return open_in(store_, path_of(name));
  }

  Result<std::unique_ptr<NewFile>> create_file(const std::string& name, std::uint64_t /*bytes*/) const override {
    std::unique_ptr<RemoteWriter> writer = TRY(store_->create(path_of(name)));
    return std::unique_ptr<NewFile>(std::make_unique<RemoteNewFile>(store_, std::move(writer), path_of(name)));
  }

  Result<void> move(const std::string& from, const std::string& to) const override {
    return store_->move(path_of(from), path_of(to));
  }
  Result<void> remove(const std::string& name) const override {
    const std::optional<Entry> found = TRY(find(name));
    return found.has_value() ? store_->remove({path_of(name)}) : Result<void>();
  }

  Result<bool> is_as_written(const io::WrittenFile& file) const override {
    const std::optional<Entry> found = TRY(find(file.name));
    if (!found.has_value() || found->bytes != file.bytes) return false;
    if (!file.version.empty() && found->version == file.version) return true;
    const std::string sha256 = TRY(sha256_of_file(*TRY(open_file(file.name))));
    return sha256 == file.sha256;
  }

 private:
  std::shared_ptr<RemoteStore> store_;
};

Result<std::shared_ptr<RemoteStore>> store_of(const std::string& url) {
  CurrentStore& current = current_store();
  const std::scoped_lock lock(current.mutex);
  if (current.store != nullptr) return current.store;
  return in_file(url, unsupported("URLs are not read here", "in Python, tensorcast.convert() takes them, by fsspec"));
}

}  // namespace

namespace remote {

Result<std::unique_ptr<Folder>> open_folder(const std::string& url) {
  return std::unique_ptr<Folder>(std::make_unique<RemoteFolder>(TRY(store_of(url)), url));
}

Result<std::unique_ptr<StoredFile>> open_file(const std::string& url) { return open_in(TRY(store_of(url)), url); }

bool is_folder(const std::string& url) noexcept {
  const Result<std::shared_ptr<RemoteStore>> store = store_of(url);
  const Result<bool> folder = store ? (*store)->is_folder(url) : store.error();
  return folder && *folder;
}

std::uint64_t file_bytes(const std::string& url) noexcept {
  const Result<std::shared_ptr<RemoteStore>> store = store_of(url);
  const Result<std::optional<RemoteFile>> file = store ? (*store)->find(url) : store.error();
  return file && file->has_value() ? (*file)->bytes : std::numeric_limits<std::uint64_t>::max();
}

Result<Listing> list_folder(const std::string& folder, FileGlobs* skip) {
  std::vector<RemoteFile> found = TRY(list(*TRY(store_of(folder)), folder));
  Listing listing;
  for (const RemoteFile& file : found) {
    std::string name = file.url.substr(folder.size() + 1);
    const std::string last = last_component(name);
    if (is_hidden_output(last)) continue;
    std::string state;  // the folder of the file that has state
    for (std::size_t slash = name.find('/'); slash != std::string::npos && state.empty();
         slash = name.find('/', slash + 1)) {
      if (is_state_folder(last_component(name.substr(0, slash)))) state = name.substr(0, slash + 1);
    }
    const bool skipped = state.empty() && skip != nullptr && skip->match(name);
    if (skipped) state = name;
    if (state.empty()) {
      listing.files.push_back({.name = std::move(name), .bytes = file.bytes});
    } else if (!listing.left_out.empty() && listing.left_out.back().name == state) {
      listing.left_out.back().bytes += file.bytes;
    } else {
      listing.left_out.push_back({.name = std::move(state), .bytes = file.bytes});
    }
  }
  return listing;
}

}  // namespace remote
}  // namespace tensorcast::checkpoint
