// An array's elements in C order, for files in C or Fortran order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/npy/byte_source.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::npy {

// Files in C order are read directly. Files in Fortran order are gathered in blocks of rows, so memory is bounded for
// arrays of any size; every block reads the source once from front to back.
class RowMajorView {
 public:
  // The elements begin at `data_offset` and lie inside the source. The order of dimensions of one element does not
  // matter; empty arrays are read directly.
  RowMajorView(ByteSource& source, std::uint64_t data_offset, std::span<const std::int64_t> shape,
               std::uint64_t item_bytes, bool fortran_order);

  // Reads the bytes [offset, offset + out.size()) of the elements in C order. Errors: io, parse; unsupported if the
  // source would have to be read from the beginning too often.
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out);

 private:
  struct Dimension {
    std::uint64_t extent = 0;
    std::uint64_t row_major_step = 0;     // in elements
    std::uint64_t column_major_step = 0;  // in elements
  };

  void plan_blocks();
  [[nodiscard]] Result<void> load_block(std::uint64_t element);

  ByteSource& source_;
  std::uint64_t data_offset_;
  std::uint64_t item_bytes_;
  std::uint64_t total_bytes_ = 0;
  std::vector<Dimension> dimensions_;  // empty: read directly
  std::size_t split_ = 0;              // a block spans all dimensions after this one, and rows_ of this one
  std::uint64_t rows_ = 0;
  bool checked_ = false;
  std::uint64_t block_begin_ = 0;  // in bytes, C order
  std::vector<std::byte> block_;
};

}  // namespace tensorcast::formats::npy
