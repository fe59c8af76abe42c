// SPDX-License-Identifier: Apache-2.0
// Component core. How work is done: on how many threads, on whose, in whose memory results are, and of which part of a
// tensor. Only the part changes a result, and only that of stochastic rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tensorcast/export.hpp"

// <memory_resource> takes longer to compile than this header's users. A program that makes memory of its own includes
// it.
#if defined(__GLIBCXX__) && defined(_GLIBCXX_BEGIN_NAMESPACE_VERSION)
namespace std {
_GLIBCXX_BEGIN_NAMESPACE_VERSION
namespace pmr {
class memory_resource;
}
_GLIBCXX_END_NAMESPACE_VERSION
}  // namespace std
#else
#include <memory_resource>
#endif

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// The work of one call, cut into numbered tasks. Borrows the function that it was made of. Never throws.
class Task {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Task> && std::is_nothrow_invocable_v<const F&, std::size_t>)
  Task(const F& work) noexcept
      : work_(&work), call_([](const void* work_of_call, std::size_t index) noexcept {
          (*static_cast<const F*>(work_of_call))(index);
        }) {}

  void operator()(std::size_t index) const noexcept { call_(work_, index); }

 private:
  const void* work_;
  void (*call_)(const void*, std::size_t) noexcept;
};

// A pool of threads. tbb.hpp makes one of an arena of oneTBB.
class Executor {
 public:
  // Calls task(0) ... task(count - 1), each once, in any order, on any threads, this one included. Returns when all
  // have returned. A std::exception of run() and a task that is left out are errors of the call that needed the pool;
  // other exceptions pass. run() may be called by several threads at once, and by a task.
  virtual void run(std::size_t count, const Task& task) = 0;

 protected:
  Executor() = default;
  Executor(const Executor&) = default;
  Executor& operator=(const Executor&) = default;
  ~Executor() = default;  // the caller's pools are the caller's
};

struct Execution {
  int threads = 0;               // 0: all cores; 1: the calling thread alone. Small requests never start threads
  Executor* executor = nullptr;  // whose threads; null: the library's own. Not used if threads is 1
  // Where the elements of returned tensors are allocated, and freed when the last copy is gone; null: new and delete.
  std::pmr::memory_resource* memory = nullptr;
  // The place in a larger tensor, in C order, of the first element that the call is given.
  std::uint64_t first_element = 0;

  friend bool operator==(const Execution&, const Execution&) = default;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
