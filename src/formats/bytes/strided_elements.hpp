// SPDX-License-Identifier: Apache-2.0
// The elements of a strided array in C order: of a transposed tensor, a slice, an array in Fortran order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/bytes/stream_source.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats {

// Where the elements of an array are. All lie inside the source.
struct StridedLayout {
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};  // in items; 0 or more
  std::uint64_t item_bytes = 1;
  std::uint64_t begin = 0;       // of the first element, in bytes
  std::uint64_t word_bytes = 1;  // 2 to 8: every word is in the other byte order
};

// Reports whether the elements are in C order without gaps.
[[nodiscard]] bool is_contiguous(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);

// Contiguous arrays are read directly. Others are gathered in blocks of 32 MiB, each of which reads the source once
// from front to back, so memory is bounded for arrays of any size.
class StridedElements {
 public:
  // `source` outlives this.
  StridedElements(StreamSource& source, const StridedLayout& layout);

  // Reads the bytes [offset, offset + out.size()) of the elements in C order. Errors: those of the source; unsupported
  // if the source would have to be read from the beginning too often.
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out);

 private:
  struct Dimension {
    std::uint64_t extent = 0;
    std::uint64_t stride = 0;  // in the source, in items
    std::uint64_t step = 0;    // in C order, in items
  };

  [[nodiscard]] Result<void> read_words(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<void> check_source();
  [[nodiscard]] Result<void> load_block(std::uint64_t item);
  [[nodiscard]] Result<void> gather(std::uint64_t first, std::vector<Dimension> dimensions);
  [[nodiscard]] Result<void> copy_run(std::uint64_t item, const Dimension& run, std::uint64_t target, bool ahead);
  [[nodiscard]] Result<void> load_window(std::uint64_t begin, std::uint64_t bytes);

  StreamSource& source_;
  std::uint64_t begin_;
  std::uint64_t item_bytes_;
  std::uint64_t word_bytes_;
  std::vector<Dimension> dimensions_;  // without those of one element; empty: read directly
  std::size_t split_ = 0;              // a block is rows_ indices of this dimension, and all of those after it
  std::uint64_t rows_ = 0;
  bool checked_ = false;
  std::uint64_t block_begin_ = 0;  // in bytes, C order
  std::vector<std::byte> block_;
  std::uint64_t window_begin_ = 0;  // in bytes of the source
  std::vector<std::byte> window_;
  std::array<std::byte, 8> split_word_{};  // a word of which the last read took only a part
  std::uint64_t split_index_ = ~std::uint64_t{0};
};

}  // namespace tensorcast::formats
