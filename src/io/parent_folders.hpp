// SPDX-License-Identifier: Apache-2.0
// Creates the parent folders of an output file.
#pragma once

#include <string>
#include <vector>

#include "tensorcast/error.hpp"

namespace tensorcast::io {

// Creates the folders that a path needs, their names synced, and removes them again unless keep() is called.
class ParentFolders {
 public:
  ParentFolders() noexcept = default;
  // Errors: io.
  [[nodiscard]] static Result<ParentFolders> create(const std::string& path);

  ParentFolders(ParentFolders&& other) noexcept : created_(std::move(other.created_)) { other.created_.clear(); }
  ParentFolders& operator=(ParentFolders&& other) noexcept {
    created_.swap(other.created_);
    return *this;
  }
  ~ParentFolders();

  void keep() noexcept { created_.clear(); }

 private:
  std::vector<std::string> created_;  // outermost first
};

}  // namespace tensorcast::io
