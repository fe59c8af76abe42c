// The JSON header of a safetensors file, as hostile as a file can be.
#pragma once

#include <cstdint>
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
  std::vector<TensorInfo> tensors;           // by position in the data; the header's order where that is equal
  std::vector<std::uint64_t> begin_offsets;  // of each tensor, in the data
  Metadata metadata;
};

// Checks everything: the grammar, then that the tensors fill `data_bytes` without gap or overlap.
// Errors: parse; Error::tensor says where.
[[nodiscard]] Result<Header> parse_header(std::string_view json, std::uint64_t data_bytes);

// The length field and the padded header for tensors that lie in the given order.
// Errors: unsupported (beyond the format's limits), invalid_argument (names that JSON cannot carry).
[[nodiscard]] Result<std::string> format_header(std::span<const TensorInfo> tensors, const Metadata& metadata);

}  // namespace tensorcast::formats::safetensors
