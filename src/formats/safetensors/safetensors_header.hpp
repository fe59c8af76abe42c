// SPDX-License-Identifier: Apache-2.0
// Parses and writes the JSON header of a safetensors file, which may be malicious.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"

namespace tensorcast::formats::safetensors {

inline constexpr std::uint64_t length_bytes = 8;              // the header's length, before the header
inline constexpr std::uint64_t max_header_bytes = 100000000;  // the format's own limit
inline constexpr std::uint64_t data_alignment = 8;            // writers pad the header with spaces up to this
inline constexpr std::size_t max_rank = 64;                   // as in NumPy and PyTorch

struct Header {
  std::vector<TensorInfo> tensors;           // by position in the data; ties in the header's order
  std::vector<std::uint64_t> begin_offsets;  // of each tensor, in the data
  Metadata metadata;
};

// Checks the grammar, then that the tensors fill `data_bytes` without gap or overlap.
// Errors: parse; Error::tensor names the tensor.
[[nodiscard]] Result<Header> parse_header(std::string_view json, std::uint64_t data_bytes);

// Returns the header's length, which the first length_bytes of a file hold.
[[nodiscard]] std::uint64_t load_length(std::span<const std::byte> head) noexcept;

// The header of a whole file, and where its data begin.
struct FileHeader {
  Header header;
  std::string json;
  std::uint64_t data_begin = 0;
};

// Reads bytes [offset, offset + out.size()) of a file.
using ReadBytes = std::function<Result<void>(std::uint64_t offset, std::span<std::byte> out)>;

// Reads and checks the header of a file of `file_bytes` bytes. Errors: parse, and those of `read`.
[[nodiscard]] Result<FileHeader> read_file_header(std::uint64_t file_bytes, const ReadBytes& read);

// Returns the length field and the padded header for tensors in the given order.
// Errors: unsupported (over the format's limits), invalid_argument (names that JSON cannot represent).
[[nodiscard]] Result<std::string> format_header(std::span<const TensorInfo> tensors, const Metadata& metadata);

}  // namespace tensorcast::formats::safetensors
