// SPDX-License-Identifier: Apache-2.0
#include "io/parent_folders.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "dtype/try.hpp"
#include "io/folder.hpp"
#include "io/path_name.hpp"
#include "io/system_error.hpp"

namespace tensorcast::io {
namespace {

// Waits until the name of a new folder is on the disk. A folder above that may not be read cannot be synced.
Result<void> sync_above(const std::string& folder) {
  const Result<Folder> above = Folder::open(folder + "/..");
  return above ? above->sync() : Result<void>();
}

}  // namespace

Result<ParentFolders> ParentFolders::create(const std::string& path) {
  TRY(check_path(path));
  if (is_url(path)) return ParentFolders();  // a store has no folders but those that files are in
  constexpr unsigned folder_mode = 0777;
  ParentFolders folders;
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    std::string folder = path.substr(0, slash);
    if (::mkdir(folder.c_str(), folder_mode) == 0) {
      folders.created_.push_back(folder);
      TRY(sync_above(folder));
      continue;
    }
    if (errno != EEXIST && errno != EISDIR) return system_error("create the folder", folder, errno);
  }
  return folders;
}

ParentFolders::~ParentFolders() {
  for (auto folder = created_.rbegin(); folder != created_.rend(); ++folder) ::rmdir(folder->c_str());
}

}  // namespace tensorcast::io
