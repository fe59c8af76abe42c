// SPDX-License-Identifier: Apache-2.0
// The contents of one entry of a zip archive.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/bytes/stream_source.hpp"
#include "formats/npz/deflate_stream.hpp"
#include "formats/npz/zip_reader.hpp"

namespace tensorcast::formats::npz {

// Stored entries are read in place, deflated ones as a stream. A read that completes a pass from the beginning to the
// end fails if the checksum differs.
class EntrySource final : public StreamSource {
 public:
  // `file` and `entry` outlive the source.
  EntrySource(const io::InputFile& file, const ZipEntry& entry) : file_(file), entry_(entry) {}

  std::uint64_t size() const override { return entry_.bytes; }
  std::uint64_t stored_bytes() const override { return entry_.stored_bytes; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override;
  bool random_access() const override { return !entry_.deflated; }
  Result<void> verify() override;

 private:
  [[nodiscard]] Result<void> read_deflated(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<void> inflate(std::span<std::byte> out);
  // Adds the next bytes of the pass to the checksum, and compares it after the last byte.
  [[nodiscard]] Result<void> check(std::span<const std::byte> bytes);

  const io::InputFile& file_;
  const ZipEntry& entry_;
  std::optional<InflateStream> stream_;
  std::uint64_t position_ = 0;  // bytes of the pass read so far
  std::uint32_t crc_ = 0;       // of the bytes up to position_
};

}  // namespace tensorcast::formats::npz
