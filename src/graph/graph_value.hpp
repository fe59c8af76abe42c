// SPDX-License-Identifier: Apache-2.0
// Converts one tensor to another type, in memory from a pool or, if possible, in place.
#pragma once

#include <memory>

#include "graph/buffer_pool.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::graph {

struct Value {
  Tensor tensor;
  std::shared_ptr<Buffer> buffer;  // the tensor's memory, if it came from a pool; null: not owned, read only

  // Reports whether no other value uses the memory: this value and its tensor are the two owners.
  [[nodiscard]] bool may_be_overwritten() const { return buffer != nullptr && buffer.use_count() == 2; }
};

struct ConversionPlace {
  BufferPool& pool;
  bool is_kept = false;  // the result outlives the pool, so its buffer should not be larger than needed
};

// Shares the elements if the type does not change. Errors: as cast().
[[nodiscard]] Result<Value> convert(Value src, DType to, const CastOptions& options, const Execution& execution,
                                    const ConversionPlace& place);

}  // namespace tensorcast::graph
