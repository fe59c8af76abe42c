// SPDX-License-Identifier: Apache-2.0
// Bytes that a format reads: a file, a part of one, an entry of an archive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "io/input_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  [[nodiscard]] virtual std::uint64_t size() const = 0;
  // Returns the bytes that the data takes in the file: fewer than size() if compressed.
  [[nodiscard]] virtual std::uint64_t stored_bytes() const { return size(); }
  // Reads exactly out.size() bytes from `offset`; cheap if offsets ascend.
  // Errors: io; parse if the source ends too early, or contradicts its checksum.
  [[nodiscard]] virtual Result<void> read(std::uint64_t offset, std::span<std::byte> out) = 0;
  // Reports whether any order of offsets is cheap; if not, going back means reading from the beginning.
  [[nodiscard]] virtual bool random_access() const { return true; }
  // Runs the checks that need a read from the beginning to the end. Errors: io, parse.
  [[nodiscard]] virtual Result<void> verify() { return {}; }
};

// A file, or some bytes of it. `file` outlives the source.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(const io::InputFile& file) : FileSource(file, 0, file.size()) {}
  FileSource(const io::InputFile& file, std::uint64_t begin, std::uint64_t bytes)
      : file_(file), begin_(begin), bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override {
    return file_.read(begin_ + offset, out);
  }

 private:
  const io::InputFile& file_;
  std::uint64_t begin_;
  std::uint64_t bytes_;
};

// Bytes in memory, which outlive the source.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override {
    std::ranges::copy(bytes_.subspan(offset, out.size()), out.begin());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace tensorcast::formats
