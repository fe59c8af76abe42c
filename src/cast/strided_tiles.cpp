// SPDX-License-Identifier: Apache-2.0
#include "cast/strided_tiles.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cast/prepared.hpp"
#include "cast/strided_block.hpp"
#include "cast/tiles.hpp"
#include "cast/tuning.hpp"
#include "cast/walk.hpp"
#include "dtype/platform.hpp"
#include "dtype/prefetch.hpp"
#include "dtype/try.hpp"
#include "kernels/ops.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

#if TENSORCAST_HAS_THREADS
using Mutex = std::mutex;
#else
struct Mutex {
  void lock() noexcept {}
  void unlock() noexcept {}
};
#endif

// Maximum rows and columns of a tile of any strides.
constexpr std::size_t tile_edge = 128;
constexpr std::size_t line_bytes = 64;
// Runs so far apart share a set of the first-level cache.
constexpr std::int64_t one_set_pitch = 4096;
// Of a run of a transposed source: with longer ones, up to a page, CPUs fetch lines that nobody reads.
constexpr std::size_t run_bytes = 256;
// About, of a row of the target that is written at once, and of a tile before and after its conversion together, which
// the second-level cache has beside what is fetched.
constexpr std::size_t target_row_bytes = 1024;
constexpr std::size_t tile_bytes = std::size_t{192} << 10;
// The least runs that are transposed at once, and how many are fetched before: each is on a page that no CPU foresees.
// Runs that are a power of two apart share sets of the second-level cache, which have room for 64. Those that begin
// within a line have more lines to wait for, which shows where few are transposed at once.
constexpr std::size_t least_runs_at_once = 16;
constexpr std::size_t runs_ahead = 48, split_runs_ahead = 96;
// Of an axis whose elements are in turns in memory, as the channels of an image; and of a tile of it, of
// the wider type.
constexpr std::size_t short_axis = 63;
constexpr std::size_t short_tile_bytes = 32768;
// Fewer are not worth a tile.
constexpr std::size_t least_turns = 512;

// Converts tiles of the axis `rows` and the last one, so that cache lines of the source are read once. The columns of a
// tile, with all rows, are a band. Tiles are converted band by band, on all threads.
class Tiles {
 public:
  Tiles(const StridedArray& src, const StridedArray& dst, std::size_t count, std::size_t rows, const Work& work)
      : src_(src), dst_(dst), work_(work), rows_(rows), last_(src.shape.size() - 1), count_(count) {
    row_count_ = static_cast<std::size_t>(src.shape[rows]);
    column_count_ = static_cast<std::size_t>(src.shape[last_]);
    transposes_ = is_run(src, rows) && is_run(dst, last_);
    if (transposes_) {
      choose_runs();
    } else {
      tile_rows_ = std::min(row_count_, block_elements / std::min(tile_edge, column_count_));
      tile_columns_ = std::min(column_count_, block_elements / tile_rows_);
    }
    // A report's sums depend on their order.
    if (work.report != nullptr || count * src.item_bytes() < threads_min_bytes) execution_.threads = 1;
    if (transposes_) choose_stores();
    joins_rows_ = tile_columns_ == column_count_ && missing_columns_ == 0 && rows_follow();
    bands_of_plane_ = (missing_columns_ + column_count_ + tile_columns_ - 1) / tile_columns_;
    tiles_of_band_ = (missing_rows_ + row_count_ + tile_rows_ - 1) / tile_rows_;
  }

  Result<void> run() {
    const std::size_t tiles = count_ / (row_count_ * column_count_) * bands_of_plane_ * tiles_of_band_;
    TRY(in_units(tiles, tile_rows_ * tile_columns_, execution_, work_.stop,
                 [&](std::size_t begin, std::size_t end) { return convert_tiles(begin, end); }));
    if (dst_.is_packed()) clear_padding(dst_.dtype, dst_.data, count_);
    return {};
  }

 private:
  Result<void> convert_tiles(std::size_t begin, std::size_t end) {
    std::unique_ptr<Block> block = free_block();
    for (std::size_t tile = begin; tile < end; ++tile) {
      TRY(convert_rows(*block, tile / tiles_of_band_, (tile % tiles_of_band_ + 1) * tile_rows_));
    }
    if (bypasses_cache_) ops_.stream_fence();  // other threads may read the target after this
    const std::lock_guard lock(blocks_mutex_);
    blocks_.push_back(std::move(block));
    return {};
  }

