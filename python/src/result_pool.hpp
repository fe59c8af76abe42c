// SPDX-License-Identifier: Apache-2.0
// Memory of large results: what was freed is used again, because getting new pages from the system takes two to three
// times as long as the conversion that fills them.
//
// Freed blocks are marked with MADV_FREE at once, so the system may take their pages whenever it needs memory. They are
// unmapped after a few seconds without use. Only the arrays that tensorcast makes are allocated here.
#pragma once

#include "numpy_api.hpp"

#include <cstddef>
#include <memory_resource>
#include <span>

#include "tensorcast/tensor.hpp"

namespace tensorcast::python {

// Idle blocks take at most this, in total.
inline constexpr std::size_t usual_pool_bytes = std::size_t{512} << 20;

// Results of this size or more are blocks of the pool; smaller ones are malloc's.
inline constexpr std::size_t pooled_bytes = std::size_t{4} << 20;

// Sets the most bytes that idle blocks take in total, and unmaps what is more. 0: nothing is kept.
void set_result_pool(std::size_t bytes) noexcept;

struct PoolUse {
  std::size_t limit = 0;   // bytes, as of set_result_pool()
  std::size_t idle = 0;    // bytes of blocks that wait for a result
  std::size_t reused = 0;  // results that got such a block, since the start
};
[[nodiscard]] PoolUse result_pool_use() noexcept;

// As PyArray_Empty() in C order; arrays of 4 MiB or more own memory of the pool. Steals a reference to `descr`.
[[nodiscard]] PyObject* new_array(int rank, const npy_intp* shape, PyArray_Descr* descr);

// The memory of results that are no arrays yet, for Execution: what has 4 MiB or more is of the pool.
[[nodiscard]] std::pmr::memory_resource* result_memory() noexcept;

// A tensor with memory of new_array(), to be filled before others see it.
struct NewTensor {
  Tensor tensor;
  std::span<std::byte> bytes;

  [[nodiscard]] MutableTensorView view() const { return {tensor.dtype(), tensor.shape(), bytes}; }
};
// Errors: as Tensor::share(). Throws std::bad_alloc.
[[nodiscard]] Result<NewTensor> new_tensor(DType dtype, const Shape& shape);

}  // namespace tensorcast::python
