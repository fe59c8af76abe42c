// SPDX-License-Identifier: Apache-2.0
// The memory of the values of one run: gives a released value's buffer to the next value.
#pragma once

#include <cstddef>
#include <memory>

#include "tensorcast/execution.hpp"

namespace tensorcast::graph {

struct Buffer {
  std::byte* data = nullptr;
  std::size_t capacity = 0;
};

// Used by one thread. Buffers may outlive the pool, and may then be released on any thread.
class BufferPool {
 public:
  // Takes memory from `memory`; null: from the system.
  explicit BufferPool(std::pmr::memory_resource* memory = nullptr);

  // Returns an uninitialised buffer of at least `bytes` bytes, aligned for any kernel; null if memory is exhausted.
  // `exact` is for values that outlive the run: the buffer is hardly larger than `bytes`.
  [[nodiscard]] std::shared_ptr<Buffer> acquire(std::size_t bytes, bool exact);

  [[nodiscard]] std::size_t allocations() const;  // allocations from the system so far

 private:
  struct Idle;
  std::shared_ptr<Idle> idle_;
};

}  // namespace tensorcast::graph
