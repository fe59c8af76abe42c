// SPDX-License-Identifier: Apache-2.0
// A file of a checkpoint's folder, here or behind a URL: ranges of its bytes are read, and bytes are appended to a new
// one. What a format reads is a formats::StreamSource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

struct DigestedFile {
  std::string name;    // relative to its folder
  std::string sha256;  // 64 hexadecimal digits
};

// A complete file, opened for reads of ranges. Thread-safe.
class StoredFile {
 public:
  virtual ~StoredFile() = default;
  // Reads exactly out.size() bytes from `offset`. Errors: io; parse if the file ends too early. Both name the file.
  [[nodiscard]] virtual Result<void> read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  // Differs if the file was written again: a time in nanoseconds, or the entity tag of an object.
  [[nodiscard]] virtual std::string version() const = 0;
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;  // for messages
  // The file's permissions, such as 0644; 0 if the store has none.
  [[nodiscard]] virtual unsigned mode() const noexcept { return 0; }
};

// A file that appears under its name on commit() only.
class NewFile {
 public:
  virtual ~NewFile() = default;
  // Sets the file's permissions, such as 0644, if the store has them; 0 leaves them.
  virtual void set_mode(unsigned /*mode*/) noexcept {}
  [[nodiscard]] virtual Result<void> append(std::span<const std::byte> bytes) = 0;
  // Opens what was appended so far for reading, from the disk if possible.
  [[nodiscard]] virtual Result<std::unique_ptr<StoredFile>> read_back() = 0;
  [[nodiscard]] virtual Result<void> commit() = 0;
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;
};

}  // namespace tensorcast::checkpoint
