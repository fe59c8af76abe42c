// SPDX-License-Identifier: Apache-2.0
// Checkpoints of PyTorch, read without running anything: torch.save's zip archives and its older files of pickles.

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/bytes/stream_source.hpp"
#include "formats/bytes/strided_elements.hpp"
#include "formats/format_list.hpp"
#include "formats/pytorch/checkpoint_file.hpp"
#include "formats/pytorch/checkpoint_tree.hpp"
#include "io/input_file.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::formats {
namespace {

using pytorch::CheckpointFile;
using pytorch::CheckpointTree;
using pytorch::damaged;
using pytorch::Kind;
using pytorch::Storage;
using pytorch::StoredBytes;
using pytorch::StridedTensor;
using pytorch::TorchType;

constexpr std::array<std::string_view, 3> extensions = {".pt", ".pth", ".ckpt"};

// The number 0x1950A86A20F9469CFC6C in a pickle, with which torch.save's older files begin.
constexpr std::string_view stacked_magic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::string_view stacked_magic_text = "L119547037146038801333356L";

// Changes the signs of what a view negates or conjugates. `bytes` are those from `offset` of the tensor on.
void flip_signs(const StridedTensor& tensor, std::uint64_t offset, std::span<std::byte> bytes) {
  const TorchType& type = *tensor.type;
  const bool complex = is_complex(type);
  const std::uint64_t word = complex ? type.item_bytes / 2 : type.item_bytes;
  for (std::uint64_t i = word - 1 - offset % word; i < bytes.size(); i += word) {
    const bool imaginary = complex && (offset + i) / word % 2 == 1;
    if (tensor.negated != (imaginary && tensor.conjugated)) bytes[i] ^= std::byte{0x80};
  }
}

class PytorchReader final : public Reader {
 public:
  PytorchReader(const io::InputFile& file, std::unique_ptr<CheckpointFile> checkpoint)
      : file_(file), checkpoint_(std::move(checkpoint)) {}

