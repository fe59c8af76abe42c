// SPDX-License-Identifier: Apache-2.0
#include "cast/parallel.hpp"

#include <algorithm>

#include "dtype/float_environment.hpp"
#include "dtype/formatted.hpp"
#include "dtype/platform.hpp"
#include "kernels/byte_table/six_bit_table.hpp"
#include "kernels/kernel.hpp"
#include "tensorcast/target.hpp"

#if TENSORCAST_HAS_THREADS

#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__linux__) || defined(__APPLE__)
#include <pthread.h>
#endif

#if TENSORCAST_HAS_TBB
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>

#include "tensorcast/tbb.hpp"
#endif

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// Counts a task when it ends.
class AtEnd {
 public:
  explicit AtEnd(std::atomic<std::size_t>& ended) noexcept : ended_(ended) {}
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;
  ~AtEnd() { ++ended_; }

 private:
  std::atomic<std::size_t>& ended_;
};

// Starts threads for this call alone, 17 microseconds for one where oneTBB's standing threads take 1. Each runs the
// next task until none is left, as the calling thread does.
void run_on_own_threads(std::size_t tasks, int threads, const Task& task) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t t = next++; t < tasks; t = next++) task(t);
  };
  std::vector<std::jthread> others;
  const std::size_t wanted = std::min(tasks, static_cast<std::size_t>(threads)) - 1;
  others.reserve(wanted);
  try {
    while (others.size() < wanted) others.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads: the running ones do all the work
  }
  work();
}

#if TENSORCAST_HAS_TBB

int core_count() noexcept { return oneapi::tbb::info::default_concurrency(); }

// After fork(), the child has none of oneTBB's threads but all of its state, locks that other threads held included: a
// child that used it would hang. It starts threads of its own.
std::atomic<bool> is_forked_child = false;

const bool hears_of_forks = ::pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; }) == 0;

void run_on_threads(std::size_t tasks, int threads, const Task& task) {
  if (is_forked_child || !hears_of_forks) {
    run_on_own_threads(tasks, threads, task);
    return;
  }
  oneapi::tbb::task_arena arena(threads);
  TbbExecutor(arena).run(tasks, task);
}

#else

int core_count() noexcept { return static_cast<int>(std::thread::hardware_concurrency()); }

void run_on_threads(std::size_t tasks, int threads, const Task& task) { run_on_own_threads(tasks, threads, task); }

#endif

#if defined(__linux__) || defined(__APPLE__)
// Sets up before a fork what the first cast would: a child forked by one thread while another is in the middle of that
// would wait for its end for ever.
[[maybe_unused]] const int fork_error = ::pthread_atfork(
    [] {
      static_cast<void>(kernels::kernels(active_target()));
      static_cast<void>(kernels::byte_table::hub_codes(DType::float6_e2m3fn));
      static_cast<void>(core_count());
    },
    nullptr, nullptr);
#endif

}  // namespace

int thread_count(const Execution& execution) noexcept {
  const int cores = std::max(1, core_count());
  return execution.threads > 0 ? std::min(execution.threads, cores) : cores;
}

bool may_use_threads(const Execution& execution) noexcept {
  return execution.threads != 1 && (execution.executor != nullptr || thread_count(execution) > 1);
}

void run_tasks(std::size_t tasks, const Execution& execution, const std::function<void(std::size_t)>& task) {
  if (tasks < 2 || !may_use_threads(execution)) {
    for (std::size_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  // No exception may pass through another's pool. After one, no further task starts.
  std::atomic<bool> has_thrown = false;
  std::mutex mutex;
  std::exception_ptr thrown;
  // A caller's pool may err: no task runs twice, none that does not exist, and none is left out unnoticed.
  std::vector<std::atomic_flag> has_begun(execution.executor != nullptr ? tasks : 0);
  std::atomic<std::size_t> ended = 0;
  const auto guarded_task = [&](std::size_t i) noexcept {
    if (execution.executor != nullptr && (i >= tasks || has_begun[i].test_and_set())) return;
    const AtEnd counted(ended);
    const DefaultFloatEnvironment environment;  // threads have that of whoever started them first
    if (has_thrown.load(std::memory_order_relaxed)) return;
    try {
      task(i);
    } catch (...) {
      has_thrown = true;
      const std::scoped_lock lock(mutex);
      thrown = std::current_exception();
    }
  };
  if (execution.executor != nullptr) {
    execution.executor->run(tasks, guarded_task);
    if (ended != tasks) {
      throw std::runtime_error(formatted("the executor returned after {} of {} tasks", ended.load(), tasks));
    }
  } else {
    run_on_threads(tasks, thread_count(execution), guarded_task);
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

#else

namespace tensorcast {
inline namespace TENSORCAST_ABI {

int thread_count(const Execution&) noexcept { return 1; }

bool may_use_threads(const Execution&) noexcept { return false; }

void run_tasks(std::size_t tasks, const Execution&, const std::function<void(std::size_t)>& task) {
  for (std::size_t i = 0; i < tasks; ++i) task(i);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

#endif
