// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/shard_reader.hpp"

#include <algorithm>

#include "dtype/try.hpp"

namespace tensorcast::checkpoint {

std::size_t ShardReader::add_file(const std::string& folder, const SourceFile& file) {
  files_.push_back({.folder = folder, .file = file});
  return files_.size() - 1;
}

std::size_t ShardReader::add_open_file(StoredFile file) {
  files_.push_back({.folder = {}, .file = {}, .open = std::move(file), .stays = true});
  return files_.size() - 1;
}

Result<void> ShardReader::open(std::size_t index) {
  File& file = files_[index];
  if (file.stays || (!open_.empty() && open_.front() == index)) return {};
  if (file.open) {
    open_.splice(open_.begin(), open_, std::ranges::find(open_, index));
    return {};
  }
  if (open_.size() == most_open) {
    files_[open_.back()].open.reset();
    open_.pop_back();
  }
  file.open = TRY(reopen(file.folder, file.file));
  open_.push_front(index);
  return {};
}

Result<void> ShardReader::read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) {
  const Place& place = places_[index];
  TRY(open(place.file));
  return files_[place.file].open->read(place.begin + offset, out);
}

}  // namespace tensorcast::checkpoint
