// SPDX-License-Identifier: Apache-2.0
// Ways through arrays of any strides in C order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cast/parallel.hpp"
#include "cast/strided_array.hpp"
#include "cast/tuning.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

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

// Calls `convert` for each task of the elements of `src`, as in_pieces(), on the threads of `work`.
template <class Convert>
Result<void> in_tasks(const StridedArray& src, std::size_t count, const Work& work, Convert&& convert) {
  Execution execution = work.execution;
  // A report's sums depend on their order.
  if (work.report != nullptr || count * src.item_bytes() < threads_min_bytes) execution.threads = 1;
  return in_pieces(count, dense_elements, work.stop, [&](std::size_t first, std::size_t piece) -> Result<void> {
    return try_tasks((piece + task_elements - 1) / task_elements, execution, [&](std::size_t task) {
      const std::size_t begin = task * task_elements;
      Result<void> done = convert(first + begin, std::min(task_elements, piece - begin));
      if (!done && done.error().element) *done.error().element += begin;
      return done;
    });
  });
}

// Calls convert(begin, end) for the `units` of as many elements each, in tasks on the threads of `execution`.
template <class Convert>
Result<void> in_units(std::size_t units, std::size_t unit_elements, const Execution& execution, bool (*stop)(),
                      Convert&& convert) {
  const std::size_t units_of_task = std::max<std::size_t>(1, task_elements / unit_elements);
  const std::size_t tasks = (units + units_of_task - 1) / units_of_task;
  const std::size_t tasks_at_once = std::max<std::size_t>(1, dense_elements / (unit_elements * units_of_task));
  for (std::size_t first = 0; first < tasks; first += tasks_at_once) {
    if (first != 0 && stop != nullptr && stop()) return interrupted();
    TRY(try_tasks(std::min(tasks_at_once, tasks - first), execution, [&](std::size_t task) {
      const std::size_t begin = (first + task) * units_of_task;
      return convert(begin, std::min(units, begin + units_of_task));
    }));
  }
  return {};
}

// Walks over the elements of an array in C order, in runs along its last dimension.
class Walk {
 public:
  // From the element `first` on.
  Walk(const StridedArray& array, std::size_t first)
      : array_(array), index_(array.shape.size(), 0), position_(array.data) {
    for (std::size_t axis = array.shape.size(); axis-- > 0;) {
      const auto length = static_cast<std::size_t>(array.shape[axis]);
      index_[axis] = static_cast<std::int64_t>(first % length);
      position_ += index_[axis] * array.strides[axis];
      first /= length;
    }
  }

  // Elements from the current one to the end of its run.
  [[nodiscard]] std::size_t run() const {
    return index_.empty() ? 1 : static_cast<std::size_t>(array_.shape.back() - index_.back());
  }

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

// Elements of a run that is converted by a call of its own, which is short beside it.
inline constexpr std::int64_t long_run = 512;

// Reports whether neighbours along the last axis are neighbours in memory, as they are.
inline bool has_dense_runs(const StridedArray& array) {
  return !array.is_packed() && !array.one_per_byte && !array.swapped && !array.strides.empty() &&
         array.strides.back() == static_cast<std::int64_t>(array.item_bytes());
}

// Reports whether runs along the last axis are converted where they are.
inline bool has_long_runs(const StridedArray& src, const StridedArray& dst) {
  return has_dense_runs(src) && has_dense_runs(dst) && src.shape.back() >= long_run;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
