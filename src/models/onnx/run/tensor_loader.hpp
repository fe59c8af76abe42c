// SPDX-License-Identifier: Apache-2.0
// Loads tensors of a model, each once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "formats/onnx/tensor_proto_reader.hpp"
#include "io/input_file.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::models::onnx {

class TensorLoader {
 public:
  // `file` outlives the loader.
  explicit TensorLoader(const io::InputFile& file) : file_(file) {}

  // Returns the TensorProto in `message`, with its name. Tensors in the same bytes of a file share them; all tensors
  // together never take more memory than the model and its external files have bytes. Errors: parse, unsupported, io.
  [[nodiscard]] Result<NamedTensor> load(formats::onnx::ByteRange message);

 private:
  using ExternalKey = std::tuple<io::InputFile::Identity, std::uint64_t, std::uint64_t>;  // offset, bytes

  [[nodiscard]] Result<Tensor> read(formats::onnx::TensorProtoReader& reader);
  [[nodiscard]] Result<Tensor> read_external(formats::onnx::TensorProtoReader& reader);

  const io::InputFile& file_;
  std::unordered_map<std::uint64_t, NamedTensor> by_offset_;
  std::map<ExternalKey, Tensor> external_;
  std::map<io::InputFile::Identity, std::uint64_t> unread_;  // bytes of external files that no tensor has taken yet
};

}  // namespace tensorcast::models::onnx
