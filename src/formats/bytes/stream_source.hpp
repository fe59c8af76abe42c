// SPDX-License-Identifier: Apache-2.0
// Bytes that a format reads: a file, a part of one, an entry of an archive, which may be compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/input_file.hpp"
#include "tensorcast/byte_source.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats {

// Reads are cheap if offsets ascend. Errors of reads: io; parse if the source ends too early, or contradicts its
// checksum.
class StreamSource : public ByteSource {
 public:
  // Returns the bytes that the data takes in the file: fewer than size() if compressed.
  [[nodiscard]] virtual std::uint64_t stored_bytes() const { return size(); }
  // Reports whether any order of offsets is cheap; if not, going back means reading from the beginning.
  [[nodiscard]] virtual bool random_access() const { return true; }
  // Runs the checks that need a read from the beginning to the end. Errors: io, parse.
  [[nodiscard]] virtual Result<void> verify() { return {}; }
};

// A file, or some bytes of it. `file` outlives the source.
class FileSource final : public StreamSource {
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

}  // namespace tensorcast::formats
