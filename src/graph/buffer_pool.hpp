// Memory of the values of one run: what a released value held serves the next one.
#pragma once

#include <cstddef>
#include <memory>

namespace tensorcast::graph {

struct Buffer {
  std::byte* data = nullptr;
  std::size_t capacity = 0;
};

// For one thread. Buffers may outlive the pool, and may then be released on any thread.
class BufferPool {
 public:
  BufferPool();

  // At least `bytes`, not initialised, aligned for any kernel; null when there is no memory. With `exact`, for values
  // that outlive the run, hardly more than `bytes`.
  [[nodiscard]] std::shared_ptr<Buffer> acquire(std::size_t bytes, bool exact);

  [[nodiscard]] std::size_t allocations() const;  // so far, from the system

 private:
  struct Idle;
  std::shared_ptr<Idle> idle_;
};

}  // namespace tensorcast::graph
