// SPDX-License-Identifier: Apache-2.0
// Component files. Files and checkpoints behind URLs, such as s3://bucket/model: a store that the caller implements.
// Files that are only read may have a ByteSource instead (byte_source.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct RemoteFile {
  std::string url = {};
  std::uint64_t bytes = 0;
  std::string version = {};  // differs if the file was written again, such as an entity tag; empty: unknown
};

// A file that is being written. It appears under its name on commit(); without one, nothing is left.
class TENSORCAST_API RemoteWriter {
 public:
  virtual ~RemoteWriter();
  [[nodiscard]] virtual Result<void> append(std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Result<void> commit() = 0;
};

// Files by URL. Folders exist as long as a file is in them. Functions may be called from several threads at once, and
// try again by themselves if that can help. Errors: io, naming the URL.
class TENSORCAST_API RemoteStore {
 public:
  virtual ~RemoteStore();
  [[nodiscard]] virtual Result<std::optional<RemoteFile>> find(const std::string& url) = 0;  // nullopt: no such file
  // All files below a folder, in any order, those of its folders too; none if there is no folder.
  [[nodiscard]] virtual Result<std::vector<RemoteFile>> list(const std::string& folder) = 0;
  [[nodiscard]] virtual Result<bool> is_folder(const std::string& url) = 0;
  // Reads exactly out.size() bytes.
  [[nodiscard]] virtual Result<void> read(const std::string& url, std::uint64_t offset, std::span<std::byte> out) = 0;
  // Creates a file, or replaces one on commit().
  [[nodiscard]] virtual Result<std::unique_ptr<RemoteWriter>> create(const std::string& url) = 0;
  // Moves a file, replacing the other; a copy may be left after a crash.
  [[nodiscard]] virtual Result<void> move(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual Result<void> remove(const std::vector<std::string>& urls) = 0;
};

// Sets the store of all paths with "://" that functions which read or write files and checkpoints get; null: none, and
// such paths are errors. A single file that is written waits in the folder of temporary files until it is complete.
// Thread-safe; conversions that run keep the store that they began with at most.
TENSORCAST_API void set_remote_store(std::shared_ptr<RemoteStore> store) noexcept;

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
