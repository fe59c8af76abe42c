// SPDX-License-Identifier: Apache-2.0
#include "formats/pytorch/checkpoint_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/bytes/stream_source.hpp"
#include "formats/bytes/window_reader.hpp"
#include "formats/npz/entry_source.hpp"
#include "formats/pytorch/unpickler.hpp"

namespace tensorcast::formats::pytorch {
namespace {

using npz::ZipEntry;

std::uint64_t item_bytes(const Storage& storage) { return storage.type == nullptr ? 1 : storage.type->item_bytes; }

// torch.serialization.set_crc32_options(False) writes zeros instead of checksums.
bool has_checksum(const ZipEntry& entry) { return entry.crc != 0; }

class ZipCheckpoint {
 public:
  ZipCheckpoint(const io::InputFile& file, const std::vector<ZipEntry>& entries) : file_(file), entries_(entries) {
    for (const ZipEntry& entry : entries) by_name_.emplace(entry.name, &entry);
  }

  Result<std::unique_ptr<CheckpointFile>> read() {
    const std::string& first = entries_.empty() ? std::string() : entries_.front().name;
    prefix_ = first.substr(0, first.find('/'));
    const ZipEntry* pickle = find("data.pkl");
    if (pickle == nullptr) return unsupported("the zip archive has no data.pkl, so torch.save did not write it");
    if (find("constants.pkl") != nullptr) {
      return unsupported("this is a TorchScript archive, a program with its weights",
                         "save torch.jit.load(path).state_dict() with torch.save");
    }
    auto checkpoint = std::make_unique<CheckpointFile>(file_.size());
    ZipEntry checked = *pickle;
    npz::EntrySource source(file_, checked);
    FileSource plain(file_, pickle->data_offset, pickle->bytes);
    const bool as_entry = pickle->deflated || has_checksum(*pickle);
    StreamSource& bytes = as_entry ? static_cast<StreamSource&>(source) : plain;
    WindowReader input(bytes, 0, *checkpoint->budget, malformed_pickle);
    checkpoint->root = TRY(unpickle(input, checkpoint->objects));
    TRY(read_byte_order(checkpoint->big_endian));
    TRY(find_storages(*checkpoint));
    return checkpoint;
  }

