// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/remote_folder.hpp"

#include <algorithm>
#include <utility>

#include "checkpoint/store/file_name.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/remote_file.hpp"
#include "tensorcast/remote_store.hpp"

namespace tensorcast::checkpoint {
namespace {

Result<StoredFile> open_in(std::shared_ptr<RemoteStore> store, const std::string& url) {
  const std::shared_ptr<io::RemoteSource> source = TRY(io::open_remote(std::move(store), url));
  return StoredFile(TRY(io::InputFile::of(source, url)), url, source->file().version);
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
  Result<StoredFile> read_back() override {
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

  Result<StoredFile> open_file(const std::string& name) const override { return open_in(store_, path_of(name)); }

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

 private:
  std::shared_ptr<RemoteStore> store_;
};

}  // namespace

namespace remote {

Result<std::unique_ptr<Folder>> open_folder(const std::string& url) {
  return std::unique_ptr<Folder>(std::make_unique<RemoteFolder>(TRY(io::store_of(url)), url));
}

Result<StoredFile> open_file(const std::string& url) { return open_in(TRY(io::store_of(url)), url); }

bool is_folder(const std::string& url) noexcept {
  const Result<std::shared_ptr<RemoteStore>> store = io::store_of(url);
  const Result<bool> folder = store ? (*store)->is_folder(url) : store.error();
  return folder && *folder;
}

std::optional<std::uint64_t> file_bytes(const std::string& url) noexcept {
  const Result<std::shared_ptr<RemoteStore>> store = io::store_of(url);
  const Result<std::optional<RemoteFile>> file = store ? (*store)->find(url) : store.error();
  return file && file->has_value() ? std::optional((*file)->bytes) : std::nullopt;
}

Result<Listing> list_folder(const std::string& folder, FileGlobs* skip) {
  std::vector<RemoteFile> found = TRY(list(*TRY(io::store_of(folder)), folder));
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
