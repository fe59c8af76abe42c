// SPDX-License-Identifier: Apache-2.0
#include "formats/pytorch/distributed_metadata.hpp"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/bytes/stream_source.hpp"
#include "formats/bytes/window_reader.hpp"
#include "formats/pytorch/pickle_arguments.hpp"
#include "formats/pytorch/unpickler.hpp"

namespace tensorcast::formats::pytorch {
namespace {

class MetadataReader {
 public:
  explicit MetadataReader(const Objects& objects) : objects_(objects) {}

  Result<DistributedMetadata> read(Ref root) {
    if (!is_object(root, "Metadata"))
      return damaged_distributed("its .metadata is not that of torch.distributed.checkpoint");
    const Ref tensors = field(root, "state_dict_metadata");
    const Ref items = field(root, "storage_data");
    if (!is_dict(tensors) || !is_dict(items)) {
      return unsupported("the distributed checkpoint does not say where its tensors are",
                         "it was written by another storage than FileSystemWriter");
    }
    TRY(read_items(items));
    const std::vector<Ref>& entries = objects_[tensors].items;
    for (std::size_t i = 0; i + 1 < entries.size(); i += 2) {
      if (objects_[entries[i]].kind != Kind::string) return damaged_distributed("the name of a tensor is not text");
      // Many entries may share the text of their name, of which each has a copy.
      const std::uint64_t bytes = 3 * sizeof(DistributedTensor) + 2 * objects_[entries[i]].text.size();
      TRY(objects_.budget().take(bytes));
      TRY(of_tensor(objects_[entries[i]].text, read_entry(entries[i], entries[i + 1])));
    }
    return std::move(metadata_);
  }

 private:
  using Place = std::pair<std::size_t, std::vector<std::int64_t>>;  // number of a name, offsets

  [[nodiscard]] bool is_dict(Ref ref) const { return ref != no_ref && objects_[ref].kind == Kind::dict; }

  // Reports whether a value is an object of a class of torch.distributed; its modules have moved over the years.
  [[nodiscard]] bool is_object(Ref ref, std::string_view name) const {
    if (ref == no_ref || objects_[ref].kind != Kind::foreign) return false;
    const std::string_view text = objects_[ref].text;
    return text.starts_with("torch.distributed.") && text.ends_with(name) && text[text.size() - name.size() - 1] == '.';
  }

  // Returns an attribute of an object; no_ref if it has none of this name.
  [[nodiscard]] Ref field(Ref object, std::string_view name) const {
    constexpr std::size_t most = 32;  // keys and values
    const Ref state = objects_[object].attributes;
    if (!is_dict(state)) return no_ref;
    const std::vector<Ref>& items = objects_[state].items;
    for (std::size_t i = 0; i + 1 < std::min(items.size(), most); i += 2) {
      const Value& key = objects_[items[i]];
      if (key.kind == Kind::string && key.text == name) return items[i + 1];
    }
    return no_ref;
  }

  [[nodiscard]] Result<std::uint64_t> size_field(Ref object, std::string_view name) const {
    const Ref value = field(object, name);
    if (value == no_ref || objects_[value].kind != Kind::integer || objects_[value].integer < 0) {
      return damaged_distributed("a place in a file that is not a number");
    }
    return static_cast<std::uint64_t>(objects_[value].integer);
  }

  [[nodiscard]] Result<std::vector<std::int64_t>> sizes_field(Ref object, std::string_view name) const {
    const Ref value = field(object, name);
    std::vector<std::int64_t> sizes;
    if (value == no_ref || objects_[value].kind != Kind::tuple || objects_[value].items.size() > max_rank) {
      return damaged_distributed("a shape that is not one");
    }
    TRY(objects_.budget().take(16 * objects_[value].items.size()));
    for (const Ref item : objects_[value].items) {
      if (objects_[item].kind != Kind::integer || objects_[item].integer < 0)
        return damaged_distributed("a negative size");
      sizes.push_back(objects_[item].integer);
    }
    return sizes;
  }

  // Returns the number of a text. Many values may refer to one long text, which is hashed once.
  std::size_t number_of(Ref text) {
    const auto [known, is_new] = numbers_.emplace(text, 0);
    if (is_new) known->second = texts_.emplace(objects_[text].text, texts_.size()).first->second;
    return known->second;
  }

  // Reads the places of all chunks and objects.
  Result<void> read_items(Ref dict) {
    const std::vector<Ref>& entries = objects_[dict].items;
    for (std::size_t i = 0; i + 1 < entries.size(); i += 2) {
      const Ref index = entries[i];
      const Ref info = entries[i + 1];
      if (!is_object(index, "MetadataIndex") || !is_object(info, "_StorageInfo")) {
        return damaged_distributed("the place of a chunk is not known");
      }
      const Ref name = field(index, "fqn");
      if (name == no_ref || objects_[name].kind != Kind::string)
        return damaged_distributed("a chunk without the name of its tensor");
      const StoredItem item = TRY(read_item(info));
      Place place{number_of(name), {}};
      const Ref offset = field(index, "offset");
      if (offset != no_ref && objects_[offset].kind != Kind::none) {
        place.second = TRY(sizes_field(index, "offset"));
      }
      constexpr std::uint64_t node_bytes = 160;
      TRY(objects_.budget().take(node_bytes));
      places_.insert_or_assign(std::move(place), item);
    }
    return {};
  }

