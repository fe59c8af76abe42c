// SPDX-License-Identifier: Apache-2.0
// Casts between arrays of any strides, byte order and packing, block by block.
#include "tensorcast/strided.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "cast/conversion.hpp"
#include "cast/overlap.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// Elements per block of a strided conversion: source, packed and converted blocks fit the second-level cache.
constexpr std::size_t block_elements = 16384;
// Elements per call of a dense conversion, so that Ctrl-C is heard a few times a second. A multiple of 8.
constexpr std::size_t dense_elements = std::size_t{1} << 24;
// Maximum rows and columns of a tile of a transposed source.
constexpr std::size_t tile_edge = 128;
constexpr std::int64_t line_bytes = 64;

// A view as the loops below take it: without axes of one element, with strides, of src or dst.
struct StridedArray {
  std::byte* data = nullptr;
  Shape shape = {};
  Shape strides = {};  // bytes; elements if it is packed
  DType dtype = DType::undefined;
  bool one_per_byte = false;
  bool swapped = false;

  // Several elements share a byte. They are in C order, so that blocks of them are converted where they are.
  [[nodiscard]] bool is_packed() const noexcept { return bit_width(dtype) < 8 && !one_per_byte; }
  [[nodiscard]] std::size_t item_bytes() const noexcept {
    return std::max<std::size_t>(1, static_cast<std::size_t>(bit_width(dtype)) / 8);
  }
};

// What the caller asked for.
struct Work {
  const CastOptions& options;
  const Execution& execution;
  CastReport* report = nullptr;
  bool (*stop)() = nullptr;
};

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

// Packs elements of one byte each as elements [first, first + count) of `packed`, and changes no other ones.
template <unsigned bits>
void pack_at(const std::byte* codes, std::byte* packed, std::size_t first, std::size_t count) {
  constexpr std::size_t unit = bits == 6 ? 4 : 8 / bits;
  constexpr unsigned mask = (1u << bits) - 1;
  const auto put = [&](std::size_t index, std::byte code) {
    const std::size_t bit = index * bits % 8;
    std::byte* const at = packed + index * bits / 8;
    const unsigned place = mask << bit, value = (std::to_integer<unsigned>(code) & mask) << bit;
    at[0] = (at[0] & ~static_cast<std::byte>(place)) | static_cast<std::byte>(value);
    if (bit + bits > 8) at[1] = (at[1] & ~static_cast<std::byte>(place >> 8)) | static_cast<std::byte>(value >> 8);
  };
  const std::size_t end = first + count;
  for (; first < end && first % unit != 0; ++first) put(first, *codes++);
  const std::size_t whole = (end - first) / unit * unit;
  pack<bits>(codes, packed + first / unit * (unit * bits / 8), whole);
  for (codes += whole, first += whole; first < end; ++first) put(first, *codes++);
}

// Writes zeros to the bits of the last byte that no element has.
void clear_padding(DType dtype, std::byte* packed, std::size_t count) {
  const std::size_t bits = count % 8 * static_cast<std::size_t>(bit_width(dtype)) % 8;
  if (bits != 0) packed[storage_bytes(dtype, count) - 1] &= static_cast<std::byte>((1u << bits) - 1);
}

// The functions for types of one width.
struct Packing {
  void (*pack)(const std::byte* codes, std::byte* packed, std::size_t count);
  void (*pack_at)(const std::byte* codes, std::byte* packed, std::size_t first, std::size_t count);
  void (*unpack)(const std::byte* packed, std::byte* codes, std::size_t count);
};

template <unsigned bits>
constexpr Packing packing = {pack<bits>, pack_at<bits>, unpack<bits>};

// Precondition: `dtype` has fewer than 8 bits.
const Packing& packing_of(DType dtype) {
  const int bits = bit_width(dtype);
  return bits == 2 ? packing<2> : bits == 4 ? packing<4> : packing<6>;
}

