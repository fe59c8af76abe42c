// SPDX-License-Identifier: Apache-2.0
// GGUF, the file format of llama.cpp.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/distinct_names.hpp"
#include "formats/format_list.hpp"
#include "formats/gguf/gguf_header.hpp"
#include "formats/gguf/gguf_metadata.hpp"
#include "formats/gguf/gguf_types.hpp"
#include "formats/metadata_text.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"

namespace tensorcast::formats {
namespace {

using gguf::Header;

constexpr std::array<std::string_view, 1> extensions = {".gguf"};

class GgufReader final : public Reader {
 public:
  GgufReader(const io::InputFile& file, Header header) : file_(file), header_(std::move(header)) {}

  const std::vector<TensorInfo>& tensors() const override { return header_.tensors; }
  const Metadata& metadata() const override { return header_.metadata; }
  std::string_view native_metadata() const override { return header_.native_metadata; }
  const std::vector<std::string>& warnings() const override { return header_.warnings; }
  Result<void> read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override {
    return file_.read(header_.offsets[index] + offset, out);
  }

 private:
  const io::InputFile& file_;
  Header header_;
};

class GgufWriter final : public Writer {
 public:
  GgufWriter(io::OutputFile& file, std::span<const TensorInfo> tensors, std::uint32_t alignment)
      : file_(file), alignment_(alignment) {
    for (const TensorInfo& tensor : tensors) sizes_.push_back(tensor.bytes);
    skip_empty();
  }

  Result<void> append(std::span<const std::byte> bytes) override {
    if (next_ == sizes_.size() || bytes.size() > sizes_[next_] - done_) return out_of_step();
    TRY(file_.append(bytes));
    done_ += bytes.size();
    if (done_ < sizes_[next_]) return {};
    const std::vector<std::byte> zeros(gguf::padding(done_, alignment_));
    done_ = 0;
    ++next_;
    skip_empty();
    return zeros.empty() ? Result<void>() : file_.append(zeros);
  }
  Result<void> finish() override { return next_ == sizes_.size() ? Result<void>() : out_of_step(); }

 private:
  void skip_empty() {
    while (next_ < sizes_.size() && sizes_[next_] == 0) ++next_;
  }
  static Error out_of_step() {
    return Error{.code = ErrorCode::internal, .message = "tensors and their data are out of step"};
  }

  io::OutputFile& file_;
  std::uint32_t alignment_;
  std::vector<std::uint64_t> sizes_;
  std::size_t next_ = 0;
  std::uint64_t done_ = 0;  // bytes of the tensor `next_`
};

bool sniff(std::span<const std::byte> head, std::uint64_t) {
  return head.size() >= gguf::magic.size() && std::equal(gguf::magic.begin(), gguf::magic.end(), head.begin(),
                                                         [](char c, std::byte b) { return std::byte(c) == b; });
}

Result<std::unique_ptr<Reader>> open(const io::InputFile& file, const ReadOptions& options) {
  std::array<std::byte, gguf::magic.size()> head{};
  if (file.size() < head.size()) return in_file(file.path(), parse_error("the file is too short for GGUF"));
  TRY(file.read(0, head));
  if (!sniff(head, file.size())) return in_file(file.path(), parse_error("the file does not begin with GGUF"));
  Header header = TRY(in_file(file.path(), gguf::read_header(file)));
  if (options.copied_to != gguf_format.name) gguf::apply_original_shapes(header, file);
  return std::unique_ptr<Reader>(std::make_unique<GgufReader>(file, std::move(header)));
}

Result<void> check(std::span<const TensorInfo> tensors) {
  for (const TensorInfo& tensor : tensors) {
    const auto fail = [&](std::string message) { return of_tensor(tensor.name, unsupported(std::move(message))); };
    if (tensor.shape.size() > gguf::max_rank) {
      return fail(fmt::format("GGUF holds at most {} dimensions, not {}", gguf::max_rank, tensor.shape.size()));
    }
    if (tensor.name.size() > gguf::max_name_bytes) {
      return fail(
          fmt::format("GGUF holds names of at most {} bytes, not {}", gguf::max_name_bytes, tensor.name.size()));
    }
    const gguf::TensorType* type = gguf::find_type(tensor.foreign_dtype);
    const std::int64_t block = type == nullptr ? 1 : type->block_elements;
    if (block > 1 && (tensor.shape.empty() || tensor.shape.back() % block != 0)) {
      return fail(fmt::format("GGUF holds {} in rows of whole blocks of {}, not in the shape [{}]",
                              tensor.foreign_dtype, block, fmt::join(tensor.shape, ", ")));
    }
  }
  return check_distinct_names(tensors, "GGUF finds tensors by name");
}

Result<std::unique_ptr<Writer>> create(io::OutputFile& file, std::span<const TensorInfo> tensors,
                                       const WriteOptions& options) {
  std::string texts;
  gguf::NativeMetadata native;
  if (options.source_format == gguf_format.name && !options.native_metadata.empty()) {
    native = gguf::unpack_native(options.native_metadata);
    if (!options.added.empty()) {
      texts = TRY(gguf::with_added(native.bytes, options.added));
      native.bytes = texts;
    }
  } else {
    texts = TRY(gguf::format_metadata(options.metadata));
    native = {.alignment = gguf::default_alignment, .bytes = texts};
  }
  const std::string* const version = find_text(options.metadata, gguf::quantization_version_key);
  if (options.quantizes && version != nullptr && *version != gguf::block_version) {
    return in_file(file.path(),
                   unsupported(fmt::format("{} is {} in the input, and blocks are written as those of version {}",
                                           gguf::quantization_version_key, *version, gguf::block_version)));
  }
  if (options.quantizes && version == nullptr) {
    texts = gguf::with_quantization_version(native.bytes);
    native.bytes = texts;
  }
  const std::string header = gguf::format_header(tensors, native, options.file_type);
  TRY(file.append(std::as_bytes(std::span(header))));
  return std::unique_ptr<Writer>(std::make_unique<GgufWriter>(file, tensors, native.alignment));
}

}  // namespace

constexpr Format gguf_format = {
    .name = "gguf",
    .description = "GGUF of llama.cpp, one file",
    .extensions = extensions,
    .many_tensors = true,
    .named_tensors = true,
    .foreign_kind = "a block format of GGUF, which is not decoded",
    .sniff = sniff,
    .can_hold = [](DType dtype) { return gguf::find_type(dtype) != nullptr; },
    // Block formats, which other spellings of quantized weights become.
    .can_hold_foreign =
        [](std::string_view name) {
          const gguf::TensorType* type = gguf::find_type(name);
          return type != nullptr && type->dtype == DType::undefined;
        },
    .open = open,
    .create = create,
    .check = check,
    // ggml computes with 1-D tensors, such as norms and biases, in float32 only.
    .demanded_type =
        [](const TensorInfo& tensor) {
          const bool demands = tensor.shape.size() <= 1 && family(tensor.dtype) == Family::floating;
          return demands ? DType::float32 : DType::undefined;
        },
};

}  // namespace tensorcast::formats
