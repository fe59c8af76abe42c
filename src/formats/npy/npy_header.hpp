// SPDX-License-Identifier: Apache-2.0
// The header of a .npy: a magic number, a version, a length, and a Python dictionary in text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/stream_source.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::npy {

inline constexpr std::string_view magic = "\x93NUMPY";
inline constexpr std::size_t max_rank = 64;  // NumPy's

struct Header {
  std::string descr;           // of structured arrays, the list of fields
  bool fortran_order = false;  // the first index varies fastest
  std::vector<std::int64_t> shape;
  std::uint64_t data_offset = 0;
};

[[nodiscard]] bool has_magic(std::span<const std::byte> head) noexcept;

// Errors: parse; unsupported (unknown versions); io.
[[nodiscard]] Result<Header> read_header(StreamSource& source);

// Returns the same bytes as NumPy writes, magic number included. Precondition: shape.size() <= max_rank.
[[nodiscard]] std::string format_header(std::string_view descr, std::span<const std::int64_t> shape);

}  // namespace tensorcast::formats::npy
