// SPDX-License-Identifier: Apache-2.0
// Splits work over threads at fixed places, so that results do not depend on how many there are.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// How many threads `execution` asks for, and no more than there are cores; 1 or more.
[[nodiscard]] int thread_count(const Execution& execution) noexcept;

// Reports whether more than one thread may run tasks: the caller's pool, or more than one core.
[[nodiscard]] bool may_use_threads(const Execution& execution) noexcept;

// Calls task(0) ... task(tasks - 1), each once, on the threads of `execution`; with one thread in order, on this one.
// If a task throws, some later tasks are left out, and the caller gets the exception.
void run_tasks(std::size_t tasks, const Execution& execution, const std::function<void(std::size_t)>& task);

// The same of tasks that return Result<void>. Returns the error of the first of them that has one.
template <class Task>
[[nodiscard]] Result<void> try_tasks(std::size_t tasks, const Execution& execution, const Task& task) {
  std::vector<Result<void>> done(tasks);
  run_tasks(tasks, execution, [&](std::size_t i) { done[i] = task(i); });
  for (Result<void>& each : done) {
    if (!each) return std::move(each);
  }
  return {};
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
