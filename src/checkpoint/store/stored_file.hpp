// SPDX-License-Identifier: Apache-2.0
// A file of a checkpoint's folder, here or behind a URL: ranges of its bytes are read, and bytes are appended to a new
// one. What a format reads is a formats::StreamSource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "io/input_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

struct DigestedFile {
  std::string name;    // relative to its folder
  std::string sha256;  // 64 hexadecimal digits
};

// A complete file, opened for reads of ranges. Thread-safe.
class StoredFile {
 public:
  // `path`: as the user knows it, with links. `version`: differs if the file was written again: a time in nanoseconds,
  // or the entity tag of an object.
  StoredFile(io::InputFile file, std::string path, std::string version)
      : file_(std::move(file)), path_(std::move(path)), version_(std::move(version)) {}

  // Reads exactly out.size() bytes from `offset`. Errors: io; parse if the file ends too early. Both name the file.
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out) const {
    Result<void> got = file_.read(offset, out);
    if (!got) got.error().file = path_;
    return got;
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return file_.size(); }
  [[nodiscard]] const std::string& version() const noexcept { return version_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }  // for messages
  // The file's permissions, such as 0644; 0 if the store has none.
  [[nodiscard]] unsigned mode() const noexcept { return file_.mode(); }

 private:
  io::InputFile file_;
  std::string path_, version_;
};

// A file that appears under its name on commit() only.
class NewFile {
 public:
  virtual ~NewFile() = default;
  // Sets the file's permissions, such as 0644, if the store has them; 0 leaves them.
  virtual void set_mode(unsigned /*mode*/) noexcept {}
  [[nodiscard]] virtual Result<void> append(std::span<const std::byte> bytes) = 0;
  // Opens what was appended so far for reading, from the disk if possible.
  [[nodiscard]] virtual Result<StoredFile> read_back() = 0;
  [[nodiscard]] virtual Result<void> commit() = 0;
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;
};

}  // namespace tensorcast::checkpoint
