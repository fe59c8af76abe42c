// SPDX-License-Identifier: Apache-2.0
// A hidden folder for files that must be found under their names before they are in their place.
#pragma once

#include <string>

#include "io/file_descriptor.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::io {

class StagingFolder {
 public:
  // Creates it beside `path`, under a hidden_name(); only its owner may enter. Errors: io.
  [[nodiscard]] static Result<StagingFolder> create(const std::string& path);

  StagingFolder(StagingFolder&& other) noexcept = default;
  StagingFolder& operator=(StagingFolder&&) = delete;
  ~StagingFolder();  // removes it and the files in it

  [[nodiscard]] const std::string& path() const noexcept { return path_; }  // absolute

 private:
  StagingFolder() noexcept = default;

  FileDescriptor parent_;
  FileDescriptor fd_;  // has the lock
  std::string name_;
  std::string path_;
};

}  // namespace tensorcast::io