// `first`: the place of the block's first element in its tensor.
Result<void> cast_block(DType from, const std::byte* src, DType to, std::byte* dst, std::size_t count,
                        std::uint64_t first, const Work& work) {
  const std::int64_t shape[1] = {static_cast<std::int64_t>(count)};
  const TensorView source{from, shape, {src, storage_bytes(from, count)}};
  const MutableTensorView target{to, shape, {dst, storage_bytes(to, count)}};
  Execution execution = work.execution;
  execution.first_element += first;
  return work.report != nullptr ? cast(source, target, work.options, *work.report, execution)
                                : cast(source, target, work.options, execution);
}

Error interrupted() { return {.code = ErrorCode::cancelled, .message = "interrupted"}; }

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
  // `codes`: results under 8 bits are wanted one a byte.
  Block(const StridedArray& src, const StridedArray& dst, std::size_t count, bool codes)
      : src_(src),
        dst_(dst),
        gathered_(src.is_packed() ? 0 : count * src.item_bytes()),
        packed_(src.one_per_byte ? count : 0),
        converted_(count * dst.item_bytes()),
        unpacked_(codes ? count : 0) {}

  [[nodiscard]] std::byte* gathered() { return gathered_.data(); }

  [[nodiscard]] std::byte* converted() { return converted_.data(); }

  // Converts `count` elements, which have bytes of their own or are packed as in the source, to dense ones.
  Result<void> convert(const std::byte* src, std::byte* dst, std::size_t count, std::uint64_t first, const Work& work) {
    if (src_.one_per_byte) {
      packing_of(src_.dtype).pack(src, packed_.data(), count);
      src = packed_.data();
    }
    return cast_block(src_.dtype, src, dst_.dtype, dst, count, first, work);
  }

  // The first `count` elements of converted(), each in bytes of its own if `codes` was set.
  [[nodiscard]] const std::byte* items(std::size_t count) {
    if (unpacked_.empty()) return converted_.data();
    packing_of(dst_.dtype).unpack(converted_.data(), unpacked_.data(), count);
    return unpacked_.data();
  }

 private:
  const StridedArray& src_;
  const StridedArray& dst_;
  std::vector<std::byte> gathered_, packed_, converted_, unpacked_;
};