  // A block that an earlier task used, or a new one: the system clears its pages, which takes as long as to fill them.
  std::unique_ptr<Block> free_block() {
    {
      const std::lock_guard lock(blocks_mutex_);
      if (!blocks_.empty()) {
        std::unique_ptr<Block> block = std::move(blocks_.back());
        blocks_.pop_back();
        return block;
      }
    }
    return std::make_unique<Block>(src_, dst_, tile_rows_ * (tile_columns_ + most_before_), dst_.one_per_byte);
  }

  // Neighbours along `axis` are neighbours in memory, as they are or packed.
  static bool is_run(const StridedArray& array, std::size_t axis) {
    const std::size_t item = array.is_packed() ? 1 : array.item_bytes();  // strides of packed ones are elements
    return !array.swapped && array.strides[axis] == static_cast<std::int64_t>(item);
  }

  // Reports whether rows of the target, or planes of rows that follow each other, begin with a byte.
  [[nodiscard]] bool has_whole_bytes() const {
    const std::size_t elements = column_count_ * (column_count_ <= short_axis && rows_follow() ? row_count_ : 1);
    return !dst_.is_packed() || elements * dst_bits() % 8 == 0;
  }

  [[nodiscard]] std::size_t dst_bits() const { return static_cast<std::size_t>(bit_width(dst_.dtype)); }

  // Reports whether a row of the target begins where the one before ends.
  [[nodiscard]] bool rows_follow() const { return dst_.strides[rows_] == dst_.strides[last_] * src_.shape[last_]; }

  // Tiles of a transposed source. Their rows are whole lines of the target, and of the source an odd number of those,
  // so that rows in the cache are in many of its sets.
  void choose_runs() {
    const auto tile_length = [](std::size_t all, std::size_t most) {
      return std::min(all, most / line_bytes * line_bytes);
    };
    const std::size_t elements = short_tile_bytes / std::max(src_.item_bytes(), dst_.item_bytes());
    is_short_ = true;
    if (column_count_ <= short_axis && rows_follow()) {
      tile_columns_ = column_count_;
      tile_rows_ = tile_length(row_count_, elements / column_count_);
      return;
    }
    if (row_count_ <= short_axis && src_.strides[last_] == src_.strides[rows_] * src_.shape[rows_]) {
      tile_rows_ = row_count_;
      tile_columns_ = tile_length(column_count_, elements / row_count_);
      converts_first_ = dst_.item_bytes() < src_.item_bytes() && bit_width(dst_.dtype) >= 8;
      return;
    }
    is_short_ = false;
    const std::size_t src_item = src_.item_bytes(), dst_item = dst_.item_bytes();
    tile_rows_ = std::min(row_count_, run_bytes / src_item);
    const std::size_t unit = line_bytes / std::min(src_item, dst_item);
    const std::size_t wanted = std::min(target_row_bytes / dst_item, tile_bytes / (tile_rows_ * (src_item + dst_item)));
    tile_columns_ = std::min(column_count_, (wanted / unit | 1) * unit);
    // Runs that begin within a line, as memory of malloc does, have parts of one more than others: the first tile ends
    // where a line does.
    const bool are_whole_lines = src_.strides[last_] % static_cast<std::int64_t>(line_bytes) == 0;
    if (!are_whole_lines && src_item >= 4) runs_ahead_ = split_runs_ahead;
    if (are_whole_lines) choose_kernel();
    if (tile_rows_ == row_count_ || !are_whole_lines) return;
    const std::size_t to_line = (0 - reinterpret_cast<std::uintptr_t>(src_.data)) % line_bytes / src_item;
    missing_rows_ = (tile_rows_ - to_line) % tile_rows_;
  }

  // Whether runs are converted where they are, and the narrower type is transposed. Narrow registers read each line
  // twice: by then it has left the first-level cache, of which runs that are a power of two apart share one set. Runs
  // of wider elements are too short for a call each; of narrower ones, the time is the same.
  void choose_kernel() {
    if (static_cast<std::size_t>(ops_.register_bytes) < line_bytes || src_.item_bytes() != 4 ||
        dst_.item_bytes() >= 4 || bit_width(dst_.dtype) < 8 || work_.report != nullptr)
      return;
    // Targets of a byte have 64 runs at once, which leave that set, too.
    if (dst_.item_bytes() == 1 && src_.strides[last_] % one_set_pitch == 0) return;
    const Result<Prepared> prepared = prepare(src_.dtype, dst_.dtype, work_.options);
    if (!prepared || !prepared->needs_one_kernel()) return;  // what converts tiles says what is wrong
    prepared_ = *prepared;
    converts_first_ = true;
  }

