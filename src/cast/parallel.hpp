// Splits work over threads at fixed places, so that results do not depend on how many there are.
#pragma once

#include <cstddef>
#include <functional>

namespace tensorcast {

// Threads to use for `requested` (0: all cores): never more than there are cores.
[[nodiscard]] int thread_count(int requested) noexcept;

// Calls task(0) ... task(tasks - 1), each once, on up to `threads` threads. With one thread: in order, on this one.
// If a task throws, some later tasks are left out, and the caller gets the exception.
void run_tasks(std::size_t tasks, int threads, const std::function<void(std::size_t)>& task);

}  // namespace tensorcast