// Converts element by element in C order, with any strides.
Result<void> cast_blocks(const StridedArray& src, const StridedArray& dst, std::size_t count, const Work& work) {
  Block block(src, dst, std::min(block_elements, count), dst.one_per_byte);
  Walk from(src);
  Walk to(dst);
  const auto src_item = static_cast<std::int64_t>(src.item_bytes());
  const auto dst_item = static_cast<std::int64_t>(dst.item_bytes());
  return in_pieces(count, block_elements, work.stop, [&](std::size_t first, std::size_t piece) -> Result<void> {
    const std::byte* source = src.data + storage_bytes(src.dtype, first);
    if (!src.is_packed()) {
      source = block.gathered();
      std::byte* fill = block.gathered();
      from.advance(piece, [&](const std::byte* run, std::int64_t stride, std::size_t length) {
        copy_run(run, stride, fill, src_item, length, src.item_bytes(), src.swapped);
        fill += static_cast<std::int64_t>(length) * src_item;
      });
    }
    if (dst.is_packed()) {
      return block.convert(source, dst.data + storage_bytes(dst.dtype, first), piece, first, work);
    }
    TRY(block.convert(source, block.converted(), piece, first, work));
    const std::byte* drain = block.items(piece);
    to.advance(piece, [&](std::byte* run, std::int64_t stride, std::size_t length) {
      copy_run(drain, dst_item, run, stride, length, dst.item_bytes(), dst.swapped);
      drain += static_cast<std::int64_t>(length) * dst_item;
    });
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
Result<void> cast_tiles(const StridedArray& src, const StridedArray& dst, std::size_t count, std::size_t rows,
                        const Work& work) {
  const std::size_t last = src.shape.size() - 1;
  const auto row_count = static_cast<std::size_t>(src.shape[rows]);
  const auto column_count = static_cast<std::size_t>(src.shape[last]);
  const std::size_t tile_rows = std::min(row_count, block_elements / std::min(tile_edge, column_count));
  const std::size_t tile_columns = std::min(column_count, block_elements / tile_rows);
  Block block(src, dst, tile_rows * tile_columns, bit_width(dst.dtype) < 8);
  // The other axes, iterated over as an array of the tiles' planes.
  const auto at = [](const StridedArray& array, std::size_t axis, std::size_t index) {
    return array.strides[axis] * static_cast<std::int64_t>(index);
  };
  std::vector<std::int64_t> index(src.shape.size(), 0);
  std::size_t since_stop = 0;
  while (true) {
    const std::byte* from = src.data;
    std::int64_t to = 0;  // bytes from dst.data; elements if it is packed
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
        TRY(block.convert(block.gathered(), block.converted(), height * columns, 0, work));
        const std::byte* drain = block.items(height * columns);
        for (std::size_t i = 0; i < height; ++i, drain += columns * dst.item_bytes()) {
          const std::int64_t place = to + at(dst, rows, row + i) + at(dst, last, column);
          if (dst.is_packed()) {
            packing_of(dst.dtype).pack_at(drain, dst.data, static_cast<std::size_t>(place), columns);
          } else {
            copy_run(drain, static_cast<std::int64_t>(dst.item_bytes()), dst.data + place, dst.strides[last], columns,
                     dst.item_bytes(), dst.swapped);
          }
        }
        since_stop += height * columns;
        if (work.stop != nullptr && since_stop >= dense_elements) {
          since_stop = 0;
          if (work.stop()) return interrupted();
        }
      }
    }
    std::size_t axis = last;
    do {
      if (axis == 0) {
        if (dst.is_packed()) clear_padding(dst.dtype, dst.data, count);
        return {};
      }
      --axis;
      if (axis == rows) continue;
      if (++index[axis] < src.shape[axis]) break;
      index[axis] = 0;
    } while (true);
  }
}

// Bytes of an element of an array that has strides; 1 for packed ones.
std::int64_t item_of(DType dtype) { return std::max(1, bit_width(dtype) / 8); }

// Reports whether the elements are in C order without gaps, as cast() takes them. `dtype` is castable.
bool is_dense(const StridedView& view) {
  if (view.one_per_byte || (view.swapped && bit_width(view.dtype) > 8)) return false;
  if (view.strides.empty()) return true;
  std::int64_t expected = item_of(view.dtype);
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    if (view.shape[axis] == 0) return true;
    if (view.shape[axis] != 1 && view.strides[axis] != expected) return false;
    expected *= view.shape[axis];
  }
  return true;
}

Result<void> check_strides(const char* which, const StridedView& view, std::size_t count) {
  if (!view.strides.empty() && view.strides.size() != view.shape.size()) {
    return invalid(formatted("the {} has {} strides for {} dimensions", which, view.strides.size(), view.shape.size()));
  }
  if (view.data == nullptr && count != 0) return invalid(formatted("the {} buffer is null", which));
  if (view.one_per_byte && bit_width(view.dtype) >= 8) {
    return invalid(formatted("one_per_byte is for types under 8 bits, and the {} is {}", which, name(view.dtype)));
  }
  if (bit_width(view.dtype) < 8 && !view.one_per_byte && !is_dense(view)) {
    return invalid(formatted("packed elements of {} have no strides", name(view.dtype)));
  }
  return {};
}

// Leaves axes of one element out, so that the last axis has the longest runs.
StridedArray squeezed(const StridedView& view) {
  std::vector<std::int64_t> shape, strides;
  std::vector<std::int64_t> dense(view.shape.size());
  std::int64_t item = item_of(view.dtype);
  for (std::size_t axis = view.shape.size(); axis-- > 0; item *= view.shape[axis]) dense[axis] = item;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    if (view.shape[axis] == 1) continue;
    shape.push_back(view.shape[axis]);
    strides.push_back(view.strides.empty() ? dense[axis] : view.strides[axis]);
  }
  return {.data = const_cast<std::byte*>(view.data),
          .shape = shape,
          .strides = strides,
          .dtype = view.dtype,
          .one_per_byte = view.one_per_byte,
          .swapped = view.swapped};
}

