// SPDX-License-Identifier: Apache-2.0
// A TensorProto without its elements, and where the elements are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "formats/onnx/wire_reader.hpp"
#include "io/input_file.hpp"

namespace tensorcast::formats::onnx {

struct ExternalData {
  std::string location;  // from the file; not trusted
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

struct Outline {
  TensorInfo info;    // TensorInfo::bytes of strings included
  Metadata metadata;  // doc_string and metadata_props
  enum class Storage : std::uint8_t { raw, typed, external } storage = Storage::raw;
  ByteRange raw;  // Storage::raw
  ExternalData external;
};

// Metadata key of TensorProto.doc_string.
inline constexpr std::string_view doc_string_key = "doc_string";

// Reads the whole message in `message` once, without the contents of raw_data. On success the number of elements
// matches the shape, and they are in one field only. Errors: parse, unsupported, io.
[[nodiscard]] Result<Outline> read_outline(const io::InputFile& file, ByteRange message);

}  // namespace tensorcast::formats::onnx
