// SPDX-License-Identifier: Apache-2.0
// Files behind URLs, in the store that set_remote_store() sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "tensorcast/byte_source.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/remote_store.hpp"

namespace tensorcast::io {

// Errors: unsupported, with the URL: there is no store.
[[nodiscard]] Result<std::shared_ptr<RemoteStore>> store_of(const std::string& url);

// A file of a store. Small reads are served from larger requests, as each takes a round trip. Thread-safe.
class RemoteSource final : public ByteSource {
 public:
  RemoteSource(std::shared_ptr<RemoteStore> store, RemoteFile file);

  [[nodiscard]] std::uint64_t size() const noexcept override { return file_.bytes; }
  // Errors: io, also if the file is not the one that was opened; parse if it ends too early. Both name the file.
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out) override;
  [[nodiscard]] const RemoteFile& file() const noexcept { return file_; }

 private:
  [[nodiscard]] Result<void> fill(std::uint64_t offset);
  [[nodiscard]] Result<void> read_range(std::uint64_t offset, std::span<std::byte> out);

  std::shared_ptr<RemoteStore> store_;
  RemoteFile file_;
  std::mutex mutex_;
  std::unique_ptr<std::byte[]> window_;
  std::uint64_t window_begin_ = 0;
  std::size_t window_size_ = 0;
};

// Errors: io: there is no such file, and those of the store.
[[nodiscard]] Result<std::shared_ptr<RemoteSource>> open_remote(std::shared_ptr<RemoteStore> store,
                                                                const std::string& url);

}  // namespace tensorcast::io
