// SPDX-License-Identifier: Apache-2.0
#include "result_pool.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#include <sys/mman.h>
#endif

#include "graph_tensor.hpp"

namespace tensorcast::python {

#if defined(__linux__)
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t least_bytes = pooled_bytes;  // of a block
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::size_t most_results = 4;  // idle blocks take at most so many times the size of the last result
constexpr std::chrono::seconds idle_time{3};
constexpr std::chrono::seconds look_every{1};

struct Block {
  std::byte* data = nullptr;  // begins at a huge page
  std::size_t capacity = 0;   // of the mapping from `data` on
};

// The mappings that hold a block: huge pages need an aligned address.
Block map_block(std::size_t bytes) noexcept {
  const std::size_t capacity = (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
  const std::size_t mapped = capacity + huge_page_bytes;
  void* const base = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return {};
  auto* const first = static_cast<std::byte*>(base);
  const std::size_t before = (0 - reinterpret_cast<std::uintptr_t>(first)) % huge_page_bytes;
  if (before != 0) ::munmap(first, before);
  ::munmap(first + before + capacity, mapped - before - capacity);
  ::madvise(first + before, capacity, MADV_HUGEPAGE);
  return {first + before, capacity};
}

void unmap(const Block& block) noexcept { ::munmap(block.data, block.capacity); }

// Lives until the process ends, as arrays may be freed until then. No function of it calls Python.
class Pool {
 public:
  // Null if the system has no memory.
  void* allocate(std::size_t bytes) noexcept try {
    const std::scoped_lock lock(mutex_);
    last_use_ = Clock::now();
    last_result_ = bytes;
    const auto found = idle_.lower_bound(bytes);
    Block block;
    if (found != idle_.end() && found->first <= 2 * bytes) {
      block = found->second;
      idle_.erase(found);
      idle_bytes_ -= block.capacity;
      ++reused_;
    } else {
      block = map_block(bytes);
      if (block.data == nullptr) {
        shrink_to(0);
        block = map_block(bytes);
      }
      if (block.data == nullptr) return nullptr;
    }
    try {
      used_.emplace(block.data, block.capacity);
    } catch (const std::bad_alloc&) {
      unmap(block);
      return nullptr;
    }
    return block.data;
  } catch (const std::system_error&) {
    return nullptr;
  }

  // Returns false if the memory is not of the pool.
  bool free(void* data) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto found = used_.find(data);
    if (found == used_.end()) return false;
    const Block block{static_cast<std::byte*>(data), found->second};
    used_.erase(found);
    last_use_ = Clock::now();
    if (block.capacity > most_idle() || !is_watched()) {
      unmap(block);
      return true;
    }
    shrink_to(most_idle() - block.capacity);
    ::madvise(block.data, block.capacity, MADV_FREE);
    try {
      idle_.emplace(block.capacity, block);
      idle_bytes_ += block.capacity;
    } catch (const std::bad_alloc&) {
      unmap(block);
    }
    return true;
  }

  // 0 if the memory is not of the pool.
  std::size_t capacity_of(void* data) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto found = used_.find(data);
    return found == used_.end() ? 0 : found->second;
  }

  void set_limit(std::size_t bytes) noexcept {
    const std::scoped_lock lock(mutex_);
    limit_ = bytes;
    shrink_to(bytes);
  }

  PoolUse use() noexcept {
    const std::scoped_lock lock(mutex_);
    return {limit_, idle_bytes_, reused_};
  }

  std::mutex& mutex() noexcept { return mutex_; }
  void forget_watcher() noexcept { is_watched_ = false; }  // of a process that fork() made

 private:
  std::size_t most_idle() const noexcept { return std::min(limit_, most_results * last_result_); }

  // Unmaps the largest idle blocks until the rest take at most `bytes`.
  void shrink_to(std::size_t bytes) noexcept {
    while (idle_bytes_ > bytes) {
      const auto largest = std::prev(idle_.end());
      idle_bytes_ -= largest->second.capacity;
      unmap(largest->second);
      idle_.erase(largest);
    }
  }

