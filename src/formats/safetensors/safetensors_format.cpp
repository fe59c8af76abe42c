// SPDX-License-Identifier: Apache-2.0
// Hugging Face safetensors: 8 bytes of header length, a JSON header, the tensors' bytes without gaps.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "dtype/dtype_table.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/distinct_names.hpp"
#include "formats/format_list.hpp"
#include "formats/safetensors/safetensors_dtypes.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"

namespace tensorcast::formats {
namespace {

using safetensors::data_alignment;
using safetensors::find_dtype;
using safetensors::Header;
using safetensors::length_bytes;
using safetensors::max_header_bytes;

constexpr std::array<std::string_view, 1> extensions = {".safetensors"};

class SafetensorsReader final : public Reader {
 public:
  SafetensorsReader(const io::InputFile& file, Header header, std::uint64_t data_begin)
      : file_(file), header_(std::move(header)), data_begin_(data_begin) {}

  const std::vector<TensorInfo>& tensors() const override { return header_.tensors; }
  const Metadata& metadata() const override { return header_.metadata; }
  Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override {
    return file_.read(data_begin_ + header_.begin_offsets[index] + offset, out);
  }

 private:
  const io::InputFile& file_;
  Header header_;
  std::uint64_t data_begin_;
};

class SafetensorsWriter final : public Writer {
 public:
  explicit SafetensorsWriter(io::OutputFile& file) : file_(file) {}

  Result<void> append(std::span<const std::byte> bytes) override { return file_.append(bytes); }
  Result<void> finish() override { return {}; }

 private:
  io::OutputFile& file_;
};

bool sniff(std::span<const std::byte> head, std::uint64_t file_size) {
  if (head.size() <= length_bytes || head[length_bytes] != std::byte{'{'}) return false;
  const std::uint64_t length = safetensors::load_length(head);
  return length <= max_header_bytes && length <= file_size - length_bytes;
}

Result<std::unique_ptr<Reader>> open(const io::InputFile& file, const ReadOptions&) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) { return file.read(offset, out); };
  safetensors::FileHeader opened = TRY(in_file(file.path(), safetensors::read_file_header(file.size(), read)));
  return std::unique_ptr<Reader>(
      std::make_unique<SafetensorsReader>(file, std::move(opened.header), opened.data_begin));
}

Result<void> check(std::span<const TensorInfo> tensors) {
  for (const TensorInfo& tensor : tensors) {
    const auto fail = [&](std::string message) { return of_tensor(tensor.name, unsupported(std::move(message))); };
    if (tensor.name == "__metadata__") return fail("safetensors keeps this name for itself");
    if (tensor.shape.size() > safetensors::max_rank) return fail("safetensors cannot hold so many dimensions");
    if (!ends_with_byte(bit_width(tensor.dtype), tensor.count)) {
      return fail(fmt::format("safetensors holds whole bytes only, and {} elements of {} do not fill them",
                              tensor.count, name(tensor.dtype)));
    }
  }
  return check_distinct_names(tensors, "safetensors finds tensors by name");
}

// PyTorch packs elements of less than a byte along the last dimension.
std::string objection(const TensorInfo& tensor) {
  const int bits = bit_width(tensor.dtype);
  const std::int64_t last = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (find_dtype(tensor.dtype) == nullptr || ends_with_byte(bits, static_cast<std::uint64_t>(last))) return {};
  return bits == 4 ? "last dimension odd" : fmt::format("last dimension of {} elements fills no whole bytes", last);
}

std::uint64_t alignment_of(const TensorInfo& tensor) noexcept {
  const int bits = bit_width(tensor.dtype);
  if (bits == 0) return tensor.foreign_dtype == "C64" ? 8 : 1;
  return static_cast<std::uint64_t>(std::max(bits / 8, 1));
}

// Keeps the given order, unless a tensor would then start at an address that its elements cannot have: PyTorch refuses
// to load such files. Then the widest elements come first, as in the format's own writers.
std::vector<std::size_t> layout(std::span<const TensorInfo> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t begin = 0;
  bool aligned = true;
  for (const TensorInfo& tensor : tensors) {
    aligned = aligned && begin % alignment_of(tensor) == 0;
    begin += tensor.bytes;
  }
  if (!aligned) {
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return alignment_of(tensors[a]) > alignment_of(tensors[b]); });
  }
  return order;
}

Result<std::unique_ptr<Writer>> create(io::OutputFile& file, std::span<const TensorInfo> tensors,
                                       const WriteOptions& options) {
  const std::string header = TRY(safetensors::format_header(tensors, options.metadata));
  TRY(file.append(std::as_bytes(std::span(header))));
  return std::unique_ptr<Writer>(std::make_unique<SafetensorsWriter>(file));
}

}  // namespace

constexpr Format safetensors_format = {
    .name = "safetensors",
    .description = "Hugging Face safetensors, one file",
    .extensions = extensions,
    .many_tensors = true,
    .named_tensors = true,
    .sniff = sniff,
    .can_hold = [](DType dtype) { return find_dtype(dtype) != nullptr; },
    .can_hold_foreign = [](std::string_view foreign_dtype) { return find_dtype(foreign_dtype) != nullptr; },
    .open = open,
    .create = create,
    .check = check,
    .objection = objection,
    .layout = layout,
};

}  // namespace tensorcast::formats
