// SPDX-License-Identifier: Apache-2.0
// A store for tests, which has its files in memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorcast/remote_store.hpp"

namespace tensorcast {

class MemoryStore final : public RemoteStore {
 public:
  std::map<std::string, std::string> files;
  std::function<void(const std::string& url)> on_commit;  // after a file appears; may use the store
  std::function<void()> on_read;                          // after a range was read; may change `files`

  class Writer final : public RemoteWriter {
   public:
    Writer(MemoryStore& store, std::string url) : store_(store), url_(std::move(url)) {}
    Result<void> append(std::span<const std::byte> bytes) override {
      content_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    }
    Result<void> commit() override {
      {
        const std::scoped_lock lock(store_.mutex_);
        store_.files[url_] = content_;
      }
      if (store_.on_commit) store_.on_commit(url_);
      return {};
    }

   private:
    MemoryStore& store_;
    std::string url_;
    std::string content_;
  };

  Result<std::optional<RemoteFile>> find(const std::string& url) override {
    const std::scoped_lock lock(mutex_);
    const auto found = files.find(url);
    if (found == files.end()) return std::optional<RemoteFile>();
    return std::optional(file_of(*found));
  }
  Result<std::vector<RemoteFile>> list(const std::string& folder) override {
    const std::scoped_lock lock(mutex_);
    std::vector<RemoteFile> below;
    for (const auto& file : files) {
      if (file.first.starts_with(folder + "/")) below.push_back(file_of(file));
    }
    return below;
  }
  Result<bool> is_folder(const std::string& url) override {
    const std::scoped_lock lock(mutex_);
    return std::ranges::any_of(files, [&](const auto& file) { return file.first.starts_with(url + "/"); });
  }
  Result<void> read(const std::string& url, std::uint64_t offset, std::span<std::byte> out) override {
    const std::scoped_lock lock(mutex_);
    std::memcpy(out.data(), files.at(url).data() + offset, out.size());
    if (on_read) on_read();
    return {};
  }
  Result<std::unique_ptr<RemoteWriter>> create(const std::string& url) override {
    return std::unique_ptr<RemoteWriter>(std::make_unique<Writer>(*this, url));
  }
  Result<void> move(const std::string& from, const std::string& to) override {
    const std::scoped_lock lock(mutex_);
    files[to] = files.at(from);
    files.erase(from);
    return {};
  }
  Result<void> remove(const std::vector<std::string>& urls) override {
    const std::scoped_lock lock(mutex_);
    for (const std::string& url : urls) files.erase(url);
    return {};
  }

 private:
  static RemoteFile file_of(const std::pair<const std::string, std::string>& file) {
    return {.url = file.first,
            .bytes = file.second.size(),
            .version = std::to_string(std::hash<std::string>()(file.second))};
  }

  std::mutex mutex_;
};

}  // namespace tensorcast