  void choose_stores() {
    if (!is_dense(dst_) || !has_whole_bytes()) return;
    const Pages pages = pages_of(dst_.data, dst_bytes(count_), true);
    bypasses_cache_ = stores_bypass_cache(active_target(), src_.dtype, dst_.dtype, count_, pages, true);
    if (!bypasses_cache_ || is_short_ || dst_.is_packed()) return;
    if (tile_columns_ == column_count_ && rows_follow()) return;  // a tile has lines of its own but for its ends
    // The first band ends where a line of the target does. If that is not so in all rows, each writes whole lines,
    // which end before the tile does, and the next tile begins that much earlier.
    const std::size_t item = dst_.item_bytes();
    const std::size_t to_line = (0 - reinterpret_cast<std::uintptr_t>(dst_.data)) % line_bytes / item;
    missing_columns_ = (tile_columns_ - to_line % tile_columns_) % tile_columns_;
    const bool all_end_there =
        column_count_ * item % line_bytes == 0 && reinterpret_cast<std::uintptr_t>(dst_.data) % item == 0;
    most_before_ = all_end_there ? 0 : line_bytes / item;
  }

  [[nodiscard]] std::size_t dst_bytes(std::size_t elements) const {
    return dst_.is_packed() ? storage_bytes(dst_.dtype, elements) : elements * dst_.item_bytes();
  }

  static std::int64_t at(const StridedArray& array, std::size_t axis, std::size_t index) {
    return array.strides[axis] * static_cast<std::int64_t>(index);
  }

  // Converts the tile of a band that would end with `tile_end` if no rows of the first one were missing.
  Result<void> convert_rows(Block& block, std::size_t band, std::size_t tile_end) const {
    const std::size_t row = std::max(tile_end - tile_rows_, missing_rows_) - missing_rows_;
    const std::size_t end = (band % bands_of_plane_ + 1) * tile_columns_ - missing_columns_;
    const std::size_t column = end - std::min(end, tile_columns_);
    const std::size_t columns = std::min(end, column_count_) - column;
    const std::byte* from = src_.data + at(src_, last_, column) + at(src_, rows_, row);
    // Bytes from dst.data; elements if it is packed.
    std::int64_t to = at(dst_, last_, column) + at(dst_, rows_, row);
    std::size_t plane = band / bands_of_plane_;
    for (std::size_t axis = last_; axis-- > 0;) {
      if (axis == rows_) continue;
      const auto length = static_cast<std::size_t>(src_.shape[axis]);
      from += at(src_, axis, plane % length);
      to += at(dst_, axis, plane % length);
      plane /= length;
    }
    const std::size_t height = std::min(tile_end - missing_rows_, row_count_) - row;
    if (!transposes_) return convert_tile(block, from, to, height, columns);
    const std::size_t before = std::min(column, most_before_);
    return transpose(block, from - at(src_, last_, before), to, height, columns + before,
                     {.before = before, .ends = end >= column_count_});
  }

  // Any strides, byte order and packing.
  Result<void> convert_tile(Block& block, const std::byte* from, std::int64_t to, std::size_t height,
                            std::size_t columns) const {
    gather_tile(from, src_.strides[rows_], src_.strides[last_], block.gathered(), height, columns, src_.item_bytes(),
                src_.swapped);
    TRY(block.convert(block.gathered(), block.converted(), height * columns, 0, work_));
    const std::byte* drain = block.items(height * columns);
    if (dst_.is_packed()) {
      write_bits(drain, to, height, columns);
      return {};
    }
    for (std::size_t i = 0; i < height; ++i, drain += columns * dst_.item_bytes()) {
      copy_run(drain, static_cast<std::int64_t>(dst_.item_bytes()), dst_.data + to + at(dst_, rows_, i),
               dst_.strides[last_], columns, dst_.item_bytes(), dst_.swapped);
    }
    return {};
  }

  // Packed rows, which may begin and end within a byte that they share with others.
  void write_bits(const std::byte* tile, std::int64_t to, std::size_t rows, std::size_t columns) const {
    const std::size_t row_bits = columns * dst_bits();
    for (std::size_t i = 0; i < rows; ++i) {
      const auto place = static_cast<std::size_t>(to + at(dst_, rows_, i));
      copy_bits(tile, i * row_bits, dst_.data, place * dst_bits(), row_bits);
    }
  }

  // Columns of a tile that the tile before has also, and whether it is the last one of its rows.
  struct Edges {
    std::size_t before;
    bool ends;
  };

