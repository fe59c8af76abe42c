// SPDX-License-Identifier: Apache-2.0
// Splits work over threads at fixed places, so that results do not depend on how many there are.
#pragma once

#include <cstddef>
#include <functional>

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

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
