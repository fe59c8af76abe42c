// Lists the files of a checkpoint's folder, and finds the folder in Hugging Face's cache.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/file_glob.hpp"
#include "checkpoint/local_folder.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::checkpoint {

struct Listing {
  std::vector<ListedFile> files;           // by name
  std::vector<std::string> empty_folders;  // relative names
  std::vector<LeftOut> left_out;           // .git, .cache and .tcast, with their bytes
};
// Lists what is below `folder`. Hidden files of this program are left out without a word. Errors: io; parse, for links
// to folders; unsupported, for devices and pipes. What `skip` matches is not looked at, and is in `left_out`.
[[nodiscard]] Result<Listing> list_folder(const std::string& folder, FileGlobs* skip = nullptr);

// Reports whether a file is in a folder whose name starts with a dot: such a file is only copied.
[[nodiscard]] bool is_in_dot_folder(std::string_view name) noexcept;

// Returns the snapshot in the root of a model of Hugging Face's cache (models--ORG--NAME): that of refs/main, or else
// the only one. Returns other folders as they are. Errors: unsupported, naming the snapshots to choose from.
[[nodiscard]] Result<std::string> snapshot_of(const std::string& folder);

}  // namespace tensorcast::checkpoint
