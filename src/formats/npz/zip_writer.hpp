// SPDX-License-Identifier: Apache-2.0
// Streams a zip archive into an OutputFile. The same entries always give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/npz/deflate_stream.hpp"
#include "formats/npz/zip_records.hpp"
#include "io/output_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::npz {

class ZipWriter {
 public:
  // `file` is empty and outlives the writer.
  explicit ZipWriter(io::OutputFile& file) : file_(file) {}

  struct EntryOptions {
    std::string comment = {};
    bool deflate = false;
    bool large = false;  // may exceed 4 GiB: sizes take 64 bits
  };
  // Names and comments have at most 65,535 bytes of UTF-8 without NUL.
  [[nodiscard]] Result<void> begin(const std::string& name, const EntryOptions& options);
  [[nodiscard]] Result<void> append(std::span<const std::byte> bytes);
  // Errors: io; internal if an entry without `large` exceeds 4 GiB.
  [[nodiscard]] Result<void> end();
  // Writes the directory; call after the last entry.
  [[nodiscard]] Result<void> finish();

 private:
  struct Entry {
    std::string name;
    EntryOptions options;
    std::uint64_t offset = 0;       // of its own header
    std::uint64_t data_offset = 0;  // of the contents
    std::uint64_t bytes = 0;        // of the contents
    std::uint32_t crc = 0;          // of the contents
  };

  [[nodiscard]] RecordWriter local_header(std::uint64_t stored_bytes) const;
  void add_to_directory(std::uint64_t stored_bytes);

  io::OutputFile& file_;
  Entry entry_;
  std::optional<DeflateStream> deflate_;  // set if the entry is deflated
  RecordWriter directory_;
  std::uint64_t entries_ = 0;
};

}  // namespace tensorcast::formats::npz
