// SPDX-License-Identifier: Apache-2.0
// Component core. An arena of oneTBB as the threads of a conversion. Needs oneTBB's headers; the program links oneTBB.
#pragma once

#include <cstddef>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

//   oneapi::tbb::task_arena arena(4);
//   TbbExecutor threads(arena);
//   cast(src, dst, options, {.executor = &threads});
class TbbExecutor final : public Executor {
 public:
  // Borrows `arena`.
  explicit TbbExecutor(oneapi::tbb::task_arena& arena) noexcept : arena_(&arena) {}

  void run(std::size_t count, const Task& task) override {
    arena_->execute([&] {
      oneapi::tbb::parallel_for(
          oneapi::tbb::blocked_range<std::size_t>(0, count, 1),
          [&](const oneapi::tbb::blocked_range<std::size_t>& range) {
            for (std::size_t i = range.begin(); i != range.end(); ++i) task(i);
          },
          oneapi::tbb::simple_partitioner());
    });
  }

 private:
  oneapi::tbb::task_arena* arena_;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
