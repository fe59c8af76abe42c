#include "strided.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "tensorcast/tensor.hpp"

namespace tensorcast::python {
namespace {

// Elements per block of a strided conversion: source, packed and converted blocks fit the second-level cache.
constexpr std::size_t block_elements = 16384;
// Elements per call of a dense conversion, so that Ctrl-C is heard a few times a second. A multiple of 8.
constexpr std::size_t dense_elements = std::size_t{1} << 24;
// Maximum rows and columns of a tile of a transposed source.
constexpr std::size_t tile_edge = 128;
constexpr std::int64_t line_bytes = 64;

// Walks over the elements of an array in C order, in runs along its last dimension.
class Walk {
 public:
  explicit Walk(const StridedArray& array) : array_(array), index_(array.shape.size(), 0), position_(array.data) {}

  // Calls visit(address, stride, count) for runs that add up to `count` elements.
  template <class Visit>
  void advance(std::size_t count, Visit&& visit) {
    const std::size_t rank = array_.shape.size();
    if (rank == 0) {
      visit(position_, std::int64_t{0}, std::size_t{1});
      return;
    }
    const std::size_t last = rank - 1;
    while (count > 0) {
      const auto left = static_cast<std::size_t>(array_.shape[last] - index_[last]);
      const std::size_t run = std::min(left, count);
      visit(position_, array_.strides[last], run);
      count -= run;
      index_[last] += static_cast<std::int64_t>(run);
      position_ += static_cast<std::int64_t>(run) * array_.strides[last];
      for (std::size_t axis = last; index_[axis] == array_.shape[axis]; --axis) {
        position_ -= index_[axis] * array_.strides[axis];
        index_[axis] = 0;
        if (axis == 0) break;
        ++index_[axis - 1];
        position_ += array_.strides[axis - 1];
      }
    }
  }

