// Reads the tensors of several files as if they were in one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/byte_source.hpp"
#include "formats/format.hpp"

namespace tensorcast::checkpoint {

class ShardReader final : public formats::Reader {
 public:
  // Adds a file; returns its index.
  std::size_t add_file(std::unique_ptr<ByteSource> file) {
    files_.push_back(std::move(file));
    return files_.size() - 1;
  }
  // Adds a tensor whose bytes begin at `begin` of a file.
  void add_tensor(formats::TensorInfo tensor, std::size_t file, std::uint64_t begin) {
    tensors_.push_back(std::move(tensor));
    places_.push_back({file, begin});
  }

  [[nodiscard]] const std::vector<formats::TensorInfo>& tensors() const override { return tensors_; }
  [[nodiscard]] const formats::Metadata& metadata() const override { return metadata_; }
  [[nodiscard]] Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override {
    return files_[places_[index].file]->read(places_[index].begin + offset, out);
  }

 private:
  struct Place {
    std::size_t file;
    std::uint64_t begin;
  };
  std::vector<std::unique_ptr<ByteSource>> files_;
  std::vector<formats::TensorInfo> tensors_;
  std::vector<Place> places_;
  formats::Metadata metadata_;
};

}  // namespace tensorcast::checkpoint