  // Starts the thread that unmaps idle blocks in the end; it ends when there are none. Returns false if the system has
  // no thread.
  bool is_watched() noexcept {
    if (is_watched_) return true;
    try {
      std::thread([this] { watch(); }).detach();
      is_watched_ = true;
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }

  void watch() noexcept {
    for (;;) {
      std::this_thread::sleep_for(look_every);
      const std::scoped_lock lock(mutex_);
      if (Clock::now() - last_use_ < idle_time) continue;
      shrink_to(0);
      is_watched_ = false;
      return;
    }
  }

  std::mutex mutex_;
  std::size_t limit_ = usual_pool_bytes;
  std::size_t last_result_ = 0;
  std::size_t idle_bytes_ = 0;
  std::size_t reused_ = 0;
  std::multimap<std::size_t, Block> idle_;  // by capacity
  std::unordered_map<void*, std::size_t> used_;
  Clock::time_point last_use_;
  bool is_watched_ = false;
};

Pool& pool() noexcept {
  static Pool* const instance = [] {
    auto* const made = new Pool;
    // A child of fork() has the blocks, which it copies when it writes, but not the thread.
    ::pthread_atfork([] { pool().mutex().lock(); }, [] { pool().mutex().unlock(); },
                     [] {
                       pool().forget_watcher();
                       pool().mutex().unlock();
                     });
    return made;
  }();
  return *instance;
}

// --- NumPy's interface of allocators

void* allocate(void*, std::size_t bytes) {
  return bytes >= least_bytes ? pool().allocate(bytes) : std::malloc(std::max<std::size_t>(bytes, 1));
}

void release(void*, void* data, std::size_t) {
  if (data != nullptr && !pool().free(data)) std::free(data);
}

void* allocate_zeros(void* context, std::size_t count, std::size_t bytes) {
  if (bytes != 0 && count > SIZE_MAX / bytes) return nullptr;
  void* const data = allocate(context, count * bytes);
  if (data != nullptr) std::memset(data, 0, count * bytes);
  return data;
}

// Of ndarray.resize().
void* reallocate(void* context, void* data, std::size_t bytes) {
  const std::size_t capacity = data == nullptr ? 0 : pool().capacity_of(data);
  if (capacity == 0) return std::realloc(data, std::max<std::size_t>(bytes, 1));
  if (bytes >= least_bytes && bytes <= capacity) return data;
  void* const moved = allocate(context, bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, std::min(bytes, capacity));
  release(context, data, capacity);
  return moved;
}

PyDataMem_Handler handler = {"tensorcast_results", 1, {nullptr, &allocate, &allocate_zeros, &reallocate, &release}};

class ResultMemory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes < least_bytes) return ::operator new(bytes, std::align_val_t{alignment});
    void* const data = pool().allocate(bytes);
    if (data == nullptr) throw std::bad_alloc();
    return data;
  }
  void do_deallocate(void* data, std::size_t bytes, std::size_t alignment) override {
    if (bytes < least_bytes) return ::operator delete(data, std::align_val_t{alignment});
    pool().free(data);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

void set_result_pool(std::size_t bytes) noexcept { pool().set_limit(bytes); }

PoolUse result_pool_use() noexcept { return pool().use(); }

std::pmr::memory_resource* result_memory() noexcept {
  static auto* const memory = new ResultMemory;  // lives until the process ends, as the pool does
  return memory;
}

PyObject* new_array(int rank, const npy_intp* shape, PyArray_Descr* descr) {
  auto bytes = static_cast<std::size_t>(PyDataType_ELSIZE(descr));
  bool is_large = true;
  for (int axis = 0; axis < rank; ++axis) {
    is_large = is_large && !__builtin_mul_overflow(bytes, static_cast<std::size_t>(shape[axis]), &bytes);
  }
  if (!is_large || bytes < least_bytes || pool().use().limit == 0)
    return PyArray_Empty(rank, const_cast<npy_intp*>(shape), descr, 0);
  static PyObject* const ours = PyCapsule_New(&handler, "mem_handler", nullptr);
  PyObject* const before = ours == nullptr ? nullptr : PyDataMem_SetHandler(ours);
  if (before == nullptr) {
    Py_DECREF(descr);
    return nullptr;
  }
  PyObject* made = PyArray_Empty(rank, const_cast<npy_intp*>(shape), descr, 0);
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* const own = PyDataMem_SetHandler(before);
  Py_DECREF(before);
  Py_XDECREF(own);
  if (own == nullptr) {
    Py_CLEAR(made);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
  } else {
    PyErr_Restore(type, value, trace);
  }
  return made;
}

#else  // MADV_FREE of other systems has not been measured

void set_result_pool(std::size_t) noexcept {}

PoolUse result_pool_use() noexcept { return {}; }

std::pmr::memory_resource* result_memory() noexcept { return nullptr; }

PyObject* new_array(int rank, const npy_intp* shape, PyArray_Descr* descr) {
  return PyArray_Empty(rank, const_cast<npy_intp*>(shape), descr, 0);
}

#endif

Result<NewTensor> new_tensor(DType dtype, const Shape& shape) {
  const Result<std::size_t> count = element_count(shape);
  if (!count) return count.error();
  const auto bytes = static_cast<npy_intp>(storage_bytes(dtype, *count));
  PyObject* const made = bytes < 0 ? nullptr : new_array(1, &bytes, PyArray_DescrFromType(NPY_UINT8));
  if (made == nullptr) {
    PyErr_Clear();
    throw std::bad_alloc();
  }
  const auto owner = nanobind::steal(made);
  const std::span data(static_cast<std::byte*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(made))),
                       static_cast<std::size_t>(bytes));
  Result<Tensor> tensor = Tensor::share({dtype, shape, data}, shared_object(owner));
  if (!tensor) return std::move(tensor).error();
  return NewTensor{*std::move(tensor), data};
}

}  // namespace tensorcast::python
