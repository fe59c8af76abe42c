// SPDX-License-Identifier: Apache-2.0
// The files that a statement names, and their hashes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/compare/statement.hpp"
#include "checkpoint/source/source.hpp"
#include "checkpoint/store/stored_file.hpp"

namespace tensorcast::checkpoint {

// The files of a checkpoint or of a single file, without SHA256SUMS, the statement and our record.
struct AttestedFolder {
  std::string folder;
  std::vector<std::string> names;  // relative to it
};

// Errors: those of read_source().
[[nodiscard]] Result<AttestedFolder> attested_files(const std::string& path,
                                                    const std::vector<std::string>& skip_files = {});

// Opens the file at a path, or at a URL of a store.
[[nodiscard]] Result<std::unique_ptr<StoredFile>> open_at(const std::string& path);
// Returns the name and the hash of the file at a path.
[[nodiscard]] Result<DigestedFile> digest_of(const std::string& path);

}  // namespace tensorcast::checkpoint
