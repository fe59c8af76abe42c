// SPDX-License-Identifier: Apache-2.0
// Reads the tensors of several files as if they were in one.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/source/source.hpp"
#include "checkpoint/store/stored_file.hpp"
#include "formats/format.hpp"

namespace tensorcast::checkpoint {

// Files are opened when they are read first. At most `most_open` are open at a time, as a process may have a few
// hundred descriptors for a thousand shards. Not thread-safe.
class ShardReader final : public formats::Reader {
 public:
  static constexpr std::size_t most_open = 8;

  // Adds a file; returns its index.
  std::size_t add_file(const std::string& folder, const SourceFile& file);
  // Adds a file that is open, and stays so.
  std::size_t add_open_file(StoredFile file);
  // Adds a tensor whose bytes begin at `begin` of a file.
  void add_tensor(formats::TensorInfo tensor, std::size_t file, std::uint64_t begin) {
    tensors_.push_back(std::move(tensor));
    places_.push_back({file, begin});
  }
  // Adds the metadata of a file; the first value of a key stays.
  void add_metadata(const formats::Metadata& metadata) {
    for (const auto& entry : metadata) {
      if (keys_.insert(entry.first).second) metadata_.push_back(entry);
    }
  }

  [[nodiscard]] const std::vector<formats::TensorInfo>& tensors() const override { return tensors_; }
  // The file of a tensor, with its folder.
  [[nodiscard]] std::string path_of(std::size_t tensor) const {
    const File& file = files_[places_[tensor].file];
    return file.folder + "/" + file.file.name;
  }
  [[nodiscard]] const formats::Metadata& metadata() const override { return metadata_; }
  // Errors: io, also if the file has changed since its header was read.
  [[nodiscard]] Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override;

 private:
  struct Place {
    std::size_t file;
    std::uint64_t begin;
  };
  struct File {
    std::string folder;
    SourceFile file;
    std::optional<StoredFile> open = {};
    bool stays = false;
  };
  [[nodiscard]] Result<void> open(std::size_t index);

  std::vector<File> files_;
  std::list<std::size_t> open_;  // the one read last is first
  std::vector<formats::TensorInfo> tensors_;
  std::vector<Place> places_;
  formats::Metadata metadata_;
  std::set<std::string> keys_;  // of metadata_
};

}  // namespace tensorcast::checkpoint
