// SPDX-License-Identifier: Apache-2.0
// Makes the statement about a conversion while it is finished.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/compare/statement.hpp"
#include "checkpoint/plan/work_folder.hpp"

namespace tensorcast::checkpoint {

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
  std::vector<std::string> recipes_, layouts_;
};

}  // namespace tensorcast::checkpoint