  Result<StoredItem> read_item(Ref info) {
    const Ref file = field(info, "relative_path");
    if (file == no_ref || objects_[file].kind != Kind::string) return damaged_distributed("a chunk without a file");
    const std::uint64_t offset = TRY(size_field(info, "offset"));
    const std::uint64_t bytes = TRY(size_field(info, "length"));
    const Ref transforms = field(info, "transform_descriptors");
    if (transforms != no_ref && objects_[transforms].kind != Kind::none && !objects_[transforms].items.empty()) {
      return unsupported("the chunks of the distributed checkpoint are compressed",
                         "save it without extensions of FileSystemWriter");
    }
    const auto [known, is_new] = files_.emplace(number_of(file), metadata_.files.size());
    if (is_new) metadata_.files.push_back(objects_[file].text);
    return StoredItem{.file = known->second, .offset = offset, .bytes = bytes};
  }

  Result<void> read_entry(Ref name, Ref value) {
    const std::size_t number = number_of(name);
    if (is_object(value, "BytesStorageMetadata")) {
      const auto found = places_.find({number, {}});
      if (found == places_.end()) return damaged_distributed("an object without a place");
      metadata_.data.push_back({.name = objects_[name].text, .item = found->second});
      return {};
    }
    if (!is_object(value, "TensorStorageMetadata"))
      return damaged_distributed("an entry that is neither a tensor nor an object");
    DistributedTensor tensor{.name = objects_[name].text, .shape = {}, .chunks = {}};
    tensor.type = TRY(read_type(field(value, "properties")));
    tensor.shape = TRY(sizes_field(value, "size"));
    const Ref chunks = field(value, "chunks");
    if (chunks == no_ref || objects_[chunks].kind != Kind::list) return damaged_distributed("a tensor without chunks");
    for (const Ref chunk : objects_[chunks].items) {
      TensorChunk read = TRY(read_chunk(number, chunk));
      tensor.chunks.push_back(std::move(read));
    }
    TRY(check_chunks(tensor.shape, tensor.chunks));
    metadata_.tensors.push_back(std::move(tensor));
    return {};
  }

  // The properties are (type, layout, ...) since PyTorch 1.13, and had names before.
  [[nodiscard]] Result<const TorchType*> read_type(Ref properties) const {
    if (!is_object(properties, "TensorProperties")) return damaged_distributed("a tensor without properties");
    const Ref state = objects_[properties].attributes;
    Ref type = field(properties, "dtype");
    if (state != no_ref && objects_[state].kind == Kind::tuple && !objects_[state].items.empty()) {
      type = objects_[state].items[0];
    }
    if (type == no_ref) return damaged_distributed("a tensor without a type");
    constexpr std::string_view prefix = "torch.";
    constexpr std::size_t longest = 40;
    const std::string_view text = objects_[type].text;
    const TorchType* known = objects_[type].kind == Kind::symbol && text.starts_with(prefix)
                                 ? find_torch_type(text.substr(prefix.size()))
                                 : nullptr;
    if (known != nullptr) return known;
    return unsupported(fmt::format("the type {} is not known", text.substr(0, longest)));
  }

  Result<TensorChunk> read_chunk(std::size_t name, Ref value) {
    if (!is_object(value, "ChunkStorageMetadata")) return damaged_distributed("a chunk that is not one");
    TensorChunk chunk;
    chunk.offsets = TRY(sizes_field(value, "offsets"));
    chunk.sizes = TRY(sizes_field(value, "sizes"));
    const auto found = places_.find({name, chunk.offsets});
    if (found == places_.end()) return damaged_distributed("a chunk without a place");
    chunk.item = found->second;
    TRY(objects_.budget().take_grown<TensorChunk>());
    return chunk;
  }

  const Objects& objects_;
  DistributedMetadata metadata_;
  std::map<Place, StoredItem> places_;
  std::unordered_map<Ref, std::size_t> numbers_;
  std::unordered_map<std::string_view, std::size_t> texts_;
  std::unordered_map<std::size_t, std::size_t> files_;  // number of a name, index in metadata_.files
};

}  // namespace

Error damaged_distributed(std::string what) {
  return parse_error("damaged distributed checkpoint: " + std::move(what));
}

Result<DistributedMetadata> read_distributed_metadata(const io::InputFile& file) {
  // A chunk takes 180 bytes of the file, and 2 kB of memory.
  constexpr std::uint64_t weight = 4;
  io::MemoryBudget budget(weight * file.size());
  Objects objects(budget);
  FileSource source(file);
  WindowReader input(source, 0, budget, malformed_pickle);
  const Ref root = TRY(unpickle(input, objects));
  return MetadataReader(objects).read(root);
}

}  // namespace tensorcast::formats::pytorch
