#include "io/parent_folders.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/path_name.hpp"
#include "io/system_error.hpp"

namespace tensorcast::io {

Result<ParentFolders> ParentFolders::create(const std::string& path) {
  if (Result<void> checked = check_path(path); !checked) return std::move(checked).error();
  constexpr unsigned usual_mode = 0777;
  ParentFolders folders;
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    std::string folder = path.substr(0, slash);
    if (::mkdir(folder.c_str(), usual_mode) == 0) {
      folders.created_.push_back(std::move(folder));
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
