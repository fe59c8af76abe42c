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
#include "cast/parallel.hpp"
#include "cast/tiles.hpp"
#include "cast/tuning.hpp"
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
  with_item(item_bytes, [&](auto one) { copy_items<decltype(one)>(src, src_stride, dst, dst_stride, count, swapped); });
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

// Converts tiles of the axis `rows` and the last one, so that cache lines of the source are read once. The columns of a
// tile, with all rows, are a band; bands are converted on all threads.
class Tiles {
 public:
  Tiles(const StridedArray& src, const StridedArray& dst, std::size_t count, std::size_t rows, const Work& work)
      : src_(src), dst_(dst), work_(work), rows_(rows), last_(src.shape.size() - 1), count_(count) {
    const auto is_run = [](const StridedArray& array, std::size_t axis) {
      return !array.one_per_byte && !array.is_packed() && !array.swapped &&
             array.strides[axis] == static_cast<std::int64_t>(array.item_bytes());
    };
    transposes_ = is_run(src, rows) && is_run(dst, last_);
    row_count_ = static_cast<std::size_t>(src.shape[rows]);
    column_count_ = static_cast<std::size_t>(src.shape[last_]);
    const std::size_t edge = transposes_ ? tile_edge / 2 : tile_edge;  // long runs of the source are read faster
    tile_rows_ = std::min(row_count_, block_elements / std::min(edge, column_count_));
    tile_columns_ = std::min(column_count_, block_elements / tile_rows_);
    bands_of_plane_ = (column_count_ + tile_columns_ - 1) / tile_columns_;
    // Packed elements of different bands share bytes; a report's sums depend on their order.
    if (dst.is_packed() || work.report != nullptr || count * src.item_bytes() < threads_min_bytes)
      execution_.threads = 1;
  }

  Result<void> run() {
    const std::size_t band_elements = row_count_ * tile_columns_;
    const std::size_t bands = count_ / (row_count_ * column_count_) * bands_of_plane_;
    const std::size_t bands_of_task = std::max<std::size_t>(1, task_elements / band_elements);
    const std::size_t tasks = (bands + bands_of_task - 1) / bands_of_task;
    const std::size_t tasks_at_once = std::max<std::size_t>(1, dense_elements / (band_elements * bands_of_task));
    for (std::size_t first = 0; first < tasks; first += tasks_at_once) {
      if (first != 0 && work_.stop != nullptr && work_.stop()) return interrupted();
      std::vector<Result<void>> done(std::min(tasks_at_once, tasks - first));
      run_tasks(done.size(), execution_, [&](std::size_t task) {
        const std::size_t begin = (first + task) * bands_of_task;
        done[task] = convert_bands(begin, std::min(bands, begin + bands_of_task));
      });
      for (Result<void>& each : done) TRY(std::move(each));
    }
    if (dst_.is_packed()) clear_padding(dst_.dtype, dst_.data, count_);
    return {};
  }

 private:
  Result<void> convert_bands(std::size_t begin, std::size_t end) const {
    Block block(src_, dst_, tile_rows_ * tile_columns_, bit_width(dst_.dtype) < 8);
    for (std::size_t band = begin; band < end; ++band) TRY(convert_band(block, band));
    return {};
  }

  static std::int64_t at(const StridedArray& array, std::size_t axis, std::size_t index) {
    return array.strides[axis] * static_cast<std::int64_t>(index);
  }

  Result<void> convert_band(Block& block, std::size_t band) const {
    const std::size_t column = band % bands_of_plane_ * tile_columns_;
    const std::size_t columns = std::min(tile_columns_, column_count_ - column);
    const std::byte* from = src_.data + at(src_, last_, column);
    std::int64_t to = at(dst_, last_, column);  // bytes from dst.data; elements if it is packed
    std::size_t plane = band / bands_of_plane_;
    for (std::size_t axis = last_; axis-- > 0;) {
      if (axis == rows_) continue;
      const auto length = static_cast<std::size_t>(src_.shape[axis]);
      from += at(src_, axis, plane % length);
      to += at(dst_, axis, plane % length);
      plane /= length;
    }
    for (std::size_t row = 0; row < row_count_; row += tile_rows_) {
      const std::size_t height = std::min(tile_rows_, row_count_ - row);
      const std::byte* const tile = from + at(src_, rows_, row);
      TRY(transposes_ ? transpose(block, tile, to + at(dst_, rows_, row), height, columns)
                      : convert_tile(block, tile, to + at(dst_, rows_, row), height, columns));
    }
    return {};
  }

  // Any strides, byte order and packing.
  Result<void> convert_tile(Block& block, const std::byte* from, std::int64_t to, std::size_t height,
                            std::size_t columns) const {
    gather_tile(from, src_.strides[rows_], src_.strides[last_], block.gathered(), height, columns, src_.item_bytes(),
                src_.swapped);
    TRY(block.convert(block.gathered(), block.converted(), height * columns, 0, work_));
    const std::byte* drain = block.items(height * columns);
    for (std::size_t i = 0; i < height; ++i, drain += columns * dst_.item_bytes()) {
      const std::int64_t place = to + at(dst_, rows_, i);
      if (dst_.is_packed()) {
        packing_of(dst_.dtype).pack_at(drain, dst_.data, static_cast<std::size_t>(place), columns);
      } else {
        copy_run(drain, static_cast<std::int64_t>(dst_.item_bytes()), dst_.data + place, dst_.strides[last_], columns,
                 dst_.item_bytes(), dst_.swapped);
      }
    }
    return {};
  }

  // The source is dense along `rows`, the target along the last axis: runs are copied, and the narrower elements
  // transposed in registers.
  Result<void> transpose(Block& block, const std::byte* from, std::int64_t to, std::size_t height,
                         std::size_t columns) const {
    const std::size_t src_item = src_.item_bytes(), dst_item = dst_.item_bytes();
    for (std::size_t column = 0; column < columns; ++column) {
      std::memcpy(block.gathered() + column * height * src_item, from + at(src_, last_, column), height * src_item);
    }
    if (dst_item <= src_item) {
      TRY(block.convert(block.gathered(), block.converted(), height * columns, 0, work_));
      transpose_tile(block.converted(), height * dst_item, dst_.data + to, dst_.strides[rows_], columns, height,
                     dst_item);
      return {};
    }
    // The room of the results takes the turned source, which is narrower.
    transpose_tile(block.gathered(), height * src_item, block.converted(),
                   static_cast<std::int64_t>(columns * src_item), columns, height, src_item);
    std::memcpy(block.gathered(), block.converted(), height * columns * src_item);
    TRY(block.convert(block.gathered(), block.converted(), height * columns, 0, work_));
    for (std::size_t i = 0; i < height; ++i) {
      std::memcpy(dst_.data + to + at(dst_, rows_, i), block.converted() + i * columns * dst_item, columns * dst_item);
    }
    return {};
  }

  const StridedArray& src_;
  const StridedArray& dst_;
  const Work& work_;
  Execution execution_ = work_.execution;  // of one thread where bands depend on each other
  std::size_t rows_, last_, count_;
  std::size_t row_count_ = 0, column_count_ = 0, tile_rows_ = 0, tile_columns_ = 0, bands_of_plane_ = 0;
  bool transposes_ = false;
};

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
    Result<void> done = Tiles(from, to, count, *rows, work).run();
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
