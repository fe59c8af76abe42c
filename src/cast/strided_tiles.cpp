// SPDX-License-Identifier: Apache-2.0
#include "cast/strided_tiles.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cast/parallel.hpp"
#include "cast/strided_block.hpp"
#include "cast/tiles.hpp"
#include "cast/tuning.hpp"
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
// Of a run of a transposed source: with longer ones, up to a page, CPUs fetch lines that nobody reads.
constexpr std::size_t run_bytes = 256;
// About, of a row of the target that is written at once.
constexpr std::size_t target_row_bytes = 512;
// Runs that are transposed at once, and how many are fetched before: each is on a page that no CPU foresees. Runs that
// are a power of two apart share sets of the second-level cache, which have room for 64.
constexpr std::size_t least_runs_at_once = 16;
constexpr std::size_t runs_ahead = 48;

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
    if (transposes_) {
      choose_runs();
    } else {
      tile_rows_ = std::min(row_count_, block_elements / std::min(tile_edge, column_count_));
      tile_columns_ = std::min(column_count_, block_elements / tile_rows_);
    }
    // Packed elements of different bands share bytes; a report's sums depend on their order.
    if (dst.is_packed() || work.report != nullptr || count * src.item_bytes() < threads_min_bytes)
      execution_.threads = 1;
    if (transposes_ && has_whole_lines(dst)) {
      const Pages pages = pages_of(dst.data, count * dst.item_bytes(), true);
      bypasses_cache_ = stores_bypass_cache(active_target(), src.dtype, dst.dtype, count, pages, true);
    }
    if (bypasses_cache_) {  // the first band ends where a line of the target does
      const std::size_t to_line = (0 - reinterpret_cast<std::uintptr_t>(dst.data)) % line_bytes / dst.item_bytes();
      missing_columns_ = (tile_columns_ - to_line % tile_columns_) % tile_columns_;
    }
    bands_of_plane_ = (missing_columns_ + column_count_ + tile_columns_ - 1) / tile_columns_;
  }

  Result<void> run() {
    const std::size_t band_elements = row_count_ * tile_columns_;
    const std::size_t bands = count_ / (row_count_ * column_count_) * bands_of_plane_;
    const std::size_t bands_of_task = std::max<std::size_t>(1, task_elements / band_elements);
    const std::size_t tasks = (bands + bands_of_task - 1) / bands_of_task;
    const std::size_t tasks_at_once = std::max<std::size_t>(1, dense_elements / (band_elements * bands_of_task));
    for (std::size_t first = 0; first < tasks; first += tasks_at_once) {
      if (first != 0 && work_.stop != nullptr && work_.stop()) return interrupted();
      TRY(try_tasks(std::min(tasks_at_once, tasks - first), execution_, [&](std::size_t task) {
        const std::size_t begin = (first + task) * bands_of_task;
        return convert_bands(begin, std::min(bands, begin + bands_of_task));
      }));
    }
    if (dst_.is_packed()) clear_padding(dst_.dtype, dst_.data, count_);
    return {};
  }

 private:
  Result<void> convert_bands(std::size_t begin, std::size_t end) {
    std::unique_ptr<Block> block = free_block();
    for (std::size_t band = begin; band < end; ++band) TRY(convert_band(*block, band));
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
    return std::make_unique<Block>(src_, dst_, tile_rows_ * tile_columns_, bit_width(dst_.dtype) < 8);
  }

  // Tiles of a transposed source. Their rows are whole lines of the target, and of the source an odd number of those,
  // so that rows in the cache are in many of its sets.
  void choose_runs() {
    const std::size_t src_item = src_.item_bytes(), dst_item = dst_.item_bytes();
    tile_rows_ = std::min(row_count_, run_bytes / src_item);
    const std::size_t unit = line_bytes / std::min(src_item, dst_item);
    const std::size_t wanted = std::max(target_row_bytes / dst_item, block_elements / 4 / tile_rows_);
    tile_columns_ = std::min(column_count_, (wanted / unit | 1) * unit);
  }

  // The elements are in C order without gaps, and each row begins as far from a cache line as the first.
  static bool has_whole_lines(const StridedArray& array) {
    auto expected = static_cast<std::int64_t>(array.item_bytes());
    for (std::size_t axis = array.shape.size(); axis-- > 0; expected *= array.shape[axis]) {
      if (array.strides[axis] != expected) return false;
    }
    return array.shape.back() * static_cast<std::int64_t>(array.item_bytes()) % std::int64_t{line_bytes} == 0;
  }

  static std::int64_t at(const StridedArray& array, std::size_t axis, std::size_t index) {
    return array.strides[axis] * static_cast<std::int64_t>(index);
  }

  Result<void> convert_band(Block& block, std::size_t band) const {
    const std::size_t end = (band % bands_of_plane_ + 1) * tile_columns_ - missing_columns_;
    const std::size_t column = end - std::min(end, tile_columns_);
    const std::size_t columns = std::min(end, column_count_) - column;
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

  // The source is dense along `rows`, the target along the last axis: runs are transposed in registers, and the rows
  // that they become converted and written whole: lines of rows that are a page apart share so few sets of the cache
  // that they leave it before the next part of them comes.
  Result<void> transpose(Block& block, const std::byte* from, std::int64_t to, std::size_t height,
                         std::size_t columns) const {
    const std::size_t src_item = src_.item_bytes();
    const std::size_t run = height * src_item;
    const std::size_t runs_at_once =
        std::max(least_runs_at_once, static_cast<std::size_t>(ops_.register_bytes) / src_item);
    for (std::size_t column = 0; column < columns; column += runs_at_once) {
      const std::size_t end = std::min(columns, column + runs_at_once);
      for (std::size_t ahead = column + runs_ahead; ahead < end + runs_ahead; ++ahead) {
        const std::byte* const next =
            ahead < columns ? from + at(src_, last_, ahead) : from + run + at(src_, last_, ahead - columns);
        prefetch(next, run + reinterpret_cast<std::uintptr_t>(next) % line_bytes);  // all lines that it is in
      }
      transpose_(src_item, from + at(src_, last_, column), src_.strides[last_], end - column, height,
                 block.gathered() + column * src_item, static_cast<std::ptrdiff_t>(columns * src_item));
    }
    if (copies_) {
      write_rows(block.gathered(), to, height, columns * src_item);
      return {};
    }
    TRY(block.convert(block.gathered(), block.converted(), height * columns, 0, work_));
    write_rows(block.converted(), to, height, columns * dst_.item_bytes());
    return {};
  }

  void write_rows(const std::byte* tile, std::int64_t to, std::size_t rows, std::size_t row_bytes) const {
    for (std::size_t i = 0; i < rows; ++i, tile += row_bytes) {
      std::byte* const row = dst_.data + to + at(dst_, rows_, i);
      if (bypasses_cache_) {
        ops_.stream_copy(tile, row, row_bytes);
      } else {
        std::memcpy(row, tile, row_bytes);
      }
    }
  }

  const StridedArray& src_;
  const StridedArray& dst_;
  const Work& work_;
  Execution execution_ = work_.execution;  // of one thread where bands depend on each other
  std::size_t rows_, last_, count_;
  std::size_t row_count_ = 0, column_count_ = 0, tile_rows_ = 0, tile_columns_ = 0, bands_of_plane_ = 0;
  std::size_t missing_columns_ = 0;  // of the first band
  bool transposes_ = false;
  const bool copies_ = src_.dtype == dst_.dtype && work_.report == nullptr && work_.options == CastOptions{};
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
  if (std::abs(src.strides[last]) < smallest) return std::nullopt;
  for (std::size_t axis = 0; axis < last; ++axis) {
    const std::int64_t stride = std::abs(src.strides[axis]);
    if (stride != 0 && stride < smallest) {
      found = axis;
      smallest = stride;
    }
  }
  return found;
}

Result<void> cast_tiles(const StridedArray& src, const StridedArray& dst, std::size_t count, std::size_t rows,
                        const Work& work) {
  return Tiles(src, dst, count, rows, work).run();
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
