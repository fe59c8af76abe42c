// SPDX-License-Identifier: Apache-2.0
#include "cast/strided_array.hpp"

#include <algorithm>
#include <vector>

#include "cast/overlap.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// Bytes of an element of an array that has strides; 1 for packed ones.
std::int64_t item_of(DType dtype) { return std::max(1, bit_width(dtype) / 8); }

// Reports whether each element of `dst` begins where that of `src` with the same indices does, and ends no later.
bool is_in_place(const StridedArray& src, const StridedArray& dst) {
  return src.data == dst.data && src.strides == dst.strides && !src.is_packed() && !dst.is_packed() &&
         dst.item_bytes() <= src.item_bytes();
}

Result<Footprint> footprint_of(const StridedArray& array, std::size_t count) {
  if (array.is_packed()) return footprint(array.data, {}, {}, storage_bytes(array.dtype, count));
  return footprint(array.data, array.shape, array.strides, array.item_bytes());
}

}  // namespace

bool is_dense(const StridedView& view) {
  if (view.one_per_byte || (view.swapped && bit_width(view.dtype) > 8)) return false;
  if (view.strides.empty()) return true;
  std::int64_t expected = item_of(view.dtype);
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    if (view.shape[axis] == 0) return true;
    if (view.shape[axis] != 1 && view.strides[axis] != expected) return false;
    expected *= view.shape[axis];
  }
  return true;
}

bool is_dense(const StridedArray& array) {
  std::int64_t expected = array.is_packed() ? 1 : static_cast<std::int64_t>(array.item_bytes());
  for (std::size_t axis = array.shape.size(); axis-- > 0; expected *= array.shape[axis]) {
    if (array.strides[axis] != expected) return false;
  }
  return true;
}

Result<void> check_strides(const char* which, const StridedView& view, std::size_t count) {
  if (!view.strides.empty() && view.strides.size() != view.shape.size()) {
    return invalid(formatted("the {} has {} strides for {} dimensions", which, view.strides.size(), view.shape.size()));
  }
  if (view.data == nullptr && count != 0) return invalid(formatted("the data of the {} are null", which));
  if (view.one_per_byte && bit_width(view.dtype) >= 8) {
    return invalid(formatted("one_per_byte is for types under 8 bits, and the {} is {}", which, name(view.dtype)));
  }
  if (bit_width(view.dtype) < 8 && !view.one_per_byte && !view.strides.empty()) {
    return invalid(formatted("packed elements of {} have no strides", name(view.dtype)),
                   "leave the strides out: packed elements are in C order");
  }
  return {};
}

bool copies(const StridedArray& src, const StridedArray& dst, const Work& work) {
  return src.dtype == dst.dtype && bit_width(src.dtype) >= 8 && work.report == nullptr && work.options == CastOptions{};
}

StridedArray squeezed(const StridedView& view) {
  std::vector<std::int64_t> shape, strides;
  std::vector<std::int64_t> dense(view.shape.size());
  std::int64_t item = item_of(view.dtype);
  for (std::size_t axis = view.shape.size(); axis-- > 0; item *= view.shape[axis]) dense[axis] = item;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    if (view.shape[axis] == 1) continue;
    shape.push_back(view.shape[axis]);
    strides.push_back(view.strides.empty() ? dense[axis] : view.strides[axis]);
  }
  return {.data = const_cast<std::byte*>(view.data),
          .shape = shape,
          .strides = strides,
          .dtype = view.dtype,
          .one_per_byte = view.one_per_byte,
          .swapped = view.swapped};
}

void merge_axes(StridedArray& src, StridedArray& dst) {
  std::vector<std::int64_t> shape, from, to;
  for (std::size_t axis = 0; axis < src.shape.size(); ++axis) {
    const std::int64_t length = src.shape[axis];
    if (!shape.empty() && from.back() == src.strides[axis] * length && to.back() == dst.strides[axis] * length) {
      shape.back() *= length;
      from.back() = src.strides[axis];
      to.back() = dst.strides[axis];
    } else {
      shape.push_back(length);
      from.push_back(src.strides[axis]);
      to.push_back(dst.strides[axis]);
    }
  }
  src.shape = dst.shape = shape;
  src.strides = from;
  dst.strides = to;
}

Result<void> check_overlap(const StridedArray& src, const StridedArray& dst, std::size_t count) {
  const Footprint read = TRY(footprint_of(src, count)), written = TRY(footprint_of(dst, count));
  if (may_overlap_itself(written)) {
    return invalid("elements of the target share memory", "give each element bytes of its own");
  }
  if (may_overlap(read, written) && !is_in_place(src, dst)) {
    return invalid("source and target overlap", "use the same address and strides for both, or disjoint buffers");
  }
  return {};
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
