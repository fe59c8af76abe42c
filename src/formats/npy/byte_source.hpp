// Where the bytes of one .npy come from: a file of its own, or an entry of an archive.
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
  // Bytes of the file that hold it, which are fewer where it is compressed.
  [[nodiscard]] virtual std::uint64_t stored_bytes() const { return size(); }
  // Exactly out.size() bytes from `offset`; always cheap when offsets ascend.
  // Errors: io; parse when the source ends before, or contradicts its checksum.
  [[nodiscard]] virtual Result<void> read(std::uint64_t offset, std::span<std::byte> out) = 0;
  // Whether any order of offsets is cheap; if not, going back means starting again.
  [[nodiscard]] virtual bool random_access() const { return true; }
  // Checks everything that only a read from the beginning to the end would notice. Errors: io, parse.
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
