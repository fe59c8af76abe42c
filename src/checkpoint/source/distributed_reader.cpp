// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/distributed_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/store/file_name.hpp"
#include "checkpoint/store/local_folder.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/array_part.hpp"
#include "formats/format_list.hpp"
#include "formats/pytorch/distributed_metadata.hpp"
#include "io/sha256.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::checkpoint {
namespace {

using formats::TensorInfo;
using formats::pytorch::damaged_distributed;
using formats::pytorch::DistributedMetadata;
using formats::pytorch::DistributedTensor;
using formats::pytorch::StoredItem;
using formats::pytorch::TensorChunk;

// Counts the elements of a chunk before element `index` of its tensor, in C order.
std::uint64_t count_before(const std::vector<std::int64_t>& shape, const TensorChunk& chunk, std::uint64_t index) {
  if (shape.empty()) return index;
  std::uint64_t inner = 1;  // elements of the tensor and of the chunk for each index of the dimension
  std::uint64_t inner_chunk = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    inner *= static_cast<std::uint64_t>(shape[i]);
    inner_chunk *= static_cast<std::uint64_t>(chunk.sizes[i]);
  }
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (inner == 0 || inner_chunk == 0) return 0;
    const auto offset = static_cast<std::uint64_t>(chunk.offsets[i]), size = static_cast<std::uint64_t>(chunk.sizes[i]);
    inner /= static_cast<std::uint64_t>(shape[i]);
    inner_chunk /= size;
    const std::uint64_t digit = index / inner;
    index %= inner;
    if (digit < offset) return count;
    count += std::min(digit - offset, size) * inner_chunk;
    if (digit - offset >= size) return count;
  }
  return count;
}

formats::ArrayPart part_of(const std::vector<std::int64_t>& shape, const TensorChunk& chunk) {
  std::vector<IndexRange> ranges;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto begin = static_cast<std::uint64_t>(chunk.offsets[i]);
    ranges.push_back({begin, begin + static_cast<std::uint64_t>(chunk.sizes[i])});
  }
  return formats::ArrayPart(shape, std::move(ranges));
}

// A part of a file, as a file of torch.save.
struct OpenItem {
  OpenItem(const io::InputFile& whole, const StoredItem& item)
      : part(io::InputFile::spliced(whole, {{.bytes = item.bytes, .offset = item.offset, .text = {}}})) {}

  io::InputFile part;
  std::unique_ptr<formats::Reader> reader;
};

class DistributedReader final : public formats::Reader {
 public:
  DistributedReader(std::string folder, std::string prefix) : folder_(std::move(folder)), prefix_(std::move(prefix)) {}

