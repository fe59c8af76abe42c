// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy: one unnamed array. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

#include <fmt/format.h>

#include <array>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"
#include "formats/npy/npy_array.hpp"
#include "formats/npy/npy_encoder.hpp"
#include "formats/npy/npy_header.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"

namespace tensorcast::formats {
namespace {

constexpr std::array<std::string_view, 1> extensions = {".npy"};

class NpyReader final : public Reader {
 public:
  explicit NpyReader(const io::InputFile& file) : path_(file.path()), source_(file) {}

  Result<void> open(DType from) {
    npy::Array array = TRY(in_file(path_, npy::Array::open(source_, from)));
    array_.emplace(std::move(array));
    tensors_.push_back(array_->info());
    return {};
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Metadata& metadata() const override { return metadata_; }

  Result<void> read(std::size_t, std::uint64_t offset, std::span<std::byte> out) override {
    return in_file(path_, array_->read(offset, out));
  }
  Result<StringBuffer> read_strings(std::size_t, std::uint64_t first, std::size_t block_bytes) override {
    return in_file(path_, array_->read_strings(first, block_bytes));
  }

 private:
  std::string path_;
  FileSource source_;
  std::optional<npy::Array> array_;
  std::vector<TensorInfo> tensors_;
  Metadata metadata_;  // npy has none
};

class NpyWriter final : public Writer {
 public:
  NpyWriter(io::OutputFile& file, const TensorInfo& info)
      : info_(info), encoder_(info_, [&file](std::span<const std::byte> bytes) { return file.append(bytes); }) {}

  Result<void> begin() {
    const bool header_follows = info_.dtype == DType::string && info_.count > 0;  // when the strings are measured
    return header_follows ? Result<void>() : encoder_.write_header();
  }
  Result<void> append(std::span<const std::byte> bytes) override { return encoder_.append(bytes); }
  bool measures_strings() const override { return true; }
  Result<void> measure_strings(const StringBuffer& strings) override { return encoder_.measure_strings(strings); }
  Result<void> append_strings(const StringBuffer& strings) override {
    if (encoder_.elements() == 0) {
      TRY(encoder_.write_header());
    }
    return encoder_.append_strings(strings);
  }
  Result<void> finish() override { return {}; }

 private:
  TensorInfo info_;
  npy::Encoder encoder_;
};

bool sniff(std::span<const std::byte> head, std::uint64_t) { return npy::has_magic(head); }

Result<std::unique_ptr<Reader>> open(const io::InputFile& file, const ReadOptions& options) {
  auto reader = std::make_unique<NpyReader>(file);
  TRY(reader->open(options.from.of("")));
  return std::unique_ptr<Reader>(std::move(reader));
}

Result<void> check(std::span<const TensorInfo> tensors) {
  if (tensors.size() != 1) return unsupported(fmt::format("npy holds exactly one array, not {}", tensors.size()));
  return npy::check_shape(tensors.front());
}

Result<std::unique_ptr<Writer>> create(io::OutputFile& file, std::span<const TensorInfo> tensors, const WriteOptions&) {
  auto writer = std::make_unique<NpyWriter>(file, tensors.front());
  TRY(writer->begin());
  return std::unique_ptr<Writer>(std::move(writer));
}

}  // namespace

constexpr Format npy_format = {
    .name = "npy",
    .description = "NumPy, one array",
    .extensions = extensions,
    .sniff = sniff,
    .can_hold = is_castable,
    .open = open,
    .create = create,
    .check = check,
};

}  // namespace tensorcast::formats
