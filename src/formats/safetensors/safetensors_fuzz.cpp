// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a safetensors header: the result is an error, or a header that fits the bytes and is the
// same after writing and reading it again.
#include <cstdlib>
#include <span>
#include <string_view>

#include "formats/safetensors/safetensors_header.hpp"

using tensorcast::Result;
using tensorcast::formats::safetensors::format_header;
using tensorcast::formats::safetensors::Header;
using tensorcast::formats::safetensors::length_bytes;
using tensorcast::formats::safetensors::parse_header;

namespace {

void require(bool condition) {
  if (!condition) __builtin_trap();
}

}  // namespace

// The first two bytes are the number of data bytes after the header.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint64_t data_bytes = data[0] | data[1] << 8;
  const std::string_view json(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Result<Header> header = parse_header(json, data_bytes);
  if (!header) return 0;

  std::uint64_t end = 0;
  for (std::size_t i = 0; i < header->tensors.size(); ++i) {
    require(header->begin_offsets[i] == end);
    end += header->tensors[i].bytes;
  }
  require(end == data_bytes);

  const Result<std::string> written = format_header(header->tensors, header->metadata);
  require(written.ok());
  const Result<Header> again = parse_header(std::string_view(*written).substr(length_bytes), data_bytes);
  require(again.ok() && again->tensors.size() == header->tensors.size() && again->metadata == header->metadata);
  for (std::size_t i = 0; i < again->tensors.size(); ++i) {
    require(again->tensors[i].name == header->tensors[i].name && again->tensors[i].shape == header->tensors[i].shape &&
            again->tensors[i].dtype == header->tensors[i].dtype &&
            again->tensors[i].foreign_dtype == header->tensors[i].foreign_dtype);
  }
  return 0;
}