 private:
  const StridedArray& array_;
  std::vector<std::int64_t> index_;
  std::byte* position_;
};

std::uint8_t swap_bytes(std::uint8_t item) { return item; }
std::uint16_t swap_bytes(std::uint16_t item) { return __builtin_bswap16(item); }
std::uint32_t swap_bytes(std::uint32_t item) { return __builtin_bswap32(item); }
std::uint64_t swap_bytes(std::uint64_t item) { return __builtin_bswap64(item); }

template <class Item, bool swapped>
void copy_items(const std::byte* src, std::int64_t src_stride, std::byte* dst, std::int64_t dst_stride,
                std::size_t count) {
  const auto copy = [&](const std::byte* from, std::byte* to) {
    Item item;
    std::memcpy(&item, from, sizeof item);
    if constexpr (swapped) item = swap_bytes(item);
    std::memcpy(to, &item, sizeof item);
  };
  constexpr auto dense = static_cast<std::int64_t>(sizeof(Item));
  if (src_stride == dense && dst_stride == dense) {  // a loop that the compiler vectorizes
    for (std::size_t i = 0; i < count; ++i) copy(src + i * sizeof(Item), dst + i * sizeof(Item));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    copy(src, dst);
    src += src_stride;
    dst += dst_stride;
  }
}

template <class Item>
void copy_items(const std::byte* src, std::int64_t src_stride, std::byte* dst, std::int64_t dst_stride,
                std::size_t count, bool swapped) {
  if (swapped) return copy_items<Item, true>(src, src_stride, dst, dst_stride, count);
  copy_items<Item, false>(src, src_stride, dst, dst_stride, count);
}

void copy_run(const std::byte* src, std::int64_t src_stride, std::byte* dst, std::int64_t dst_stride, std::size_t count,
              std::size_t item_bytes, bool swapped) {
  const auto item = static_cast<std::int64_t>(item_bytes);
  if (src_stride == item && dst_stride == item && !swapped) {
    std::memcpy(dst, src, count * item_bytes);
    return;
  }
  switch (item_bytes) {
    case 1:
      return copy_items<std::uint8_t>(src, src_stride, dst, dst_stride, count, swapped);
    case 2:
      return copy_items<std::uint16_t>(src, src_stride, dst, dst_stride, count, swapped);
    case 4:
      return copy_items<std::uint32_t>(src, src_stride, dst, dst_stride, count, swapped);
    default:
      return copy_items<std::uint64_t>(src, src_stride, dst, dst_stride, count, swapped);
  }
}

// Copies the tile `rows` x `columns` of an array to dense memory, rows first. The array is (nearly) dense along rows,
// so each of its cache lines is read once.
template <class Item, bool swapped>
void gather_tile(const std::byte* src, std::int64_t row_stride, std::int64_t column_stride, std::byte* dst,
                 std::size_t rows, std::size_t columns) {
  constexpr std::size_t line = 64 / sizeof(Item);
  const auto copy = [&](const std::byte* from, std::size_t row, std::size_t column) {
    Item item;
    std::memcpy(&item, from + static_cast<std::int64_t>(row) * row_stride, sizeof item);
    if constexpr (swapped) item = swap_bytes(item);
    std::memcpy(dst + (row * columns + column) * sizeof item, &item, sizeof item);
  };
  for (std::size_t first = 0; first < rows; first += line) {
    const std::size_t end = std::min(rows, first + line);
    const std::byte* from = src;
    for (std::size_t column = 0; column < columns; ++column, from += column_stride) {
      if (end - first == line) {
        for (std::size_t row = 0; row < line; ++row) copy(from, first + row, column);
      } else {
        for (std::size_t row = first; row < end; ++row) copy(from, row, column);
      }
    }
  }
}

template <class Item>
void gather_tile(const std::byte* src, std::int64_t row_stride, std::int64_t column_stride, std::byte* dst,
                 std::size_t rows, std::size_t columns, bool swapped) {
  if (swapped) return gather_tile<Item, true>(src, row_stride, column_stride, dst, rows, columns);
  gather_tile<Item, false>(src, row_stride, column_stride, dst, rows, columns);
}

void gather_tile(const std::byte* src, std::int64_t row_stride, std::int64_t column_stride, std::byte* dst,
                 std::size_t rows, std::size_t columns, std::size_t item_bytes, bool swapped) {
  switch (item_bytes) {
    case 1:
      return gather_tile<std::uint8_t>(src, row_stride, column_stride, dst, rows, columns, swapped);
    case 2:
      return gather_tile<std::uint16_t>(src, row_stride, column_stride, dst, rows, columns, swapped);
    case 4:
      return gather_tile<std::uint32_t>(src, row_stride, column_stride, dst, rows, columns, swapped);
    default:
      return gather_tile<std::uint64_t>(src, row_stride, column_stride, dst, rows, columns, swapped);
  }
}

// Packs elements of one byte each, low bits first. `unit` elements are whole bytes.
template <unsigned bits>
void pack(const std::byte* codes, std::byte* packed, std::size_t count) {
  constexpr std::size_t unit = bits == 6 ? 4 : 8 / bits;
  constexpr std::size_t unit_bytes = unit * bits / 8;
  constexpr unsigned mask = (1u << bits) - 1;
  for (std::size_t first = 0; first < count; first += unit) {
    unsigned together = 0;
    const std::size_t length = std::min(unit, count - first);
    for (std::size_t j = 0; j < length; ++j)
      together |= (std::to_integer<unsigned>(codes[first + j]) & mask) << (bits * j);
    for (std::size_t j = 0; j < (length * bits + 7) / 8; ++j) packed[j] = static_cast<std::byte>(together >> (8 * j));
    packed += unit_bytes;
  }
}

// Unpacks to one byte each, with zero high bits like ml_dtypes.
template <unsigned bits>
void unpack(const std::byte* packed, std::byte* codes, std::size_t count) {
  constexpr std::size_t unit = bits == 6 ? 4 : 8 / bits;
  constexpr std::size_t unit_bytes = unit * bits / 8;
  constexpr unsigned mask = (1u << bits) - 1;
  for (std::size_t first = 0; first < count; first += unit) {
    unsigned together = 0;
    const std::size_t length = std::min(unit, count - first);
    for (std::size_t j = 0; j < (length * bits + 7) / 8; ++j)
      together |= std::to_integer<unsigned>(packed[j]) << (8 * j);
    for (std::size_t j = 0; j < length; ++j) codes[first + j] = static_cast<std::byte>((together >> (bits * j)) & mask);
    packed += unit_bytes;
  }
}

using Repack = void (*)(const std::byte* src, std::byte* dst, std::size_t count);

Repack packing_of(DType dtype) {
  const int bits = bit_width(dtype);
  return bits == 2 ? pack<2> : bits == 4 ? pack<4> : pack<6>;
}

Repack unpacking_of(DType dtype) {
  const int bits = bit_width(dtype);
  return bits == 2 ? unpack<2> : bits == 4 ? unpack<4> : unpack<6>;
}

Result<void> cast_block(DType from, const std::byte* src, DType to, std::byte* dst, std::size_t count,
                        const CastOptions& options, CastReport* report) {
  const std::int64_t shape[1] = {static_cast<std::int64_t>(count)};
  const TensorView source{from, shape, {src, storage_bytes(from, count)}};
  const MutableTensorView target{to, shape, {dst, storage_bytes(to, count)}};
  return report != nullptr ? cast(source, target, options, *report) : cast(source, target, options);
}

Error interrupted() { return {.code = ErrorCode::internal, .message = "interrupted"}; }

// Calls `convert` for each piece; adds the start of the piece to the element that an error names.
template <class Convert>
Result<void> in_pieces(std::size_t count, std::size_t piece, bool (*stop)(), Convert&& convert) {
  for (std::size_t first = 0; first < count || first == 0; first += piece) {
    if (first != 0 && first % dense_elements == 0 && stop != nullptr && stop()) return interrupted();
    if (Result<void> done = convert(first, std::min(piece, count - first)); !done) {
      if (done.error().element) *done.error().element += first;
      return done;
    }
  }
  return {};
}

// Gather -> pack -> convert -> unpack -> scatter, each step on a block in the cache; unnecessary steps are left out.
class Block {
 public:
  Block(const StridedArray& src, const StridedArray& dst, std::size_t count)
      : src_(src),
        dst_(dst),
        gathered_(count * src.item_bytes()),
        packed_(src.one_per_byte ? count : 0),
        converted_(count * dst.item_bytes()),
        unpacked_(dst.one_per_byte ? count : 0) {}