  Result<void> open(bool check_all, std::string& version) {
    const io::InputFile file = TRY(open_local(folder_, prefix_ + std::string(distributed_metadata)));
    source_ = TRY(formats::pytorch::read_distributed_metadata(file));
    TRY(measure_files(file, version));
    for (const DistributedTensor& tensor : source_.tensors) TRY(of_tensor(tensor.name, add_tensor(tensor, check_all)));
    for (const auto& data : source_.data) TRY(add_data(data));
    other_data_ += other_data_.empty() ? "" : "}";
    return {};
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const formats::Metadata& metadata() const override { return metadata_; }
  std::string_view other_data() const override { return other_data_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }

  Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override {
    const Entry& entry = entries_[index];
    return of_tensor(tensors_[index].name, entry.tensor != nullptr ? read_chunks(*entry.tensor, offset, out)
                                                                   : read_object(entry, offset, out));
  }

 private:
  // A tensor of chunks, or one inside of an object.
  struct Entry {
    const DistributedTensor* tensor = nullptr;
    StoredItem item = {};   // of an object
    std::size_t inner = 0;  // index in the reader of `item`
  };

  Result<void> measure_files(const io::InputFile& metadata, std::string& version) {
    std::string text = fmt::format("{} {}\n", metadata.size(), metadata.modified_ns());
    for (const std::string& name : source_.files) {
      const io::InputFile file = TRY(open_local(folder_, prefix_ + name));
      text += fmt::format("{} {}\n", file.size(), file.modified_ns());
      sizes_.push_back(file.size());
      left_bytes_ += bytes_per_byte * file.size();
    }
    version = io::sha256_of(text);
    return {};
  }

  Result<void> check_place(const StoredItem& item) const {
    const std::uint64_t size = sizes_[item.file];
    if (item.offset <= size && item.bytes <= size - item.offset) return {};
    return damaged_distributed(fmt::format("a chunk reaches beyond the end of {}", source_.files[item.file]));
  }

  Result<void> take_bytes(std::uint64_t bytes) {
    if (bytes > left_bytes_) return damaged_distributed("its tensors repeat the bytes of its files too often");
    left_bytes_ -= bytes;
    return {};
  }

  Result<void> add_tensor(const DistributedTensor& tensor, bool check_all) {
    const auto& type = *tensor.type;
    TensorInfo info{
        .name = tensor.name, .dtype = type.dtype, .shape = tensor.shape, .foreign_dtype = std::string(type.foreign)};
    const std::size_t items = TRY(element_count(tensor.shape));
    if (type.packed > 1 && info.shape.empty()) return damaged_distributed("a shape that its type cannot have");
    if (type.packed > 1 && __builtin_mul_overflow(info.shape.back(), std::int64_t{type.packed}, &info.shape.back())) {
      return damaged_distributed("a shape that its type cannot have");
    }
    info.count = TRY(element_count(info.shape));
    if (__builtin_mul_overflow(items, std::uint64_t{type.item_bytes}, &info.bytes))
      return damaged_distributed("a shape too large");
    TRY(take_bytes(info.bytes));
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      TRY(check_place(tensor.chunks[i].item));
      if (!check_all) continue;
      TRY(open_chunk(tensor, i));
    }
    tensors_.push_back(std::move(info));
    entries_.push_back({.tensor = &tensor});
    return {};
  }

  // An object may be plain data, or have tensors inside.
  Result<void> add_data(const formats::pytorch::DistributedData& data) {
    TRY(check_place(data.item));
    formats::Reader* reader = TRY(open_item(data.item));
    for (std::size_t i = 0; i < reader->tensors().size(); ++i) {
      TensorInfo info = reader->tensors()[i];
      TRY(take_bytes(info.bytes));
      info.name = info.name.empty() ? data.name : data.name + "." + info.name;
      tensors_.push_back(std::move(info));
      entries_.push_back({.item = data.item, .inner = i});
    }
    const std::vector<std::string>& warnings = reader->warnings();
    for (const std::string& warning : warnings) warnings_.push_back(data.name + ": " + warning);
    const std::string_view json = reader->other_data();
    if (json.empty() || !warnings.empty()) return {};
    other_data_ += other_data_.empty() ? "{" : ",";
    other_data_ += nlohmann::json(data.name).dump() + ":" + std::string(json);
    return {};
  }

  Result<formats::Reader*> open_item(const StoredItem& item) {
    constexpr std::size_t most_items = 8;
    const std::pair key(item.file, item.offset);
    for (auto found = items_.begin(); found != items_.end(); ++found) {
      if (found->first != key) continue;
      items_.splice(items_.begin(), items_, found);
      return items_.front().second->reader.get();
    }
    auto opened = std::make_unique<OpenItem>(*TRY(open_file(item.file)), item);
    std::unique_ptr<formats::Reader> reader = TRY(formats::pytorch_format.open(opened->part, {}));
    opened->reader = std::move(reader);
    items_.emplace_front(key, std::move(opened));
    if (items_.size() > most_items) items_.pop_back();
    return items_.front().second->reader.get();
  }

  // Opens a chunk, which must be the only tensor of its item, with the type and shape that .metadata says.
  Result<formats::Reader*> open_chunk(const DistributedTensor& tensor, std::size_t index) {
    const TensorChunk& chunk = tensor.chunks[index];
    formats::Reader* reader = TRY(open_item(chunk.item));
    const std::vector<TensorInfo>& found = reader->tensors();
    std::vector<std::int64_t> shape = chunk.sizes;
    const bool is_too_long = !shape.empty() && __builtin_mul_overflow(shape.back(), tensor.type->packed, &shape.back());
    const bool fits = !is_too_long && found.size() == 1 && found[0].name.empty() &&
                      found[0].dtype == tensor.type->dtype && found[0].foreign_dtype == tensor.type->foreign &&
                      found[0].shape == shape;
    if (fits) return reader;
    return damaged_distributed(fmt::format("a chunk in {} is not what .metadata says", source_.files[chunk.item.file]));
  }

