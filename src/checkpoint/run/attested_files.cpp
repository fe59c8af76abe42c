// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/attested_files.hpp"

#include "checkpoint/store/file_name.hpp"
#include "checkpoint/store/folder.hpp"
#include "dtype/try.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast::checkpoint {
namespace {

std::string folder_of_path(const std::string& path) {
  std::string folder = folder_of(path);
  if (folder.empty()) return ".";
  if (folder.size() > 1) folder.pop_back();
  return folder;
}

}  // namespace

Result<AttestedFolder> attested_files(const std::string& path, const std::vector<std::string>& skip_files) {
  if (!is_checkpoint(path)) return AttestedFolder{.folder = folder_of_path(path), .names = {last_component(path)}};
  const SourceCheckpoint checkpoint = TRY(read_source(path, skip_files));
  return AttestedFolder{.folder = checkpoint.folder, .names = file_names(checkpoint)};
}

Result<std::unique_ptr<StoredFile>> open_at(const std::string& path) {
  return open_source(folder_of_path(path), last_component(path));
}

Result<DigestedFile> digest_of(const std::string& path) {
  const std::unique_ptr<StoredFile> file = TRY(open_at(path));
  return DigestedFile{.name = last_component(path), .sha256 = TRY(sha256_of_file(*file))};
}

}  // namespace tensorcast::checkpoint
