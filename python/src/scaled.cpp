#include "scaled.hpp"

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace tensorcast::python {
namespace {

constexpr std::size_t stop_elements = std::size_t{1} << 20;

// Some axes of both arrays, in their order.
struct Axes {
  std::vector<std::int64_t> shape, src_strides, dst_strides, scale_strides;
  std::vector<std::uint64_t> places;  // elements of the whole array between neighbours along an axis, in C order

  void add(const StridedArray& src, const StridedArray& dst, const Scales& scales, std::size_t axis,
           std::uint64_t place) {
    shape.push_back(src.shape[axis]);
    src_strides.push_back(src.strides[axis]);
    dst_strides.push_back(dst.strides[axis]);
    scale_strides.push_back(scales.strides[axis]);
    places.push_back(place);
  }

  // The place in the whole array of element `index` of these axes.
  [[nodiscard]] std::uint64_t place_of(std::uint64_t index) const {
    std::uint64_t place = 0;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      const auto length = static_cast<std::uint64_t>(shape[axis]);
      place += index % length * places[axis];
      index /= length;
    }
    return place;
  }
};

std::int64_t offset_of(const std::vector<std::int64_t>& index, const std::vector<std::int64_t>& strides) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * strides[axis];
  return offset;
}

// Steps to the next index in C order. Returns false after the last.
bool advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& shape) {
  for (std::size_t axis = index.size(); axis-- > 0;) {
    if (++index[axis] < shape[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

}  // namespace

Result<void> cast_scaled(const StridedArray& src, const StridedArray& dst, const Scales& scales,
                         const CastOptions& options, CastReport* report, bool (*stop)()) {
  const Result<std::size_t> count = element_count(src.shape);
  if (!count) return count.error();
  if (*count == 0) return cast_strided(src, dst, options, report, stop);

  Axes varying;   // along which the scale changes
  Axes repeated;  // along which it does not: one conversion each
  std::vector<std::uint64_t> places(src.shape.size());
  std::uint64_t place = 1;
  for (std::size_t axis = src.shape.size(); axis-- > 0;) {
    places[axis] = place;
    place *= static_cast<std::uint64_t>(src.shape[axis]);
  }
  std::size_t elements = 1;  // of one conversion
  for (std::size_t axis = 0; axis < src.shape.size(); ++axis) {
    const bool varies = scales.strides[axis] != 0 && src.shape[axis] > 1;
    (varies ? varying : repeated).add(src, dst, scales, axis, places[axis]);
    if (!varies) elements *= static_cast<std::size_t>(src.shape[axis]);
  }

  StridedArray from = src;
  StridedArray to = dst;
  from.shape = to.shape = repeated.shape;
  from.strides = repeated.src_strides;
  to.strides = repeated.dst_strides;
  CastOptions scaled = options;
  std::vector<std::int64_t> index(varying.shape.size(), 0);
  std::optional<Error> first;
  std::size_t since_stop = 0;
  do {
    const auto* scale = reinterpret_cast<const std::byte*>(scales.data) + offset_of(index, varying.scale_strides);
    std::memcpy(&scaled.scale, scale, sizeof scaled.scale);
    from.data = src.data + offset_of(index, varying.src_strides);
    to.data = dst.data + offset_of(index, varying.dst_strides);
    if (Result<void> done = cast_strided(from, to, scaled, report, stop); !done) {
      if (!done.error().element) return done;
      std::uint64_t failed = repeated.place_of(*done.error().element);
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        failed += static_cast<std::uint64_t>(index[axis]) * varying.places[axis];
      }
      if (!first || failed < *first->element) {
        first = std::move(done).error();
        first->element = failed;
      }
    }
    since_stop += elements;
    if (stop != nullptr && since_stop >= stop_elements) {
      since_stop = 0;
      if (stop()) return Error{.code = ErrorCode::internal, .message = "interrupted"};
    }
  } while (advance(index, varying.shape));
  if (first) return *std::move(first);
  return {};
}

}  // namespace tensorcast::python
