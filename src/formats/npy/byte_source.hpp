// The source of the bytes of one .npy: a file, or an entry of an archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/input_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::npy {

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

class FileSource final : public ByteSource {
 public:
  explicit FileSource(const io::InputFile& file) : file_(file) {}

  std::uint64_t size() const override { return file_.size(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override { return file_.read(offset, out); }

 private:
  const io::InputFile& file_;
};

}  // namespace tensorcast::formats::npy
