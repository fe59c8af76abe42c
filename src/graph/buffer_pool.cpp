// SPDX-License-Identifier: Apache-2.0
#include "graph/buffer_pool.hpp"

#include <limits>
#include <map>
#include <memory_resource>
#include <new>

#include "cast/pages.hpp"

namespace tensorcast::graph {
namespace {

constexpr std::size_t alignment = 64;  // of memory and of sizes
// From this size on, memory is allocated in huge pages: page faults would cost more than the conversion.
constexpr std::size_t huge_page_bytes = std::size_t{1} << 21;
constexpr std::size_t huge_min_bytes = 2 * huge_page_bytes;

std::size_t alignment_of(std::size_t capacity) { return capacity < huge_min_bytes ? alignment : huge_page_bytes; }

}  // namespace

struct FreeMemory {
  std::size_t capacity = 0;
  std::pmr::memory_resource* resource = nullptr;  // null: the system
  void operator()(std::byte* data) const {
    if (resource != nullptr) return resource->deallocate(data, capacity, alignment);
    ::operator delete(data, std::align_val_t{alignment_of(capacity)});
  }
};
using Memory = std::unique_ptr<std::byte, FreeMemory>;

namespace {

Memory allocate(std::size_t capacity, std::pmr::memory_resource* resource) {
  if (resource != nullptr) {
    return {static_cast<std::byte*>(resource->allocate(capacity, alignment)), {capacity, resource}};
  }
  void* allocated = ::operator new(capacity, std::align_val_t{alignment_of(capacity)}, std::nothrow);
  if (allocated != nullptr) advise_huge_pages(static_cast<std::byte*>(allocated), capacity);
  return {static_cast<std::byte*>(allocated), {capacity, nullptr}};
}

}  // namespace

struct BufferPool::Idle {
  std::multimap<std::size_t, Memory> by_capacity;
  std::size_t allocations = 0;
  std::pmr::memory_resource* resource = nullptr;
};

BufferPool::BufferPool(std::pmr::memory_resource* memory) : idle_(std::make_shared<Idle>()) {
  idle_->resource = memory;
}

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
    idle_->by_capacity.clear();  // frees idle buffers, which would only raise the peak
    memory = allocate(capacity, idle_->resource);
    if (memory == nullptr) return nullptr;
    buffer->capacity = capacity;
    ++idle_->allocations;
  }
  buffer->data = memory.release();
  return std::shared_ptr<Buffer>(buffer.release(),
                                 [pool = std::weak_ptr<Idle>(idle_), resource = idle_->resource](Buffer* released) {
                                   Memory returned(released->data, {released->capacity, resource});
                                   const std::size_t size = released->capacity;
                                   delete released;
                                   const std::shared_ptr<Idle> idle = pool.lock();
                                   if (idle == nullptr) return;
                                   try {
                                     idle->by_capacity.emplace(size, std::move(returned));
                                   } catch (const std::bad_alloc&) {  // the buffer is freed instead of reused
                                   }
                                 });
}

}  // namespace tensorcast::graph
