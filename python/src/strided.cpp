// SPDX-License-Identifier: Apache-2.0
#include "strided.hpp"

#include <algorithm>

#include "tensorcast/strided.hpp"

namespace tensorcast::python {

std::size_t StridedArray::item_bytes() const noexcept {
  return std::max<std::size_t>(1, static_cast<std::size_t>(bit_width(dtype)) / 8);
}

bool StridedArray::is_dense() const noexcept {
  if (one_per_byte || swapped) return false;
  auto expected = static_cast<std::int64_t>(item_bytes());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1 && strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

Result<void> cast_strided(const StridedArray& src, const StridedArray& dst, const CastOptions& options,
                          CastReport* report, bool (*stop)()) {
  const StridedView from{src.dtype, src.shape, src.strides, src.data, src.one_per_byte, src.swapped};
  const MutableStridedView to{dst.dtype, dst.shape, dst.strides, dst.data, dst.one_per_byte, dst.swapped};
  return report != nullptr ? tensorcast::cast_strided(from, to, options, *report, options.execution, stop)
                           : tensorcast::cast_strided(from, to, options, options.execution, stop);
}

}  // namespace tensorcast::python
