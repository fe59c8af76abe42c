// SPDX-License-Identifier: Apache-2.0
#include "cast/strided_boxes.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cast/pages.hpp"
#include "cast/strided_block.hpp"
#include "cast/tuning.hpp"
#include "cast/walk.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/prefetch.hpp"
#include "dtype/try.hpp"
#include "kernels/ops.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// Of the source, in a box: it and the results fit the second-level cache.
constexpr std::size_t box_bytes = 65536;
// Steps of the loop around the innermost one that the source is fetched before: 0.6 to 0.8 of the time.
constexpr std::int64_t steps_ahead = 3;
constexpr std::size_t most_ahead_bytes = 2048;  // of a run; the rest of longer ones the CPU foresees

// Splits the arrays into boxes: a few neighbours along one axis, with all of the axes after it. A box is dense in the
// target, and gathered in the order of the source, as memory is read faster in long runs.
class Boxes {
 public:
  Boxes(const StridedArray& src, const StridedArray& dst, std::size_t count, const Work& work)
      : src_(src), dst_(dst), count_(count), work_(work) {
    const std::size_t most_elements = box_bytes / src.item_bytes();
    axis_ = src.shape.size() - 1;
    while (axis_ > 0 && inner_ * length(axis_) <= most_elements / 2) inner_ *= length(axis_--);
    most_ = std::min(length(axis_), std::max<std::size_t>(1, most_elements / inner_));
    boxes_of_axis_ = (length(axis_) + most_ - 1) / most_;
    choose_order();
    const Pages pages = pages_of(dst.data, bytes_of(count), true);
    bypasses_cache_ = stores_bypass_cache(active_target(), src.dtype, dst.dtype, count, pages, true);
  }

  Result<void> run() const {
    const std::size_t boxes = count_ / (inner_ * length(axis_)) * boxes_of_axis_;
    Execution execution = work_.execution;
    if (count_ * src_.item_bytes() < threads_min_bytes) execution.threads = 1;
    return in_units(boxes, inner_ * most_, execution, work_.stop,
                    [&](std::size_t begin, std::size_t end) { return convert(begin, end); });
  }

 private:
  // An axis of a box; the strides are bytes.
  struct Loop {
    std::size_t length;
    std::int64_t from, to;
    bool is_cut;  // a box may have fewer
  };

  [[nodiscard]] std::size_t length(std::size_t axis) const { return static_cast<std::size_t>(src_.shape[axis]); }

  // Of elements of the target.
  [[nodiscard]] std::size_t bytes_of(std::size_t count) const {
    return dst_.is_packed() ? storage_bytes(dst_.dtype, count) : count * dst_.item_bytes();
  }

  // The longest steps through the source are the outermost.
  void choose_order() {
    auto stride = static_cast<std::int64_t>(src_.item_bytes());
    for (std::size_t axis = src_.shape.size(); axis-- > axis_; stride *= src_.shape[axis]) {
      loops_.push_back({axis == axis_ ? most_ : length(axis), src_.strides[axis], stride, axis == axis_});
    }
    run_ = loops_.front();
    loops_.erase(loops_.begin());
    std::stable_sort(loops_.begin(), loops_.end(),
                     [](const Loop& a, const Loop& b) { return std::abs(a.from) > std::abs(b.from); });
    if (!loops_.empty()) ahead_ = steps_ahead * loops_[std::max<std::size_t>(2, loops_.size()) - 2].from;
  }

  Result<void> convert(std::size_t begin, std::size_t end) const {
    Block block(src_, dst_, inner_ * most_, dst_.one_per_byte);
    for (std::size_t box = begin; box < end; ++box) {
      const std::size_t plane = box / boxes_of_axis_, at = box % boxes_of_axis_ * most_;
      const std::size_t first = (plane * length(axis_) + at) * inner_;
      Result<void> done = convert_box(block, plane, at, first);
      if (!done) {
        if (done.error().element) *done.error().element += first;
        return done;
      }
    }
    if (bypasses_cache_) ops_.stream_fence();  // other threads may read the target after this
    return {};
  }

  // The neighbours from `at` on of a plane, the first of which is the element `first` of the array.
  Result<void> convert_box(Block& block, std::size_t plane, std::size_t at, std::size_t first) const {
    const std::byte* from = src_.data + static_cast<std::int64_t>(at) * src_.strides[axis_];
    for (std::size_t axis = axis_; axis-- > 0; plane /= length(axis)) {
      from += static_cast<std::int64_t>(plane % length(axis)) * src_.strides[axis];
    }
    const std::size_t wide = std::min(most_, length(axis_) - at), count = wide * inner_;
    std::byte* const target = dst_.data + bytes_of(first);
    std::byte* const results = bypasses_cache_ || dst_.one_per_byte ? block.converted() : target;
    if (copies_) {
      gather(from, wide, results);
    } else {
      gather(from, wide, block.gathered());
      TRY(block.convert(block.gathered(), results, count, first, work_));
    }
    if (bypasses_cache_) {
      ops_.stream_copy(block.items(count), target, bytes_of(count));
    } else if (dst_.one_per_byte) {
      std::memcpy(target, block.items(count), bytes_of(count));
    }
    return {};
  }

  // Copies a box in the order of the source.
  void gather(const std::byte* from, std::size_t wide, std::byte* to, std::size_t depth = 0) const {
    const std::size_t item = src_.item_bytes();
    if (depth == loops_.size()) {
      if (ahead_ != 0) {
        const std::byte* const next = from + ahead_;  // all lines that it is in
        prefetch(next, std::min(most_ahead_bytes, run_.length * item) + reinterpret_cast<std::uintptr_t>(next) % 64);
      }
      copy_run(from, run_.from, to, run_.to, run_.is_cut ? wide : run_.length, item, src_.swapped);
      return;
    }
    const Loop& loop = loops_[depth];
    const std::size_t steps = loop.is_cut ? wide : loop.length;
    for (std::size_t i = 0; i < steps; ++i, from += loop.from, to += loop.to) gather(from, wide, to, depth + 1);
  }

  const StridedArray& src_;
  const StridedArray& dst_;
  std::size_t count_;
  const Work& work_;
  std::size_t axis_ = 0;           // that boxes cut
  std::size_t inner_ = 1;          // elements of all axes after it
  std::size_t most_ = 0;           // neighbours of a box along it
  std::size_t boxes_of_axis_ = 0;  // with the same indices before it
  std::vector<Loop> loops_;        // of a box, without those of a run
  Loop run_ = {};                  // along the last axis
  std::int64_t ahead_ = 0;         // bytes of the source; 0: it is read in one run
  const bool copies_ = copies(src_, dst_, work_);
  bool bypasses_cache_ = false;
  const kernels::Ops& ops_ = kernels::ops_of(active_target());
};

}  // namespace

bool has_boxes(const StridedArray& src, const StridedArray& dst, const Work& work) {
  // A report's sums depend on the blocks that are added up.
  if (src.is_packed() || dst.swapped || work.report != nullptr || src.shape.empty()) return false;
  // Long runs are converted where they are, unless they are only copied.
  if (has_long_runs(src, dst) && !copies(src, dst, work)) return false;
  // Then so does each box.
  const bool begins_with_byte =
      !dst.is_packed() || ends_with_byte(bit_width(dst.dtype), static_cast<std::uint64_t>(dst.shape.back()));
  return begins_with_byte && is_dense(dst);
}

Result<void> cast_boxes(const StridedArray& src, const StridedArray& dst, std::size_t count, const Work& work) {
  return Boxes(src, dst, count, work).run();
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