  // The source is dense along `rows`, the target along the last axis: runs are transposed in registers, and the rows
  // that they become converted and written whole: lines of rows that are a page apart share so few sets of the cache
  // that they leave it before the next part of them comes.
  Result<void> transpose(Block& block, const std::byte* from, std::int64_t to, std::size_t height, std::size_t columns,
                         Edges edges) const {
    if (is_short_) return transpose_short(block, from, to, height, columns);
    if (converts_first_) {
      TRY(transpose_converted(block, from, height, columns));
      write_rows(block.gathered(), to, height, columns, edges);
      return {};
    }
    const std::size_t src_item = src_.item_bytes();
    const std::size_t runs_at_once = this->runs_at_once(src_item);
    for (std::size_t column = 0; column < columns; column += runs_at_once) {
      const std::size_t end = std::min(columns, column + runs_at_once);
      for (std::size_t i = column; i < end; ++i) prefetch_run(from, height, columns, i + runs_ahead_);
      // The last ones of a tile are as many, so that they fill registers.
      const std::size_t begin = end - std::min(end, runs_at_once);
      transpose_(src_item, from + at(src_, last_, begin), src_.strides[last_], end - begin, height,
                 block.gathered() + begin * src_item, static_cast<std::ptrdiff_t>(columns * src_item));
    }
    const std::byte* rows = block.gathered();
    if (!copies_) {
      TRY(block.convert(rows, block.converted(), height * columns, 0, work_));
      rows = block.items(height * columns);
    }
    write_rows(rows, to, height, columns, edges);
    return {};
  }

  // The rows of a tile, in block.gathered(). Runs are converted where they are, then transposed.
  Result<void> transpose_converted(Block& block, const std::byte* from, std::size_t height, std::size_t columns) const {
    const std::size_t item = dst_.item_bytes(), run = height * item, runs_at_once = this->runs_at_once(item);
    for (std::size_t column = 0; column < columns; column += runs_at_once) {
      const std::size_t end = std::min(columns, column + runs_at_once);
      const std::size_t begin = end - std::min(end, runs_at_once);
      std::byte* converted = block.converted();
      for (std::size_t i = begin; i < end; ++i, converted += run) {
        if (i >= column) prefetch_run(from, height, columns, i + runs_ahead_);
        const std::byte* const source = from + at(src_, last_, i);
        if (!prepared_.run_kernel(source, converted, height)) TRY(block.convert(source, converted, height, 0, work_));
      }
      transpose_(item, block.converted(), static_cast<std::ptrdiff_t>(run), end - begin, height,
                 block.gathered() + begin * item, static_cast<std::ptrdiff_t>(columns * item));
    }
    return {};
  }

  [[nodiscard]] std::size_t runs_at_once(std::size_t item_bytes) const {
    return std::max(least_runs_at_once, static_cast<std::size_t>(ops_.register_bytes) / item_bytes);
  }

  // A run of a tile, or of the next one. GCC leaves out calls of functions that do no more.
  [[gnu::always_inline]] void prefetch_run(const std::byte* from, std::size_t height, std::size_t columns,
                                           std::size_t index) const {
    const std::size_t run = height * src_.item_bytes();
    const std::byte* const next =
        index < columns ? from + at(src_, last_, index) : from + run + at(src_, last_, index - columns);
    prefetch(next, run + reinterpret_cast<std::uintptr_t>(next) % line_bytes);  // all lines that it is in
  }

  // The same of an axis so short that its elements are in turns in memory.
  Result<void> transpose_short(Block& block, const std::byte* from, std::int64_t to, std::size_t height,
                               std::size_t columns) const {
    constexpr Edges whole = {.before = 0, .ends = true};
    auto pitch = static_cast<std::ptrdiff_t>(src_.strides[last_]);
    if (!copies_ && !converts_first_) {
      const std::size_t src_item = src_.item_bytes();
      transpose_(src_item, from, pitch, columns, height, block.gathered(),
                 static_cast<std::ptrdiff_t>(columns * src_item));
      if (!bypasses_cache_ && bit_width(dst_.dtype) >= 8) {  // rows are written where they belong
        const std::size_t rows = joins_rows_ ? 1 : height, length = height * columns / rows;
        for (std::size_t i = 0; i < rows; ++i) {
          std::byte* const row = dst_.data + to + at(dst_, rows_, i);
          TRY(block.convert(block.gathered() + i * length * src_item, row, length, 0, work_));
        }
        return {};
      }
      TRY(block.convert(block.gathered(), block.converted(), height * columns, 0, work_));
      write_rows(block.items(height * columns), to, height, columns, whole);
      return {};
    }
    const std::size_t item = dst_.item_bytes();
    if (!copies_) {
      TRY(block.convert(from, block.converted(), height * columns, 0, work_));
      from = block.converted();
      pitch = static_cast<std::ptrdiff_t>(height * item);
    }
    if (!bypasses_cache_) {
      transpose_(item, from, pitch, columns, height, dst_.data + to, static_cast<std::ptrdiff_t>(dst_.strides[rows_]));
      return {};
    }
    transpose_(item, from, pitch, columns, height, block.gathered(), static_cast<std::ptrdiff_t>(columns * item));
    write_rows(block.gathered(), to, height, columns, whole);
    return {};
  }