 private:
  // Names are looked up in the archive only: no key leads to another file.
  const ZipEntry* find(const std::string& name) const {
    const auto found = by_name_.find(prefix_ + "/" + name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  Result<void> read_byte_order(bool& big_endian) const {
    const ZipEntry* entry = find("byteorder");
    if (entry == nullptr) return {};  // older versions do not write it
    std::string order(std::min<std::uint64_t>(entry->bytes, 16), '\0');
    npz::EntrySource source(file_, *entry);
    FileSource plain(file_, entry->data_offset, entry->bytes);
    StreamSource& bytes = entry->deflated || has_checksum(*entry) ? static_cast<StreamSource&>(source) : plain;
    TRY(bytes.read(0, std::as_writable_bytes(std::span(order))));
    if (order != "little" && order != "big") return damaged("its byte order is neither little nor big");
    big_endian = order == "big";
    return {};
  }

  Result<void> find_storages(CheckpointFile& checkpoint) const {
    for (const Storage& storage : checkpoint.objects.storages) {
      const ZipEntry* entry = find("data/" + storage.key);
      if (entry == nullptr) return damaged("a storage of a tensor is not in the archive");
      if (entry->deflated) {
        return unsupported("the storages of the checkpoint are compressed, which torch.save never does",
                           "pack the archive again without compression (`zip -0`)");
      }
      if (storage.items > entry->bytes / item_bytes(storage)) {
        return damaged(fmt::format("a storage of {} items has {} bytes", storage.items, entry->bytes));
      }
      StoredBytes stored{.offset = entry->data_offset, .bytes = entry->bytes};
      if (has_checksum(*entry)) stored.crc = entry->crc;
      checkpoint.storages.emplace(storage.key, stored);
    }
    return {};
  }

  const io::InputFile& file_;
  const std::vector<ZipEntry>& entries_;
  std::unordered_map<std::string, const ZipEntry*> by_name_;
  std::string prefix_;
};

class StackedCheckpoint {
 public:
  explicit StackedCheckpoint(const io::InputFile& file)
      : source_(file), checkpoint_(std::make_unique<CheckpointFile>(file.size())) {}

  Result<std::unique_ptr<CheckpointFile>> read() {
    WindowReader input(source_, 0, *checkpoint_->budget, malformed_pickle);
    Objects& objects = checkpoint_->objects;
    const Result<Ref> magic = unpickle(input, objects);
    if (!magic && magic.error().code == ErrorCode::io) return magic.error();
    if (!magic || objects[*magic].kind != Kind::big_integer || objects[*magic].text != "119547037146038801333356") {
      return not_of_torch();
    }
    const Ref version = TRY(unpickle(input, objects));
    if (objects[version].kind != Kind::integer || objects[version].integer != 1001) {
      return unsupported("the checkpoint's version is not 1001, the only one");
    }
    // The system that wrote it: storages are little-endian on every one.
    TRY(unpickle(input, objects));
    checkpoint_->root = TRY(unpickle(input, objects));
    const Ref keys = TRY(unpickle(input, objects));
    TRY(locate_storages(keys, input.position()));
    return std::move(checkpoint_);
  }

 private:
  Error not_of_torch() {
    constexpr std::byte begin_of_pickle{0x80};
    std::byte first{};
    if (source_.size() == 0) return parse_error("the file is empty");
    const Result<void> read = source_.read(0, std::span(&first, 1));
    if (!read) return read.error();
    if (first != begin_of_pickle) return parse_error("the file is neither a zip archive nor a pickle of torch.save");
    return unsupported("this is a Python pickle that torch.save did not write",
                       "load it in Python, and save its tensors with torch.save");
  }

  Result<void> locate_storages(Ref keys, std::uint64_t position) {
    const Objects& objects = checkpoint_->objects;
    if (objects[keys].kind != Kind::list) return damaged("its list of storages is none");
    std::unordered_map<std::string, std::uint64_t> sizes;  // bytes of an item, of the storages that tensors use
    for (const Storage& storage : objects.storages) {
      const auto [known, is_new] = sizes.emplace(storage.key, item_bytes(storage));
      if (!is_new && known->second != item_bytes(storage)) return damaged("a storage has two types");
    }
    for (const Ref key : objects[keys].items) {
      if (objects[key].kind != Kind::string) return damaged("the key of a storage is not text");
      const auto size = sizes.find(objects[key].text);
      if (size == sizes.end()) return damaged("no tensor uses one of its storages, whose type is therefore unknown");
      std::uint64_t items = 0;
      if (source_.size() - position < sizeof items) return damaged("the file ends before its last storage");
      TRY(source_.read(position, std::as_writable_bytes(std::span(&items, 1))));
      position += sizeof items;
      if (items > (source_.size() - position) / size->second) {
        return damaged(fmt::format("a storage of {} items reaches beyond the end of the file", items));
      }
      const StoredBytes stored{.offset = position, .bytes = items * size->second};
      if (!checkpoint_->storages.emplace(size->first, stored).second) return damaged("two storages have one key");
      position += stored.bytes;
    }
    for (const Storage& storage : objects.storages) {
      const auto found = checkpoint_->storages.find(storage.key);
      if (found == checkpoint_->storages.end()) return damaged("a storage of a tensor is not in the file");
      if (storage.items > found->second.bytes / item_bytes(storage)) {
        return damaged(fmt::format("a storage of {} items has {} bytes", storage.items, found->second.bytes));
      }
    }
    return {};
  }

  FileSource source_;
  std::unique_ptr<CheckpointFile> checkpoint_;
};

}  // namespace

Error damaged(std::string what) { return parse_error("damaged checkpoint: " + std::move(what)); }

Result<std::unique_ptr<CheckpointFile>> read_zip_checkpoint(const io::InputFile& file) {
  const std::vector<ZipEntry> entries = TRY(npz::read_zip_directory(file));
  return ZipCheckpoint(file, entries).read();
}

Result<std::unique_ptr<CheckpointFile>> read_stacked_checkpoint(const io::InputFile& file) {
  return StackedCheckpoint(file).read();
}

}  // namespace tensorcast::formats::pytorch
