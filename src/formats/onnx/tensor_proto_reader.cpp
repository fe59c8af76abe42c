// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/tensor_proto_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::formats::onnx {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

}  // namespace

TensorProtoReader::TensorProtoReader(const io::InputFile& file, ByteRange message, Outline outline)
    : file_(file), outline_(std::move(outline)), tensors_{outline_.info}, values_(file, message, outline_.info.dtype) {}

Result<std::unique_ptr<TensorProtoReader>> TensorProtoReader::open(const io::InputFile& file, ByteRange message) {
  Outline outline = TRY(in_file(file.path(), read_outline(file, message)));
  std::unique_ptr<TensorProtoReader> reader(new TensorProtoReader(file, message, std::move(outline)));
  TRY(reader->open_external());
  return reader;
}

Result<void> TensorProtoReader::open_external() {
  if (outline_.storage != Outline::Storage::external) return {};
  const ExternalData& where = outline_.external;
  if (!file_.has_folder()) {
    return located(unsupported("a model in memory has no folder in which its external data could be",
                               "give the path of the model"));
  }
  io::InputFile file = TRY(located(io::InputFile::open_below(folder_of(file_.path()), where.location)));
  const std::uint64_t there = file.size() - std::min(where.offset, file.size());
  const std::uint64_t needed = outline_.info.bytes;
  // Without a length the data reaches to the end of the file.
  if (where.offset > file.size() || there < needed || (!where.length && there != needed)) {
    return located(parse_error(
        fmt::format("the file has {} bytes from offset {} on, but the shape needs {}", there, where.offset, needed)));
  }
  external_.emplace(std::move(file));
  return {};
}

Result<void> TensorProtoReader::read(std::size_t, std::uint64_t offset, std::span<std::byte> out) {
  return located(read_from(offset, out));
}

Result<StringBuffer> TensorProtoReader::read_strings(std::size_t, std::uint64_t first, std::size_t block_bytes) {
  if (outline_.info.dtype != DType::string) {
    return located(Error{.code = ErrorCode::internal, .message = "not a tensor of strings"});
  }
  return located(values_.read_strings(outline_.info, first, block_bytes));
}

Result<void> TensorProtoReader::read_from(std::uint64_t offset, std::span<std::byte> out) {
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

Error TensorProtoReader::located(Error error) const {
  if (outline_.storage == Outline::Storage::external) {
    error.message = fmt::format("external data \"{}\": {}", outline_.external.location, error.message);
  }
  error.file = file_.path();
  error.tensor = outline_.info.name;
  return error;
}

}  // namespace tensorcast::formats::onnx