  [[nodiscard]] std::byte* gathered() { return gathered_.data(); }

  // Converts the first `count` elements of gathered() to the destination's layout.
  Result<const std::byte*> convert(std::size_t count, const CastOptions& options, CastReport* report) {
    const std::byte* source = gathered_.data();
    if (src_.one_per_byte) {
      packing_of(src_.dtype)(gathered_.data(), packed_.data(), count);
      source = packed_.data();
    }
    if (Result<void> done = cast_block(src_.dtype, source, dst_.dtype, converted_.data(), count, options, report);
        !done) {
      return done.error();
    }
    if (!dst_.one_per_byte) return converted_.data();
    unpacking_of(dst_.dtype)(converted_.data(), unpacked_.data(), count);
    return unpacked_.data();
  }

 private:
  const StridedArray& src_;
  const StridedArray& dst_;
  std::vector<std::byte> gathered_, packed_, converted_, unpacked_;
};

// Converts element by element in C order, with any strides.
Result<void> cast_blocks(const StridedArray& src, const StridedArray& dst, std::size_t count,
                         const CastOptions& options, CastReport* report, bool (*stop)()) {
  Block block(src, dst, std::min(block_elements, count));
  Walk from(src);
  Walk to(dst);
  return in_pieces(count, block_elements, stop, [&](std::size_t, std::size_t piece) -> Result<void> {
    const auto src_item = static_cast<std::int64_t>(src.item_bytes());
    std::byte* fill = block.gathered();
    if (piece > 0) {
      from.advance(piece, [&](const std::byte* run, std::int64_t stride, std::size_t length) {
        copy_run(run, stride, fill, src_item, length, src.item_bytes(), src.swapped);
        fill += static_cast<std::int64_t>(length) * src_item;
      });
    }
    const Result<const std::byte*> converted = block.convert(piece, options, report);
    if (!converted) return converted.error();
    const std::byte* drain = *converted;
    const auto dst_item = static_cast<std::int64_t>(dst.item_bytes());
    if (piece > 0) {
      to.advance(piece, [&](std::byte* run, std::int64_t stride, std::size_t length) {
        copy_run(drain, dst_item, run, stride, length, dst.item_bytes(), dst.swapped);
        drain += static_cast<std::int64_t>(length) * dst_item;
      });
    }
    return {};
  });
}

// Returns an axis along which the source has several elements in a cache line, if its last axis has not.
std::optional<std::size_t> tile_axis(const StridedArray& src, std::size_t count) {
  if (src.shape.size() < 2 || count < block_elements) return std::nullopt;
  const std::size_t last = src.shape.size() - 1;
  std::optional<std::size_t> found;
  if (std::abs(src.strides[last]) < line_bytes) return std::nullopt;
  std::int64_t smallest = line_bytes;
  for (std::size_t axis = 0; axis < last; ++axis) {
    const std::int64_t stride = std::abs(src.strides[axis]);
    if (stride != 0 && stride < smallest) {
      found = axis;
      smallest = stride;
    }
  }
  return found;
}

// Converts tiles of `rows` and the last axis, so that cache lines of the source are read once.
Result<void> cast_tiles(const StridedArray& src, const StridedArray& dst, std::size_t rows, const CastOptions& options,
                        CastReport* report, bool (*stop)()) {
  const std::size_t last = src.shape.size() - 1;
  const auto row_count = static_cast<std::size_t>(src.shape[rows]);
  const auto column_count = static_cast<std::size_t>(src.shape[last]);
  const std::size_t tile_rows = std::min(row_count, block_elements / std::min(tile_edge, column_count));
  const std::size_t tile_columns = std::min(column_count, block_elements / tile_rows);
  Block block(src, dst, tile_rows * tile_columns);
  // The other axes, iterated over as an array of the tiles' planes.
  const auto at = [](const StridedArray& array, std::size_t axis, std::size_t index) {
    return array.strides[axis] * static_cast<std::int64_t>(index);
  };
  std::vector<std::int64_t> index(src.shape.size(), 0);
  std::size_t since_stop = 0;
  while (true) {
    const std::byte* from = src.data;
    std::byte* to = dst.data;
    for (std::size_t axis = 0; axis < last; ++axis) {
      from += index[axis] * src.strides[axis];
      to += index[axis] * dst.strides[axis];
    }
    for (std::size_t column = 0; column < column_count; column += tile_columns) {
      const std::size_t columns = std::min(tile_columns, column_count - column);
      for (std::size_t row = 0; row < row_count; row += tile_rows) {
        const std::size_t height = std::min(tile_rows, row_count - row);
        gather_tile(from + at(src, rows, row) + at(src, last, column), src.strides[rows], src.strides[last],
                    block.gathered(), height, columns, src.item_bytes(), src.swapped);
        const Result<const std::byte*> converted = block.convert(height * columns, options, report);
        if (!converted) return converted.error();
        const std::byte* drain = *converted;
        for (std::size_t i = 0; i < height; ++i, drain += columns * dst.item_bytes()) {
          copy_run(drain, static_cast<std::int64_t>(dst.item_bytes()),
                   to + at(dst, rows, row + i) + at(dst, last, column), dst.strides[last], columns, dst.item_bytes(),
                   dst.swapped);
        }
        since_stop += height * columns;
        if (stop != nullptr && since_stop >= dense_elements) {
          since_stop = 0;
          if (stop()) return interrupted();
        }
      }
    }
    std::size_t axis = last;
    do {
      if (axis == 0) return {};
      --axis;
      if (axis == rows) continue;
      if (++index[axis] < src.shape[axis]) break;
      index[axis] = 0;
    } while (true);
  }
}

}  // namespace

std::size_t StridedArray::item_bytes() const noexcept {
  return std::max<std::size_t>(1, static_cast<std::size_t>(bit_width(dtype)) / 8);
}

bool StridedArray::is_dense() const noexcept {
  if (one_per_byte || swapped) return false;
  auto expected = static_cast<std::int64_t>(item_bytes());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1 && strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

Result<void> cast_strided(const StridedArray& src, const StridedArray& dst, const CastOptions& options,
                          CastReport* report, bool (*stop)()) {
  const Result<std::size_t> counted = element_count(src.shape);
  if (!counted) return counted.error();
  const std::size_t count = *counted;
  if (src.is_dense() && dst.is_dense()) {
    return in_pieces(count, dense_elements, stop, [&](std::size_t first, std::size_t piece) {
      return cast_block(src.dtype, src.data + storage_bytes(src.dtype, first), dst.dtype,
                        dst.data + storage_bytes(dst.dtype, first), piece, options, report);
    });
  }

  // Axes of one element are left out, so that the last axis has the longest runs.
  std::vector<std::int64_t> shape, src_strides, dst_strides;
  for (std::size_t axis = 0; axis < src.shape.size(); ++axis) {
    if (src.shape[axis] == 1) continue;
    shape.push_back(src.shape[axis]);
    src_strides.push_back(src.strides[axis]);
    dst_strides.push_back(dst.strides[axis]);
  }
  StridedArray from = src;
  StridedArray to = dst;
  from.shape = to.shape = shape;
  from.strides = src_strides;
  to.strides = dst_strides;

  if (const std::optional<std::size_t> rows = tile_axis(from, count)) {
    Result<void> done = cast_tiles(from, to, *rows, options, report, stop);
    // Tiles are not in C order, so another error may come first.
    if (done || !done.error().element) return done;
  }
  return cast_blocks(from, to, count, options, report, stop);
}

}  // namespace tensorcast::python
