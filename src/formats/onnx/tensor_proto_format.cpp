#include "formats/onnx/tensor_proto_format.hpp"

#include <fmt/format.h>

#include <array>

#include "formats/onnx/tensor_proto_outline.hpp"
#include "formats/onnx/tensor_proto_writer.hpp"
#include "formats/onnx/value_stream.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"

namespace tensorcast::formats {
namespace {

using onnx::Outline;

constexpr std::array<std::string_view, 1> extensions = {".pb"};

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

class TensorProtoReader final : public Reader {
 public:
  TensorProtoReader(const io::InputFile& file, Outline outline)
      : file_(file), outline_(std::move(outline)), tensors_{outline_.info}, values_(file, outline_.info.dtype) {}

  Result<void> open_external() {
    if (outline_.storage != Outline::Storage::external) return {};
    const onnx::ExternalData& where = outline_.external;
    Result<io::InputFile> file = io::InputFile::open_below(folder_of(file_.path()), where.location);
    if (!file) return located(std::move(file).error());
    const std::uint64_t there = file->size() - std::min(where.offset, file->size());
    const std::uint64_t needed = outline_.info.bytes;
    // Without a length the data reaches to the end of the file.
    if (where.offset > file->size() || there < needed || (!where.length && there != needed)) {
      return located(Error{.code = ErrorCode::parse,
                           .message = fmt::format("the file has {} bytes from offset {} on, but the shape needs {}",
                                                  there, where.offset, needed)});
    }
    external_.emplace(std::move(*file));
    return {};
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Metadata& metadata() const override { return outline_.metadata; }

  Result<void> read(std::size_t, std::uint64_t offset, std::span<std::byte> out) override {
    Result<void> got = read_from(offset, out);
    return got ? got : located(std::move(got).error());
  }
  Result<StringBuffer> read_strings(std::size_t) override {
    if (outline_.info.dtype != DType::string) {
      return located(Error{.code = ErrorCode::internal, .message = "not a tensor of strings"});
    }
    Result<StringBuffer> strings = values_.read_strings(outline_.info);
    return strings ? std::move(strings) : located(std::move(strings).error());
  }

 private:
  Result<void> read_from(std::uint64_t offset, std::span<std::byte> out) {
    switch (outline_.storage) {
      case Outline::Storage::raw:
        return file_.read(outline_.raw.offset + offset, out);
      case Outline::Storage::typed:
        return values_.read(offset, out);
      case Outline::Storage::external:
        return external_->read(outline_.external.offset + offset, out);
    }
    return {};
  }

  Error located(Error error) const {
    if (outline_.storage == Outline::Storage::external) {
      error.message = fmt::format("external data \"{}\": {}", outline_.external.location, error.message);
    }
    error.file = file_.path();
    error.tensor = outline_.info.name;
    return error;
  }

  const io::InputFile& file_;
  Outline outline_;
  std::vector<TensorInfo> tensors_;
  onnx::ValueStream values_;
  std::optional<io::InputFile> external_;
};

Result<std::unique_ptr<Reader>> open(const io::InputFile& file, const ReadOptions&) {
  Result<Outline> outline = onnx::read_outline(file);
  if (!outline) {
    outline.error().file = file.path();
    return std::move(outline).error();
  }
  auto reader = std::make_unique<TensorProtoReader>(file, std::move(*outline));
  if (auto opened = reader->open_external(); !opened) return std::move(opened).error();
  return std::unique_ptr<Reader>(std::move(reader));
}

Result<void> check(std::span<const TensorInfo> tensors) {
  if (tensors.size() == 1) return {};
  return Error{.code = ErrorCode::unsupported,
               .message = fmt::format("a TensorProto is exactly one tensor, not {}", tensors.size())};
}

Result<std::unique_ptr<Writer>> create(io::OutputFile& file, std::span<const TensorInfo> tensors,
                                       const WriteOptions& options) {
  auto writer = std::make_unique<onnx::TensorProtoWriter>(file, tensors.front(), options.metadata);
  if (auto begun = writer->begin(); !begun) return std::move(begun).error();
  return std::unique_ptr<Writer>(std::move(writer));
}

}  // namespace

constexpr Format tensor_proto_format = {
    .name = "tensor_proto",
    .description = "ONNX TensorProto, one tensor",
    .extensions = extensions,
    .sniff = [](std::span<const std::byte>, std::uint64_t) { return false; },  // protobuf has no signature
    .can_hold = is_castable,
    .open = open,
    .create = create,
    .check = check,
};

}  // namespace tensorcast::formats
