#include "cast/parallel.hpp"

#include <algorithm>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

namespace tensorcast {

int thread_count(int requested) noexcept {
  const int cores = std::max(1, oneapi::tbb::info::default_concurrency());
  return requested > 0 ? std::min(requested, cores) : cores;
}

void run_tasks(std::size_t tasks, int threads, const std::function<void(std::size_t)>& task) {
  if (threads == 1 || tasks < 2) {
    for (std::size_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  oneapi::tbb::task_arena arena(threads);
  arena.execute([&] {
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<std::size_t>(0, tasks, 1),
        [&](const oneapi::tbb::blocked_range<std::size_t>& range) {
          for (std::size_t i = range.begin(); i != range.end(); ++i) task(i);
        },
        oneapi::tbb::simple_partitioner());
  });
}

}  // namespace tensorcast
