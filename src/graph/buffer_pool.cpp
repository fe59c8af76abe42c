#include "graph/buffer_pool.hpp"

#include <limits>
#include <map>
#include <new>

namespace tensorcast::graph {
namespace {

constexpr std::size_t alignment = 64;  // of memory and of sizes

struct FreeMemory {
  void operator()(std::byte* data) const { ::operator delete(data, std::align_val_t{alignment}); }
};
using Memory = std::unique_ptr<std::byte, FreeMemory>;

}  // namespace

struct BufferPool::Idle {
  std::multimap<std::size_t, Memory> by_capacity;
  std::size_t allocations = 0;
};

BufferPool::BufferPool() : idle_(std::make_shared<Idle>()) {}

std::size_t BufferPool::allocations() const { return idle_->allocations; }

std::shared_ptr<Buffer> BufferPool::acquire(std::size_t bytes, bool exact) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) return nullptr;
  const std::size_t capacity = (bytes / alignment + 1) * alignment;
  const std::size_t most = exact ? capacity : 2 * capacity;
  auto buffer = std::make_unique<Buffer>();
  Memory memory;
  const auto found = idle_->by_capacity.lower_bound(capacity);
  if (found != idle_->by_capacity.end() && found->first <= most) {
    buffer->capacity = found->first;
    memory = std::move(found->second);
    idle_->by_capacity.erase(found);
  } else {
    idle_->by_capacity.clear();  // of no use now, and no reason for a higher peak
    void* allocated = ::operator new(capacity, std::align_val_t{alignment}, std::nothrow);
    if (allocated == nullptr) return nullptr;
    memory.reset(static_cast<std::byte*>(allocated));
    buffer->capacity = capacity;
    ++idle_->allocations;
  }
  buffer->data = memory.release();
  return std::shared_ptr<Buffer>(buffer.release(), [pool = std::weak_ptr<Idle>(idle_)](Buffer* released) {
    Memory returned(released->data);
    const std::size_t size = released->capacity;
    delete released;
    const std::shared_ptr<Idle> idle = pool.lock();
    if (idle == nullptr) return;
    try {
      idle->by_capacity.emplace(size, std::move(returned));
    } catch (const std::bad_alloc&) {  // then it is simply not reused
    }
  });
}

}  // namespace tensorcast::graph
