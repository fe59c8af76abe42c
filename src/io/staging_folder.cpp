// SPDX-License-Identifier: Apache-2.0
#include "io/staging_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "io/hidden_name.hpp"
#include "io/system_error.hpp"

namespace tensorcast::io {

namespace fs = std::filesystem;

Result<StagingFolder> StagingFolder::create(const std::string& path) {
  constexpr mode_t owner_only = 0700;
  std::error_code failed;
  const fs::path whole = fs::absolute(path, failed);
  if (failed) return system_error("create", path, failed.value());
  StagingFolder staging;
  staging.parent_ = FileDescriptor(::open(whole.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!staging.parent_) return system_error("open the folder", whole.parent_path().string(), errno);
  const int parent = staging.parent_.get();
  for (int slot = 0; slot < hidden_slots; ++slot) {
    std::string hidden = hidden_name(whole.filename().string(), slot);
    remove_abandoned_file(parent, hidden);
    if (::mkdirat(parent, hidden.c_str(), owner_only) != 0) {
      if (errno == EEXIST) continue;
      break;
    }
    staging.fd_ = FileDescriptor(::openat(parent, hidden.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!staging.fd_ || !lock_hidden_file(parent, hidden, staging.fd_)) continue;
    staging.path_ = (whole.parent_path() / hidden).string();
    staging.name_ = std::move(hidden);
    return staging;
  }
  return system_error("create", path, errno);
}

StagingFolder::~StagingFolder() {
  if (fd_) remove_hidden_folder(parent_.get(), name_, fd_.get());
}

}  // namespace tensorcast::io
