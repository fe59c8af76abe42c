// SPDX-License-Identifier: Apache-2.0
// Reads the directory of a zip archive. No file is ever extracted: a name is never used as a path.
#pragma once

#include <cstddef>
#include <cstdint>
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
};

[[nodiscard]] Error damaged_archive(std::string what);

// Reads and checks the directory and every entry's own header. Entries lie inside the file and do not overlap; folders
// are left out. Memory is proportional to the directory. Precondition: `file` begins with the archive.
// Errors: parse; unsupported for other methods, passwords, several files, and directories beyond the limits; io.
[[nodiscard]] Result<std::vector<ZipEntry>> read_zip_directory(const io::InputFile& file);

}  // namespace tensorcast::formats::npz