  void write_rows(const std::byte* tile, std::int64_t to, std::size_t rows, std::size_t columns, Edges edges) const {
    if (joins_rows_) {
      columns *= rows;
      rows = 1;
    }
    if (!has_whole_bytes()) return write_bits(tile, to, rows, columns);
    const std::size_t row_bytes = dst_bytes(columns), before = edges.before * dst_.item_bytes();
    for (std::size_t i = 0; i < rows; ++i, tile += row_bytes) {
      const std::int64_t place = to + at(dst_, rows_, i);
      std::byte* const row = dst_.data + (dst_.is_packed() ? place * bit_width(dst_.dtype) / 8 : place) -
                             static_cast<std::int64_t>(before);
      if (!bypasses_cache_) {
        std::memcpy(row + before, tile + before, row_bytes - before);
        continue;
      }
      const auto past_line = [&](std::size_t bytes) {
        return most_before_ == 0 ? 0 : reinterpret_cast<std::uintptr_t>(row + bytes) % line_bytes;
      };
      const std::size_t begin = before - std::min(before, past_line(before));
      const std::size_t end = row_bytes - (edges.ends ? 0 : std::min(row_bytes, past_line(row_bytes)));
      if (begin < end) ops_.stream_copy(tile + begin, row + begin, end - begin);
    }
  }

  const StridedArray& src_;
  const StridedArray& dst_;
  const Work& work_;
  Execution execution_ = work_.execution;  // of one thread where bands depend on each other
  std::size_t rows_, last_, count_;
  std::size_t row_count_ = 0, column_count_ = 0, tile_rows_ = 0, tile_columns_ = 0;
  std::size_t bands_of_plane_ = 0, tiles_of_band_ = 0;
  std::size_t missing_columns_ = 0;  // of the first band
  std::size_t missing_rows_ = 0;     // of the first tile of each band
  std::size_t most_before_ = 0;      // columns of a tile that the one before may leave to it
  bool transposes_ = false;
  bool joins_rows_ = false;      // of the target: a tile has whole ones, which follow each other
  bool converts_first_ = false;  // as the narrower type is transposed in less time
  Prepared prepared_;            // what converts runs then, unless they are short
  std::size_t runs_ahead_ = runs_ahead;
  bool is_short_ = false;  // rows or columns are so few that they are in turns in memory
  const bool copies_ = copies(src_, dst_, work_);
  bool bypasses_cache_ = false;
  Mutex blocks_mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;  // that no task uses now
  const kernels::Ops& ops_ = kernels::ops_of(active_target());
  const decltype(ops_.transpose) transpose_ = ops_.transpose != nullptr ? ops_.transpose : transpose_tile;
};

}  // namespace

std::optional<std::size_t> tile_axis(const StridedArray& src, std::size_t count) {
  if (src.shape.size() < 2 || count < block_elements) return std::nullopt;
  const std::size_t last = src.shape.size() - 1;
  std::optional<std::size_t> found;
  std::int64_t smallest = line_bytes;
  for (std::size_t axis = 0; axis < last; ++axis) {
    const std::int64_t stride = std::abs(src.strides[axis]);
    if (stride != 0 && stride < smallest) {
      found = axis;
      smallest = stride;
    }
  }
  if (!found || std::abs(src.strides[last]) >= std::int64_t{line_bytes}) return found;
  // In turns: all elements of one axis, then the next of the last one.
  const bool is_in_turns = smallest == static_cast<std::int64_t>(src.item_bytes()) &&
                           src.strides[last] == src.strides[*found] * src.shape[*found];
  return is_in_turns && static_cast<std::size_t>(src.shape[last]) >= least_turns ? found : std::nullopt;
}

Result<void> cast_tiles(const StridedArray& src, const StridedArray& dst, std::size_t count, std::size_t rows,
                        const Work& work) {
  return Tiles(src, dst, count, rows, work).run();
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
