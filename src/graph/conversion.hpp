// One tensor to another type, in memory that a pool gives or, where it may, in place.
#pragma once

#include <memory>

#include "graph/buffer_pool.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::graph {

struct Value {
  Tensor tensor;
  std::shared_ptr<Buffer> buffer;  // the tensor's memory, if a pool gave it; null: someone else's, not to be written

  // Whether nothing but this value uses its memory: itself and its tensor are the two owners.
  [[nodiscard]] bool may_be_overwritten() const { return buffer != nullptr && buffer.use_count() == 2; }
};

struct ConversionPlace {
  BufferPool& pool;
  bool is_kept = false;  // the result outlives the pool, so that its memory should fit
};

// Shares the elements where the type does not change. Errors: as cast().
[[nodiscard]] Result<Value> convert(Value src, DType to, const CastOptions& options, const ConversionPlace& place);

}  // namespace tensorcast::graph