// Reports whether each element of `dst` begins where that of `src` with the same indices does, and ends no later.
bool is_in_place(const StridedArray& src, const StridedArray& dst) {
  return src.data == dst.data && src.strides == dst.strides && !src.is_packed() && !dst.is_packed() &&
         dst.item_bytes() <= src.item_bytes();
}

Result<Footprint> footprint_of(const StridedArray& array, std::size_t count) {
  if (array.is_packed()) return footprint(array.data, {}, {}, storage_bytes(array.dtype, count));
  return footprint(array.data, array.shape, array.strides, array.item_bytes());
}

Result<void> check_overlap(const StridedArray& src, const StridedArray& dst, std::size_t count) {
  const Footprint read = TRY(footprint_of(src, count)), written = TRY(footprint_of(dst, count));
  if (may_overlap_itself(written)) {
    return invalid("elements of the target share memory", "give each element bytes of its own");
  }
  if (may_overlap(read, written) && !is_in_place(src, dst)) {
    return invalid("source and target overlap", "use the same address and strides for both, or disjoint buffers");
  }
  return {};
}

Result<void> cast_dense(const Conversion& whole, const Work& work) {
  TRY(check(whole, work.options));  // overlap concerns all pieces together
  // In place, a piece of the narrower target may be written where a part of its source is.
  const bool is_one = work.stop == nullptr || (whole.is_in_place() && bit_width(whole.from) != bit_width(whole.to));
  return in_pieces(whole.count, is_one ? std::max<std::size_t>(1, whole.count) : dense_elements, work.stop,
                   [&](std::size_t first, std::size_t elements) {
                     const Conversion piece = whole.slice(first, elements);
                     return cast_block(piece.from, piece.src, piece.to, piece.dst, piece.count, first, work);
                   });
}

Result<void> cast_views(const StridedView& src, const MutableStridedView& dst, const Work& work) {
  if (src.shape != dst.shape) return invalid("source and target have different shapes");
  const std::size_t count = TRY(element_count(src.shape));
  TRY(check_numeric(src.dtype, dst.dtype));
  TRY(check_strides("source", src, count));
  TRY(check_strides("target", dst, count));
  if (count == 0 || (is_dense(src) && is_dense(dst))) {
    return cast_dense({src.data, src.dtype, dst.data, dst.dtype, count}, work);
  }
  const StridedArray from = squeezed(src), to = squeezed(dst);
  TRY(check_overlap(from, to, count));
  // Stochastic rounding depends on places in C order, which tiles are not in.
  const bool may_tile = work.options.rounding != Rounding::stochastic;
  const std::optional<std::size_t> rows = may_tile ? tile_axis(from, count) : std::nullopt;
  if (rows && from.data != to.data) {
    Result<void> done = cast_tiles(from, to, count, *rows, work);
    // Tiles are not in C order, so another error may come first.
    if (done || !done.error().element) return done;
    if (work.report != nullptr) *work.report = {};
  }
  return cast_blocks(from, to, count, work);
}

// Adds to the report only if all goes well.
Result<void> cast_guarded(const StridedView& src, const MutableStridedView& dst, const Work& work) {
  CastReport added;
  Work inner = work;
  if (work.report != nullptr) inner.report = &added;
  Result<void> done = guarded([&] { return cast_views(src, dst, inner); });
  if (done && work.report != nullptr) work.report->merge(added);
  return done;
}

}  // namespace

Result<void> cast_strided(const StridedView& src, const MutableStridedView& dst, const CastOptions& options,
                          const Execution& execution, bool (*stop)()) {
  return cast_guarded(src, dst, {options, execution, nullptr, stop});
}

Result<void> cast_strided(const StridedView& src, const MutableStridedView& dst, const CastOptions& options,
                          CastReport& report, const Execution& execution, bool (*stop)()) {
  return cast_guarded(src, dst, {options, execution, &report, stop});
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
