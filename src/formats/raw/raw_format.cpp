// SPDX-License-Identifier: Apache-2.0
// Raw bytes: dense little-endian elements in C order; the caller gives type and shape.

#include <fmt/format.h>

#include <array>
#include <limits>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::formats {
namespace {

constexpr std::array<std::string_view, 2> extensions = {".bin", ".raw"};

class RawReader final : public Reader {
 public:
  RawReader(const io::InputFile& file, TensorInfo tensor) : file_(file), tensors_{std::move(tensor)} {}

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Metadata& metadata() const override { return metadata_; }
  Result<void> read(std::size_t, std::uint64_t offset, std::span<std::byte> out) override {
    return file_.read(offset, out);
  }

 private:
  const io::InputFile& file_;
  std::vector<TensorInfo> tensors_;
  Metadata metadata_;
};

class RawWriter final : public Writer {
 public:
  explicit RawWriter(io::OutputFile& file) : file_(file) {}

  Result<void> append(std::span<const std::byte> bytes) override { return file_.append(bytes); }
  Result<void> finish() override { return {}; }

 private:
  io::OutputFile& file_;
};

Result<std::unique_ptr<Reader>> open(const io::InputFile& file, const ReadOptions& options) {
  const auto fail = [&](std::string message, std::string hint = {}) {
    return in_file(file.path(), invalid(std::move(message), std::move(hint)));
  };
  if (!options.raw) return fail("raw bytes do not say what they hold", "`raw` says it, with a type and a shape");
  const DType dtype = options.raw->dtype;
  if (bit_width(dtype) == 0) return fail(fmt::format("raw bytes cannot be read as {}", name(dtype)));
  const std::size_t count = TRY(in_file(file.path(), element_count(options.raw->shape)));
  const std::size_t bytes = storage_bytes(dtype, count);
  if (bytes == std::numeric_limits<std::size_t>::max() || bytes != file.size()) {
    return fail(
        fmt::format("the file has {} bytes, but {} elements of {} take {}", file.size(), count, name(dtype), bytes));
  }
  TensorInfo tensor{.name = "", .dtype = dtype, .shape = options.raw->shape, .count = count, .bytes = bytes};
  return std::unique_ptr<Reader>(std::make_unique<RawReader>(file, std::move(tensor)));
}

Result<std::unique_ptr<Writer>> create(io::OutputFile& file, std::span<const TensorInfo>, const WriteOptions&) {
  return std::unique_ptr<Writer>(std::make_unique<RawWriter>(file));
}

}  // namespace

constexpr Format raw_format = {
    .name = "raw",
    .description = "bytes alone; the type and the shape are told",
    .extensions = extensions,
    .many_tensors = false,
    .named_tensors = false,
    .sniff = [](std::span<const std::byte>, std::uint64_t) { return false; },
    .can_hold = [](DType dtype) { return is_castable(dtype) && dtype != DType::string; },
    .open = open,
    .create = create,
};

}  // namespace tensorcast::formats