  Result<void> open() {
    CheckpointTree tree = TRY(sort_checkpoint(checkpoint_->objects, checkpoint_->root));
    other_data_ = std::move(tree.other_data);
    warnings_ = std::move(tree.warnings);
    // Tied and repeated elements are written once for each tensor, so bound what a small file can become.
    constexpr std::uint64_t base_bytes = std::uint64_t{64} << 20;
    constexpr std::uint64_t bytes_per_byte = 16;
    std::uint64_t left = base_bytes + bytes_per_byte * file_.size();
    for (pytorch::NamedTensor& named : tree.tensors) {
      TRY(checkpoint_->budget->take_grown<TensorInfo>());
      if (named.problem) {
        TensorInfo unread;
        unread.name = std::move(named.name);
        unread.foreign_dtype = "unread";
        Error problem = *named.problem;
        problem.file = file_.path();
        unread.problem = std::make_shared<const Error>(std::move(problem));
        tensors_.push_back(std::move(unread));
        sources_.push_back(SIZE_MAX);
        continue;
      }
      TensorInfo info = TRY(of_tensor(named.name, describe(checkpoint_->objects.tensors[named.tensor])));
      if (info.bytes > left) {
        return of_tensor(named.name, unsupported("the tensors repeat the elements of the file too often",
                                                 "save tensor.clone() instead of an expanded one"));
      }
      left -= info.bytes;
      info.name = std::move(named.name);
      tensors_.push_back(std::move(info));
      sources_.push_back(named.tensor);
    }
    return {};
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Metadata& metadata() const override { return metadata_; }
  std::string_view other_data() const override { return other_data_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }

  Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override {
    if (tensors_[index].problem) return in_file(file_.path(), Result<void>(*tensors_[index].problem));
    if (index != current_ || !elements_) open_source(index);
    auto got = elements_->read(offset, out);
    if (got && check_) got = check(offset, out);
    const StridedTensor& tensor = checkpoint_->objects.tensors[sources_[index]];
    if (tensor.conjugated || tensor.negated) flip_signs(tensor, offset, out);
    if (!got && got.error().tensor.empty()) got.error().tensor = tensors_[index].name;
    return in_file(file_.path(), std::move(got));
  }

 private:
  [[nodiscard]] const Storage* storage_of(const StridedTensor& tensor) const {
    const pytorch::Value& value = checkpoint_->objects[tensor.storage];
    if (value.kind != Kind::storage) return nullptr;
    return &checkpoint_->objects.storages[static_cast<std::size_t>(value.integer)];
  }

  // The bytes of the elements' storage; of a view, those from its beginning.
  [[nodiscard]] Result<StoredBytes> stored(const StridedTensor& tensor) const {
    const Storage* storage = storage_of(tensor);
    if (storage == nullptr) return StoredBytes{.bytes = checkpoint_->objects[tensor.storage].text.size()};
    const std::uint64_t item = storage->type == nullptr ? 1 : storage->type->item_bytes;
    StoredBytes stored = checkpoint_->storages.at(storage->key);
    std::uint64_t skipped = 0;
    if (__builtin_mul_overflow(storage->first, item, &skipped) || skipped > stored.bytes) {
      return damaged("a view begins beyond the end of its storage");
    }
    stored.offset += skipped;
    stored.bytes -= skipped;
    if (skipped != 0) stored.crc.reset();
    return stored;
  }

  // Checks that all elements of the tensor are in its storage.
  [[nodiscard]] Result<TensorInfo> describe(const StridedTensor& tensor) const {
    const StoredBytes bytes = TRY(stored(tensor));
    const TorchType& type = *tensor.type;
    TensorInfo info{.name = {}, .dtype = type.dtype, .shape = tensor.shape, .foreign_dtype = std::string(type.foreign)};
    const Result<std::size_t> items = element_count(tensor.shape);
    if (!items) return damaged(items.error().message);
    if (type.packed > 1) {
      if (info.shape.empty() || info.shape.back() > std::numeric_limits<std::int64_t>::max() / type.packed) {
        return damaged(fmt::format("a shape that {} cannot have", type.name));
      }
      info.shape.back() *= type.packed;
    }
    const Result<std::size_t> count = element_count(info.shape);
    if (!count) return damaged(count.error().message);
    info.count = *count;
    if (__builtin_mul_overflow(*items, std::uint64_t{type.item_bytes}, &info.bytes)) {
      return damaged("a shape with more bytes than can be counted");
    }
    if (*items == 0) return info;
    std::uint64_t last = tensor.offset;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      std::uint64_t distance = 0;
      if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &distance) ||
          __builtin_add_overflow(last, distance, &last)) {
        return damaged("strides that lead out of the storage");
      }
    }
    const std::uint64_t available = bytes.bytes / type.item_bytes;
    if (last >= available) {
      return damaged(fmt::format("element {} of a storage that has {}", last, available));
    }
    return info;
  }

  void open_source(std::size_t index) {
    const StridedTensor& tensor = checkpoint_->objects.tensors[sources_[index]];
    const TorchType& type = *tensor.type;
    const StoredBytes bytes = stored(tensor).value();
    const bool in_pickle = storage_of(tensor) == nullptr;
    const bool swapped = in_pickle ? tensor.big_endian : checkpoint_->big_endian;
    if (in_pickle) {
      const std::string& data = checkpoint_->objects[tensor.storage].text;
      pickled_ = io::InputFile::in_memory(std::as_bytes(std::span(data)));
      source_ = std::make_unique<FileSource>(*pickled_);
    } else {
      source_ = std::make_unique<FileSource>(file_, bytes.offset, bytes.bytes);
    }
    elements_.emplace(*source_, StridedLayout{.shape = tensor.shape,
                                              .strides = tensor.strides,
                                              .item_bytes = type.item_bytes,
                                              .begin = tensor.offset * type.item_bytes,
                                              .word_bytes = swapped ? type.word_bytes : 1});
    current_ = index;
    // The archive has checksums of whole storages.
    check_ = bytes.crc.has_value() && !swapped && tensor.offset == 0 && tensors_[index].bytes == bytes.bytes &&
             is_contiguous(tensor.shape, tensor.strides);
    if (check_) expected_crc_ = *bytes.crc;
    checked_bytes_ = 0;
    crc_ = 0;
  }

  // Adds the next bytes of a pass from the beginning to the checksum, and compares it after the last byte.
  Result<void> check(std::uint64_t offset, std::span<const std::byte> bytes) {
    if (offset == 0) {
      checked_bytes_ = 0;
      crc_ = 0;
    }
    if (offset != checked_bytes_ || bytes.empty()) return {};
    crc_ = static_cast<std::uint32_t>(::crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
    checked_bytes_ += bytes.size();
    if (checked_bytes_ < tensors_[current_].bytes || crc_ == expected_crc_) return {};
    return damaged("the checksum of a storage differs");
  }

  const io::InputFile& file_;
  std::unique_ptr<CheckpointFile> checkpoint_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::size_t> sources_;        // indices into Objects::tensors
  Metadata metadata_ = {{"format", "pt"}};  // what Hugging Face's readers of safetensors expect of PyTorch
  std::string other_data_;
  std::vector<std::string> warnings_;
  std::size_t current_ = 0;
  std::optional<io::InputFile> pickled_;  // of a tensor inside the pickle
  std::unique_ptr<StreamSource> source_;  // of the tensor `current_`
  std::optional<StridedElements> elements_;
  bool check_ = false;
  std::uint32_t expected_crc_ = 0;
  std::uint64_t checked_bytes_ = 0;
  std::uint32_t crc_ = 0;
};

