// SPDX-License-Identifier: Apache-2.0
// tensorcast::onnx::list_initializers(): the tensors of a model without their elements.
#include <fmt/format.h>

#include "dtype/error_places.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_reader.hpp"
#include "models/onnx/edit/external_locations.hpp"
#include "models/onnx/guarded_for_file.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/model_folder.hpp"
#include "models/onnx/view/shown_tensors.hpp"
#include "models/onnx/wire/message_fields.hpp"
#include "tensorcast/onnx.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::models::onnx {
namespace {

using formats::onnx::TensorProtoReader;

constexpr std::size_t max_rank = 1024;

// Types of TensorProto that tensorcast does not convert.
struct ForeignType {
  std::string name;
  std::uint64_t bytes = 0;  // of an element
};

ForeignType foreign_type(std::uint32_t number) {
  constexpr std::uint32_t complex64 = 14;
  constexpr std::uint32_t complex128 = 15;
  if (number == complex64) return {.name = "complex64", .bytes = 8};
  if (number == complex128) return {.name = "complex128", .bytes = 16};
  return {.name = fmt::format("type {}", number)};
}

// Reads the dimensions in field `number` of a message, one by one or packed.
Result<std::vector<std::int64_t>> read_dims(const io::InputFile& file, ByteRange message, std::uint32_t number) {
  std::vector<std::int64_t> dims;
  const auto add = [&](std::uint64_t value, std::uint64_t offset) -> Result<void> {
    const auto dimension = static_cast<std::int64_t>(value);
    if (dimension < 0) return malformed_message(offset, "dims has a negative dimension");
    if (dims.size() == max_rank) return malformed_message(offset, fmt::format("dims has over {} entries", max_rank));
    dims.push_back(dimension);
    return {};
  };
  WireReader wire(file, message.offset, message.offset + message.length);
  TRY(each_field(wire, [&](const WireField& field) -> Result<void> {
    if (field.number != number) return {};
    if (field.type == protozero::pbf_wire_type::varint) {
      const std::uint64_t value = TRY(wire.varint());
      return add(value, field.offset);
    }
    TRY(expect(field, protozero::pbf_wire_type::length_delimited));
    const std::uint64_t end = field.offset + field.length;
    while (wire.position() < end) {
      const std::uint64_t value = TRY(wire.varint());
      if (wire.position() > end) return malformed_message(end, "a varint runs off the end of its field");
      TRY(add(value, field.offset));
    }
    return {};
  }));
  return dims;
}

// A tensor that cannot be read gets a `problem`, and the list goes on: external data may be missing.
Result<TensorSummary> summary_of(const ShownTensor& tensor) {
  const io::InputFile& file = *tensor.file;
  const Initializer& initializer = tensor.tensor;
  std::string shown = tensor.name;
  constexpr std::uint32_t sparse_dims = 3;  // of SparseTensorProto
  const ByteRange whole{.offset = initializer.field.offset, .length = initializer.field.length};
  constexpr auto dims = static_cast<std::uint32_t>(formats::onnx::Field::dims);
  std::vector<std::int64_t> shape =
      TRY(of_tensor(shown, read_dims(file, whole, initializer.sparse ? sparse_dims : dims)));
  TensorSummary summary{.name = std::move(shown), .shape = std::move(shape)};
  const DType dtype = initializer.element;
  if (!is_onnx(dtype)) {
    ForeignType foreign = foreign_type(static_cast<std::uint32_t>(dtype));
    summary.foreign_dtype = std::move(foreign.name);
    summary.problem = "no type of tensorcast";
    const bool fits = foreign.bytes != 0 && initializer.count <= UINT64_MAX / foreign.bytes;
    summary.bytes = fits ? initializer.count * foreign.bytes : 0;
    return summary;
  }
  summary.dtype = dtype;
  const auto reader = TensorProtoReader::open(file, initializer.tensor);
  if (!reader) {
    summary.problem = reader.error().message;
    const Result<std::size_t> count = element_count(summary.shape);
    const std::size_t bytes = count && dtype != DType::string ? storage_bytes(dtype, *count) : 0;
    summary.bytes = bytes == SIZE_MAX ? 0 : bytes;
    return summary;
  }
  summary.bytes = (*reader)->tensors().front().bytes;
  if (initializer.sparse) summary.problem = fmt::format("sparse, {} elements are stored", initializer.count);
  return summary;
}

Result<FileSummary> list_initializers(const std::string& path) {
  const OpenModel opened = TRY(open_model(path));
  const std::vector<std::string> scopes = graph_scopes(*opened.model);
  const ShownTensors tensors = TRY(ShownTensors::of(opened.file, *opened.model, scopes));
  FileSummary list{.format = "onnx model", .tensors = {}, .metadata = {}};
  for (const ShownTensor& tensor : tensors.all()) list.tensors.push_back(TRY(summary_of(tensor)));
  return list;
}

Result<std::vector<std::string>> list_external_files(const std::string& path) {
  const OpenModel opened = TRY(open_model(path));
  const std::set<std::string> locations = TRY(external_locations(opened.file, *opened.model));
  std::vector<std::string> files;
  for (const std::string& location : locations) files.push_back((folder_of(path) / location).string());
  return files;
}

}  // namespace
}  // namespace tensorcast::models::onnx

namespace tensorcast::onnx {
inline namespace TENSORCAST_ABI {

Result<FileSummary> list_initializers(const std::string& model) {
  return models::onnx::guarded_for_file(model, [&] { return models::onnx::list_initializers(model); });
}

Result<std::vector<std::string>> list_external_files(const std::string& model) {
  return models::onnx::guarded_for_file(model, [&] { return models::onnx::list_external_files(model); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast::onnx
