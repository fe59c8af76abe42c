// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/shard_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "checkpoint/source/distributed_reader.hpp"
#include "checkpoint/store/file_name.hpp"
#include "checkpoint/store/local_folder.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"
#include "formats/safetensors/safetensors_header.hpp"

namespace tensorcast::checkpoint {
namespace {

Result<void> check_held(const formats::TensorInfo& tensor) {
  if (tensor.problem) return of_tensor(tensor.name, *tensor.problem);
  const bool foreign = tensor.dtype == DType::undefined;
  const bool held = foreign ? formats::safetensors_format.can_hold_foreign(tensor.foreign_dtype)
                            : formats::safetensors_format.can_hold(tensor.dtype);
  if (held) return {};
  const std::string_view type = foreign ? tensor.foreign_dtype : name(tensor.dtype);
  return of_tensor(tensor.name, unsupported(fmt::format("safetensors cannot hold {}", type),
                                            "save the checkpoint without this tensor"));
}

// The tensors of a reader in the layout of a safetensors file.
class SafetensorsView final : public ByteSource {
 public:
  explicit SafetensorsView(std::shared_ptr<formats::Reader> reader) : reader_(std::move(reader)) {}

  // Makes the header. Errors: unsupported.
  Result<void> open(const std::string& lone_name) {
    std::vector<formats::TensorInfo> tensors = reader_->tensors();
    for (formats::TensorInfo& tensor : tensors) {
      if (tensor.name.empty()) tensor.name = lone_name;
      TRY(check_held(tensor));
    }
    TRY(formats::safetensors_format.check(tensors));
    header_ = TRY(formats::safetensors::format_header(tensors, reader_->metadata()));
    std::uint64_t end = header_.size();
    for (const formats::TensorInfo& tensor : tensors) {
      if (__builtin_add_overflow(end, tensor.bytes, &end)) {
        return parse_error("the tensors have more bytes than can be counted");
      }
      ends_.push_back(end);
    }
    return {};
  }

  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset < header_.size()) {
      const auto text = std::as_bytes(std::span(header_)).subspan(offset);
      const auto count = std::min(out.size(), text.size());
      std::copy_n(text.begin(), count, out.begin());
      offset += count;
      out = out.subspan(count);
    }
    while (!out.empty()) {
      const auto index = static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
      const std::uint64_t begin = index == 0 ? header_.size() : ends_[index - 1];
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), ends_[index] - offset));
      TRY(reader_->read(index, offset - begin, out.first(count)));
      offset += count;
      out = out.subspan(count);
    }
    return {};
  }
  std::uint64_t size() const noexcept override { return ends_.empty() ? header_.size() : ends_.back(); }

 private:
  std::shared_ptr<formats::Reader> reader_;
  std::string header_;
  std::vector<std::uint64_t> ends_;  // of each tensor, in the file
};

// Opens a file of torch.save; the reader keeps the file.
Result<std::shared_ptr<formats::Reader>> open_torch(io::InputFile file) {
  struct OpenedFile {
    io::InputFile file;
    std::unique_ptr<formats::Reader> reader;
  };
  const auto opened = std::make_shared<OpenedFile>(std::move(file));
  opened->reader = TRY(formats::pytorch_format.open(opened->file, {}));
  return std::shared_ptr<formats::Reader>(opened, opened->reader.get());
}

// Names the data that a folder of safetensors files has no place for. A state_dict's versions are none of them.
void warn_of_data(const std::string& file, const formats::Reader& reader, std::vector<std::string>& warnings) {
  constexpr std::size_t most = 5;
  for (const std::string& warning : reader.warnings()) warnings.push_back(file + ": " + warning);
  const nlohmann::json data = nlohmann::json::parse(reader.other_data(), nullptr, false);
  if (data.is_discarded() || !data.is_object()) return;
  std::string names;
  std::size_t count = 0;
  for (const auto& [key, value] : data.items()) {
    const bool skipped = value.is_object() && value.contains("object");  // has a warning of its own
    if (key == "_metadata" || skipped) continue;
    if (value.is_object() && value.size() == 1 && value.contains("_metadata")) continue;
    if (++count <= most) names += fmt::format("{}\"{}\"", count == 1 ? "" : ", ", key.substr(0, 100));
  }
  if (count == 0) return;
  warnings.push_back(fmt::format("{}: the plain data {}{} are not written", file, names, count > most ? " ..." : ""));
}

Result<TorchCheckpoint> open_reader(const std::string& folder, const std::string& name, bool check_all) {
  if (last_component(name) == distributed_metadata) return open_distributed(folder, name, check_all);
  io::InputFile file = TRY(open_local(folder, name));
  std::string version = fmt::format("{} {}", file.size(), file.modified_ns());
  return TorchCheckpoint{.reader = TRY(open_torch(std::move(file))), .version = std::move(version)};
}

}  // namespace

Result<bool> is_torch_archive(const StoredFile& file) {
  constexpr std::string_view zip = "PK\x03\x04";
  std::array<char, zip.size()> head{};
  if (file.size() < head.size()) return false;
  TRY(file.read(0, std::as_writable_bytes(std::span(head))));
  return std::string_view(head.data(), head.size()) == zip;
}

Result<ShardFile> open_shard_file(const std::string& folder, const std::string& name, bool check_all) {
  const std::string last = last_component(name);
  if (!is_torch_name(name) && last != distributed_metadata) {
    StoredFile source = TRY(open_source(folder, name));
    const bool is_torch = TRY(is_torch_archive(source));
    if (!is_torch) return ShardFile{.source = std::move(source), .warnings = {}};
  }
  const std::string path = folder + "/" + name;
  Result<TorchCheckpoint> opened = open_reader(folder, name, check_all);
  if (!opened) {
    if (!opened.error().file.starts_with(folder + "/")) opened.error().file = path;
    return std::move(opened).error();
  }
  std::vector<std::string> warnings;
  warn_of_data(name, *opened->reader, warnings);
  const auto view = std::make_shared<SafetensorsView>(std::move(opened->reader));
  TRY(in_file(path, view->open(last.substr(0, last.rfind('.')))));
  // Readers know the real path; messages have this one.
  io::InputFile file = TRY(io::InputFile::of(view, path));
  return ShardFile{.source = {std::move(file), path, std::move(opened->version)}, .warnings = std::move(warnings)};
}

}  // namespace tensorcast::checkpoint
