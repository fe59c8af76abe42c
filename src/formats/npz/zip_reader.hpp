// A zip archive opened for bounded reads, by minizip. Nothing is ever extracted: names are just names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/input_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::npz {

struct ZipEntry {
  std::string name;     // UTF-8
  std::string comment;  // empty for almost all archives
  bool deflated = false;
  std::uint64_t data_offset = 0;   // in the file
  std::uint64_t stored_bytes = 0;  // in the file
  std::uint64_t bytes = 0;         // of the contents
  std::uint32_t crc = 0;           // of the contents
  std::uint64_t directory_offset = 0;
  std::uint64_t directory_index = 0;
};

// Entries lie inside the file and apart from each other; those of other methods or with a password are refused.
class ZipReader {
 public:
  // `file` outlives the reader. Errors: parse, unsupported, io.
  [[nodiscard]] static Result<std::unique_ptr<ZipReader>> open(const io::InputFile& file);
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;
  ~ZipReader();

  [[nodiscard]] const std::vector<ZipEntry>& entries() const noexcept { return entries_; }  // folders left out
  [[nodiscard]] const io::InputFile& file() const noexcept { return file_; }

  // One deflated entry at a time is read, from its beginning on.
  [[nodiscard]] Result<void> start(const ZipEntry& entry);
  // Exactly out.size() more bytes. Errors: io, parse.
  [[nodiscard]] Result<void> inflate(std::span<std::byte> out);
  // After the last byte. Errors: parse when the checksum differs.
  [[nodiscard]] Result<void> finish();

 private:
  explicit ZipReader(const io::InputFile& file);
  [[nodiscard]] Result<bool> is_empty_archive() const;
  [[nodiscard]] Result<void> open_archive();
  [[nodiscard]] Result<void> list_entries();
  [[nodiscard]] Result<std::optional<ZipEntry>> describe_entry();
  [[nodiscard]] Result<void> check_apart() const;
  [[nodiscard]] Error damaged(std::string what) const;

  struct Stream;  // what minizip reads through

  const io::InputFile& file_;
  std::unique_ptr<Stream> stream_;
  void* archive_ = nullptr;  // minizip's unzFile
  bool started_ = false;
  std::vector<ZipEntry> entries_;
  std::uint64_t text_bytes_ = 0;  // of names and comments
};

}  // namespace tensorcast::formats::npz
