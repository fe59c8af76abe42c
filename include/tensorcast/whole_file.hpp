// SPDX-License-Identifier: Apache-2.0
// Component files. Reads and writes small files, such as rules and reports, with the guarantees of files of tensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Reads a regular file of at most `max_bytes`; never waits for a pipe or a device.
// Errors: io; unsupported when the file is larger. Both name the file.
[[nodiscard]] TENSORCAST_API Result<std::string> read_whole_file(const std::string& path, std::uint64_t max_bytes);

// Returns the plain data of a PyTorch checkpoint that are no tensors, such as an optimizer's settings, as a JSON text;
// "" if there are none, and for other formats. convert_file() writes them beside its output. Errors: as inspect().
[[nodiscard]] TENSORCAST_API Result<std::string> read_other_data(const std::string& path);

struct WriteFileOptions {
  bool overwrite = false;
};

// Writes `bytes` under the name `path`, where they appear only when they are complete and synced. On any error an old
// file stays as it was. Errors: io; invalid_argument when `path` exists and `overwrite` is off, or is not a regular
// file.
[[nodiscard]] TENSORCAST_API Result<void> write_whole_file(const std::string& path, std::string_view bytes,
                                                           const WriteFileOptions& options = {});

// A path that a run reads or writes, with the noun that messages have for it.
struct PathUse {
  std::string path = {};
  std::string noun = {};  // "report"
  bool folder = false;    // all below it is used, too
};

// Checks that writing `written` changes none of `others`: it is none of them, in none of their folders and, if it is a
// folder itself, has none of them below it. Files and folders are compared by device and inode, through links; names
// that do not exist yet by the nearest folder that does. Errors: invalid_argument, with the nouns of both; io.
[[nodiscard]] TENSORCAST_API Result<void> check_apart(const PathUse& written, std::span<const PathUse> others);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
