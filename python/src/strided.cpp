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

namespace {

// The engine has no strides of packed elements. NumPy has some of every array.
Shape strides_of(const StridedArray& array) {
  const bool is_packed = bit_width(array.dtype) < 8 && !array.one_per_byte;
  return is_packed && array.is_dense() ? Shape() : Shape(array.strides);
}

StridedView view_of(const StridedArray& array) {
  return {array.dtype, array.shape, strides_of(array), array.data, array.one_per_byte, array.swapped};
}

MutableStridedView target_of(const StridedArray& array) {
  return {array.dtype, array.shape, strides_of(array), array.data, array.one_per_byte, array.swapped};
}

}  // namespace

Result<void> cast_strided(const StridedArray& src, const StridedArray& dst, const CastOptions& options,
                          CastReport* report, bool (*stop)()) {
  return report != nullptr
             ? tensorcast::cast_strided(view_of(src), target_of(dst), options, *report, options.execution, stop)
             : tensorcast::cast_strided(view_of(src), target_of(dst), options, options.execution, stop);
}

Result<void> cast_scaled(const StridedArray& src, const StridedArray& dst, const Scales& scales,
                         const CastOptions& options, CastReport* report, bool (*stop)()) {
  const StridedView factors{scales.dtype, src.shape, scales.strides, scales.data};
  tensorcast::CastOptions unscaled = options;
  unscaled.scale = 1.0;
  return report != nullptr
             ? tensorcast::cast_scaled(view_of(src), target_of(dst), factors, unscaled, *report, options.execution,
                                       stop)
             : tensorcast::cast_scaled(view_of(src), target_of(dst), factors, unscaled, options.execution, stop);
}

}  // namespace tensorcast::python
