// SPDX-License-Identifier: Apache-2.0
// One ONNX TensorProto in a .pb, as onnx.save_tensor writes it and ONNX's own node tests ship them.
// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

#include <fmt/format.h>

#include <array>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"
#include "formats/onnx/tensor_proto_reader.hpp"
#include "formats/onnx/tensor_proto_writer.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"

namespace tensorcast::formats {
namespace {

constexpr std::array<std::string_view, 1> extensions = {".pb"};

Result<std::unique_ptr<Reader>> open(const io::InputFile& file, const ReadOptions&) {
  auto reader = TRY(onnx::TensorProtoReader::open(file, {.offset = 0, .length = file.size()}));
  return std::unique_ptr<Reader>(std::move(reader));
}

Result<void> check(std::span<const TensorInfo> tensors) {
  if (tensors.size() == 1) return {};
  return unsupported(fmt::format("a TensorProto is exactly one tensor, not {}", tensors.size()));
}

Result<std::unique_ptr<Writer>> create(io::OutputFile& file, std::span<const TensorInfo> tensors,
                                       const WriteOptions& options) {
  auto writer = std::make_unique<onnx::TensorProtoWriter>(file, tensors.front(), options.metadata);
  TRY(writer->begin());
  return std::unique_ptr<Writer>(std::move(writer));
}

}  // namespace

constexpr Format tensor_proto_format = {
    .name = "tensor_proto",
    .description = "ONNX TensorProto, one tensor",
    .extensions = extensions,
    .sniff = [](std::span<const std::byte>, std::uint64_t) { return false; },  // protobuf has no signature
    .can_hold = is_onnx,
    .open = open,
    .create = create,
    .check = check,
};

}  // namespace tensorcast::formats