  Result<const io::InputFile*> open_file(std::size_t index) {
    constexpr std::size_t most_files = 64;
    if (const auto known = files_.find(index); known != files_.end()) return &known->second;
    if (files_.size() == most_files) {
      items_.clear();  // they read from the files
      files_.clear();
    }
    io::InputFile file = TRY(open_local(folder_, prefix_ + source_.files[index]));
    if (file.size() != sizes_[index]) return in_file(file.path(), io_failure("the file was changed meanwhile"));
    return &files_.emplace(index, std::move(file)).first->second;
  }

  Result<void> read_object(const Entry& entry, std::uint64_t offset, std::span<std::byte> out) {
    return TRY(open_item(entry.item))->read(entry.inner, offset, out);
  }

  // Reads any bytes of a tensor from its chunks.
  Result<void> read_chunks(const DistributedTensor& tensor, std::uint64_t offset, std::span<std::byte> out) {
    const std::uint64_t item = tensor.type->item_bytes;
    const std::uint64_t first = offset / item;
    const std::uint64_t last = (offset + out.size() + item - 1) / item;
    if (first * item == offset && last * item == offset + out.size()) return read_items(tensor, first, last, out);
    whole_items_.resize((last - first) * item);
    TRY(read_items(tensor, first, last, whole_items_));
    std::memcpy(out.data(), whole_items_.data() + (offset - first * item), out.size());
    return {};
  }

  Result<void> read_items(const DistributedTensor& tensor, std::uint64_t first, std::uint64_t last,
                          std::span<std::byte> out) {
    const std::uint64_t bytes = tensor.type->item_bytes;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const TensorChunk& chunk = tensor.chunks[i];
      const std::uint64_t begin = count_before(tensor.shape, chunk, first);
      const std::uint64_t end = count_before(tensor.shape, chunk, last);
      if (begin == end) continue;
      formats::Reader* reader = TRY(open_chunk(tensor, i));
      const auto take = [&](std::uint64_t place, std::uint64_t element, std::uint64_t count) -> Result<void> {
        const std::span<std::byte> target = out.subspan((place - first) * bytes, count * bytes);
        if (count == end - begin) return reader->read(0, begin * bytes, target);
        if (element == begin) {
          chunk_items_.resize((end - begin) * bytes);
          TRY(reader->read(0, begin * bytes, chunk_items_));
        }
        std::memcpy(target.data(), chunk_items_.data() + (element - begin) * bytes, target.size());
        return {};
      };
      TRY(part_of(tensor.shape, chunk).visit(begin, end - begin, take));
    }
    return {};
  }

  static constexpr std::uint64_t bytes_per_byte = 16;  // tensors may repeat elements, but not without end

  std::string folder_;
  std::string prefix_;  // of .metadata in the folder: "", "optimizer/"
  DistributedMetadata source_;
  std::vector<std::uint64_t> sizes_;  // of the files
  std::uint64_t left_bytes_ = std::uint64_t{64} << 20;
  std::vector<TensorInfo> tensors_;
  std::vector<Entry> entries_;
  formats::Metadata metadata_ = {{"format", "pt"}};
  std::string other_data_;
  std::vector<std::string> warnings_;
  std::map<std::size_t, io::InputFile> files_;
  std::list<std::pair<std::pair<std::size_t, std::uint64_t>, std::unique_ptr<OpenItem>>> items_;  // the latest first
  std::vector<std::byte> whole_items_;
  std::vector<std::byte> chunk_items_;
};

}  // namespace

Result<TorchCheckpoint> open_distributed(const std::string& folder, const std::string& name, bool check_all) {
  TorchCheckpoint checkpoint;
  auto reader = std::make_unique<DistributedReader>(folder, folder_of(name));
  TRY(reader->open(check_all, checkpoint.version));
  checkpoint.reader = std::move(reader);
  return checkpoint;
}

}  // namespace tensorcast::checkpoint
