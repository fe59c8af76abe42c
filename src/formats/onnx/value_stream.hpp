// SPDX-License-Identifier: Apache-2.0
// Reads the elements of a TensorProto without raw_data: one value after another in float_data, int32_data and so on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/format.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "formats/onnx/wire_reader.hpp"
#include "tensorcast/string_buffer.hpp"

namespace tensorcast::formats::onnx {

// Packed and single values may be mixed; other fields may stand between them. Memory is bounded.
class ValueStream {
 public:
  // `file` holds the checked message in `message` and outlives the stream.
  ValueStream(const io::InputFile& file, ByteRange message, DType dtype);

  // Like Reader::read. Errors: io; parse if a value does not fit the type.
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out);
  // Like Reader::read_strings, from string_data.
  [[nodiscard]] Result<StringBuffer> read_strings(const TensorInfo& info, std::uint64_t first, std::size_t block_bytes);

 private:
  void rewind();
  [[nodiscard]] Result<bool> find_values();
  [[nodiscard]] Result<void> load_block();
  void pack(std::vector<std::byte>& codes) const;
  [[nodiscard]] Result<void> decode(std::span<std::byte> value);

  ByteRange message_;
  DType dtype_;
  Field field_;
  WireReader wire_;
  std::uint64_t run_end_ = 0;      // end of the contiguous values at wire_.position()
  std::uint64_t values_ = 0;       // decoded or, if they are strings, read so far
  std::vector<std::byte> block_;   // decoded bytes
  std::uint64_t block_begin_ = 0;  // within the tensor
};

}  // namespace tensorcast::formats::onnx
