// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/attested_files.hpp"

#include <span>

#include "checkpoint/plan/work_folder.hpp"
#include "checkpoint/store/file_name.hpp"
#include "checkpoint/store/folder.hpp"
#include "dtype/try.hpp"
#include "io/sha256.hpp"
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

AttestedFolder attested_files(const SourceCheckpoint& checkpoint) {
  AttestedFolder files{.folder = checkpoint.folder, .names = {}};
  for (const SourceShard& shard : checkpoint.shards) files.names.push_back(shard.name);
  for (const SourceModel& model : checkpoint.models) {
    if (!model.index.empty()) files.names.push_back(model.index);
  }
  for (const ListedFile& file : checkpoint.others) {
    const bool is_about_others = file.name == sums_name || file.name == attestation_name || file.name == record_name;
    if (!is_about_others) files.names.push_back(file.name);
  }
  return files;
}

Result<AttestedFolder> attested_files(const std::string& path, const std::vector<std::string>& skip_files) {
  if (!is_checkpoint(path)) return AttestedFolder{.folder = folder_of_path(path), .names = {last_component(path)}};
  return attested_files(TRY(read_source(path, skip_files)));
}

Result<std::string> sha256_of_file(const StoredFile& file, const std::function<bool(std::uint64_t bytes)>& advance) {
  io::Sha256 hash;
  TRY(read_blocks(file, [&](std::span<const std::byte> bytes) -> Result<void> {
    hash.update(bytes);
    if (advance(bytes.size())) return {};
    return Error{.code = ErrorCode::cancelled, .message = "cancelled"};
  }));
  return hash.digest();
}

Result<std::unique_ptr<StoredFile>> open_at(const std::string& path) {
  return open_source(folder_of_path(path), last_component(path));
}

Result<DigestedFile> digest_of(const std::string& path) {
  const std::unique_ptr<StoredFile> file = TRY(open_at(path));
  return DigestedFile{.name = last_component(path),
                      .sha256 = TRY(sha256_of_file(*file, [](std::uint64_t) { return true; }))};
}

}  // namespace tensorcast::checkpoint
