#include "cast/parallel.hpp"

#include <algorithm>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define TENSORCAST_THREAD_SANITIZER 1
#include <atomic>
#include <thread>
#include <vector>
#endif
#endif

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
#ifdef TENSORCAST_THREAD_SANITIZER
  // oneTBB as packaged is not instrumented, so its hand-overs look like races. Plain threads run the same tasks.
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (std::size_t t = next.fetch_add(1, std::memory_order_relaxed); t < tasks;
           t = next.fetch_add(1, std::memory_order_relaxed)) {
        task(t);
      }
    });
  }
#else
  oneapi::tbb::task_arena arena(threads);
  arena.execute([&] {
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<std::size_t>(0, tasks, 1),
        [&](const oneapi::tbb::blocked_range<std::size_t>& range) {
          for (std::size_t i = range.begin(); i != range.end(); ++i) task(i);
        },
        oneapi::tbb::simple_partitioner());
  });
#endif
}

}  // namespace tensorcast
