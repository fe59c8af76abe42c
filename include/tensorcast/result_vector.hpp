// SPDX-License-Identifier: Apache-2.0
// Component core. Vectors in which results are returned: in the memory of Execution, and not zeroed before they are
// written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Elements that resize() adds are uninitialised: zeroing them would take as long as computing them. Copies of a vector
// use new and delete.
template <class T>
class ResultAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  static constexpr std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;  // a cache line

  ResultAllocator() = default;
  // As Execution::memory; null: new and delete.
  ResultAllocator(std::pmr::memory_resource* memory) noexcept : memory_(memory) {}
  template <class U>
  ResultAllocator(const ResultAllocator<U>& other) noexcept : memory_(other.memory()) {}

  [[nodiscard]] std::pmr::memory_resource* memory() const noexcept { return memory_; }
  [[nodiscard]] ResultAllocator select_on_container_copy_construction() const noexcept { return {}; }

  [[nodiscard]] T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    return static_cast<T*>(memory_ != nullptr ? memory_->allocate(bytes, alignment)
                                              : ::operator new(bytes, std::align_val_t{alignment}));
  }
  void deallocate(T* data, std::size_t count) noexcept {
    if (memory_ == nullptr) return ::operator delete(data, std::align_val_t{alignment});
    memory_->deallocate(data, count * sizeof(T), alignment);
  }

  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    if constexpr (sizeof...(Arguments) == 0) {
      ::new (static_cast<void*>(at)) U;
    } else {
      ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
    }
  }

  friend bool operator==(const ResultAllocator& a, const ResultAllocator& b) noexcept { return a.memory_ == b.memory_; }

 private:
  std::pmr::memory_resource* memory_ = nullptr;
};

template <class T>
using ResultVector = std::vector<T, ResultAllocator<T>>;

template <class T>
[[nodiscard]] bool operator==(const ResultVector<T>& a, const std::vector<T>& b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
