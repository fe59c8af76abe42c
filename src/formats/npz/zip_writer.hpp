// Streams a zip archive into an OutputFile, by minizip. The same entries always give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/output_file.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::npz {

class ZipWriter {
 public:
  // `file` is empty and outlives the writer.
  [[nodiscard]] static Result<std::unique_ptr<ZipWriter>> open(io::OutputFile& file);
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;
  ~ZipWriter();

  struct EntryOptions {
    std::string comment = {};
    bool deflate = false;
    bool large = false;  // may exceed 4 GiB, so its sizes take 64 bits
  };
  // Names and comments have at most 65,535 bytes of UTF-8 without NUL.
  [[nodiscard]] Result<void> begin(const std::string& name, const EntryOptions& options);
  [[nodiscard]] Result<void> append(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> end();
  // After the last entry: the directory.
  [[nodiscard]] Result<void> finish();

 private:
  struct Stream;  // what minizip writes through

  ZipWriter();
  [[nodiscard]] Error failure(std::string what) const;

  std::unique_ptr<Stream> stream_;
  void* archive_ = nullptr;  // minizip's zipFile
};

}  // namespace tensorcast::formats::npz
