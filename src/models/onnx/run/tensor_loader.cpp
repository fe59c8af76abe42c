// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/run/tensor_loader.hpp"

#include <fmt/format.h>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/memory_budget.hpp"

namespace tensorcast::models::onnx {

using formats::onnx::Outline;
using formats::onnx::TensorProtoReader;

Result<NamedTensor> TensorLoader::load(formats::onnx::ByteRange message) {
  if (const auto known = by_offset_.find(message.offset); known != by_offset_.end()) return known->second;
  std::unique_ptr<TensorProtoReader> reader = TRY(TensorProtoReader::open(file_, message));
  const std::string& name = reader->outline().info.name;
  const bool external = reader->outline().storage == Outline::Storage::external;
  Tensor tensor = TRY(of_tensor(name, in_file(file_.path(), external ? read_external(*reader) : read(*reader))));
  return by_offset_.emplace(message.offset, NamedTensor{.name = name, .tensor = std::move(tensor)}).first->second;
}

Result<Tensor> TensorLoader::read(TensorProtoReader& reader) {
  const formats::TensorInfo& info = reader.outline().info;
  if (info.dtype == DType::string) {
    constexpr std::uint64_t least_field_bytes = 2;  // a key and a length
    const io::MemoryBudget budget(info.bytes + info.count * least_field_bytes);
    StringBuffer strings = TRY(formats::read_all_strings(reader, 0, budget));
    return Tensor::own(info.shape, std::move(strings));
  }
  std::vector<std::byte> bytes(info.bytes);
  TRY(reader.read(0, 0, bytes));
  return Tensor::own(info.dtype, info.shape, std::move(bytes));
}

Result<Tensor> TensorLoader::read_external(TensorProtoReader& reader) {
  const Outline& outline = reader.outline();
  const io::InputFile& file = *reader.external_file();
  const ExternalKey key{file.identity(), outline.external.offset, outline.info.bytes};
  if (const auto known = external_.find(key); known != external_.end()) {
    return Tensor::share({outline.info.dtype, outline.info.shape, known->second.bytes()},
                         std::make_shared<Tensor>(known->second));
  }
  // Overlapping tensors could turn a small file into any amount of memory.
  std::uint64_t& left = unread_.try_emplace(file.identity(), file.size()).first->second;
  if (outline.info.bytes > left) {
    return parse_error(fmt::format("external data \"{}\": tensors overlap in this file", outline.external.location));
  }
  left -= outline.info.bytes;
  Result<Tensor> tensor = read(reader);
  if (tensor) external_.emplace(key, *tensor);
  return tensor;
}

}  // namespace tensorcast::models::onnx
