// SPDX-License-Identifier: Apache-2.0
// ONNX models of conversion nodes. https://github.com/onnx/onnx/blob/main/docs/IR.md

#include <array>

#include "dtype/try.hpp"
#include "io/input_file.hpp"
#include "models/model_format.hpp"
#include "models/onnx/run/graph_builder.hpp"

namespace tensorcast::models {
namespace {

constexpr std::array<std::string_view, 1> extensions = {".onnx"};

// Protobuf has no signature, but all writers put ir_version first, followed by one of a few fields.
bool recognizes(std::span<const std::byte> first_bytes) {
  constexpr std::array<std::uint8_t, 8> next_keys = {
      2 << 3 | 2,  // producer_name
      3 << 3 | 2,  // producer_version
      4 << 3 | 2,  // domain
      5 << 3 | 0,  // model_version
      6 << 3 | 2,  // doc_string
      7 << 3 | 2,  // graph
      8 << 3 | 2,  // opset_import
      14 << 3 | 2  // metadata_props
  };
  if (first_bytes.size() < 3 || first_bytes[0] != std::byte{1 << 3 | 0}) return false;
  const auto ir_version = static_cast<std::uint8_t>(first_bytes[1]);
  const auto next_key = static_cast<std::uint8_t>(first_bytes[2]);
  for (const std::uint8_t key : next_keys) {
    if (ir_version >= 1 && ir_version < 0x80 && key == next_key) return true;
  }
  return false;
}

Result<Graph> load(const std::string& path, const LoadModelOptions&) {
  const io::InputFile file = TRY(io::InputFile::open(path));
  return onnx::build_graph(file);
}

}  // namespace

constexpr ModelFormat onnx_format = {
    .name = "onnx", .extensions = extensions, .recognizes = recognizes, .load = load, .parse = onnx::build_graph};

}  // namespace tensorcast::models