std::string_view text_of(std::span<const std::byte> head) {
  return {reinterpret_cast<const char*>(head.data()), head.size()};
}

bool is_zip(std::string_view head) { return head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06"); }

// Reports whether the head of a zip archive names an entry that torch.save writes.
bool begins_with_torch_entry(std::string_view head) {
  constexpr std::size_t name_bytes_offset = 26;
  constexpr std::size_t name_offset = 30;
  if (head.size() < name_offset) return false;
  const std::size_t name_bytes = static_cast<unsigned char>(head[name_bytes_offset]) |
                                 static_cast<std::size_t>(static_cast<unsigned char>(head[name_bytes_offset + 1])) << 8;
  const std::string_view name = head.substr(name_offset, name_bytes);
  const std::string_view entry = name.substr(std::min(name.find('/'), name.size()));
  return entry == "/data.pkl" || entry == "/.format_version" || entry == "/version" || entry == "/byteorder" ||
         entry == "/constants.pkl" || entry.starts_with("/data/") || entry.starts_with("/code/") ||
         entry.starts_with("/.data/");
}

// Any archive but one of arrays: its extension decides, or the name of its first entry.
bool sniff(std::span<const std::byte> bytes, std::uint64_t) {
  const std::string_view head = text_of(bytes);
  if (is_zip(head)) return begins_with_torch_entry(head);
  const std::size_t magic = head.substr(0, 32).find(stacked_magic);
  return magic != std::string_view::npos || head.starts_with(stacked_magic_text);
}

Result<std::unique_ptr<Reader>> open(const io::InputFile& file, const ReadOptions&) {
  std::array<std::byte, 512> buffer{};
  const std::span<std::byte> bytes = std::span(buffer).first(std::min<std::uint64_t>(file.size(), buffer.size()));
  TRY(file.read(0, bytes));
  const std::string_view head = text_of(bytes);
  constexpr std::size_t tar_magic_offset = 257;
  if (head.size() > tar_magic_offset && head.substr(tar_magic_offset).starts_with("ustar")) {
    return in_file(file.path(), unsupported("this is a tar archive, as PyTorch before 0.2 wrote checkpoints",
                                            "load it with torch.load and save it again with torch.save"));
  }
  std::unique_ptr<CheckpointFile> checkpoint = TRY(
      in_file(file.path(), is_zip(head) ? pytorch::read_zip_checkpoint(file) : pytorch::read_stacked_checkpoint(file)));
  auto reader = std::make_unique<PytorchReader>(file, std::move(checkpoint));
  TRY(in_file(file.path(), reader->open()));
  return std::unique_ptr<Reader>(std::move(reader));
}

}  // namespace

constexpr Format pytorch_format = {
    .name = "pytorch",
    .description = "checkpoints of torch.save, read only",
    .extensions = extensions,
    .many_tensors = true,
    .named_tensors = true,
    .sniff = sniff,
    .can_hold = [](DType) { return false; },
    .open = open,
};

}  // namespace tensorcast::formats
