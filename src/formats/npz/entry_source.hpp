// The contents of one entry of a zip archive.
#pragma once

#include <cstdint>

#include "formats/npy/byte_source.hpp"
#include "formats/npz/zip_reader.hpp"

namespace tensorcast::formats::npz {

// Stored entries are read where they lie; deflated ones as a stream, of which an archive has one at a time: after
// another entry was started, this one must begin anew with a source of its own.
// A read that completes a pass from the beginning to the end fails when the checksum differs.
class EntrySource final : public npy::ByteSource {
 public:
  EntrySource(ZipReader& zip, const ZipEntry& entry) : zip_(zip), entry_(entry) {}

  std::uint64_t size() const override { return entry_.bytes; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override;
  bool random_access() const override { return !entry_.deflated; }
  Result<void> verify() override;

 private:
  [[nodiscard]] Result<void> read_stored(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<void> read_deflated(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<void> inflate(std::span<std::byte> out);

  ZipReader& zip_;
  const ZipEntry& entry_;
  bool started_ = false;
  std::uint64_t position_ = 0;  // deflated: of the stream; stored: how far `crc_` has come
  std::uint32_t crc_ = 0;       // stored only
};

}  // namespace tensorcast::formats::npz
