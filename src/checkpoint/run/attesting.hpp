// SPDX-License-Identifier: Apache-2.0
// The files that a statement is about, and the statement that is made while a conversion is finished.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/plan/work_folder.hpp"
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
[[nodiscard]] Result<StoredFile> open_at(const std::string& path);
// Returns the name and the hash of the file at a path.
[[nodiscard]] Result<DigestedFile> digest_of(const std::string& path);

class Attesting {
 public:
  // Both outlive this. `path`: the file of the statement.
  Attesting(const ConvertRequest& request, const std::string& path) : request_(request), path_(path) {}

  // Errors: unsupported: requests that a statement cannot say; invalid_argument: a place where no statement may be.
  [[nodiscard]] Result<void> check() const;
  // Whether the statement is a file of the output folder.
  [[nodiscard]] bool is_inside() const;

  // Hashes the input. What is known is kept in `folder`, if there is one, so that a conversion that goes on after a
  // crash hashes nothing twice. Errors: io.
  [[nodiscard]] Result<void> hash_inputs(const WorkFolder* folder = nullptr);
  // Adds the recipes of a record in an output's metadata.
  void add_recipes(const formats::Metadata& metadata);

  // Returns the statement. Precondition: the input is hashed.
  [[nodiscard]] std::string text(std::vector<DigestedFile> outputs, const std::string& output_format = {}) const;
  // Writes a statement that is not inside of the folder. A file with the same text stays. Errors: io, invalid_argument.
  [[nodiscard]] Result<void> write(const std::string& text) const;

 private:
  const ConvertRequest& request_;
  const std::string& path_;
  std::vector<DigestedFile> inputs_;
  std::optional<DigestedFile> importance_;
  std::set<std::string> recipes_, layouts_;
};

}  // namespace tensorcast::checkpoint
