// SPDX-License-Identifier: Apache-2.0
// One opened .npy, in a file or an archive: checked, and read as dense little-endian C-order storage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/bytes/stream_source.hpp"
#include "formats/bytes/strided_elements.hpp"
#include "formats/format.hpp"
#include "formats/npy/npy_dtypes.hpp"
#include "formats/npy/npy_header.hpp"
#include "tensorcast/string_buffer.hpp"

namespace tensorcast::formats::npy {

class Array {
 public:
  // `source` outlives the array; `from` is that of parse_descr(). Errors: those of read_header() and parse_descr();
  // parse if the source has fewer or more bytes than the shape needs.
  [[nodiscard]] static Result<Array> open(StreamSource& source, DType from);

  // The name is empty.
  [[nodiscard]] const TensorInfo& info() const noexcept { return info_; }

  // Like Reader::read and Reader::read_strings.
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<StringBuffer> read_strings(std::uint64_t first, std::size_t block_bytes);

 private:
  Array(StreamSource& source, const Header& header, ElementLayout layout, TensorInfo info);
  [[nodiscard]] Result<void> read_packed(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<std::span<const std::byte>> text_item(std::uint64_t index);

  ElementLayout layout_;
  TensorInfo info_;
  StridedElements items_;
  // Types under 8 bits: the end of the last read, and the bits of an element of which it took only a part. They are
  // saved because a stream cannot go back.
  std::uint64_t packed_end_ = 0;
  std::uint64_t next_element_ = 0;
  unsigned kept_ = 0, kept_bits_ = 0;
  // Strings: items from `batch_begin_` on. They are kept from one block to the next, because a stream cannot go back.
  std::vector<std::byte> batch_;
  std::uint64_t batch_begin_ = 0;
};

}  // namespace tensorcast::formats::npy
