// SPDX-License-Identifier: Apache-2.0
#include "scaled.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "dtype/try.hpp"
#include "scaled_products.hpp"

namespace tensorcast::python {
namespace {

constexpr std::int64_t tile_elements = std::int64_t{1} << 16;  // both buffers together stay in the second-level cache
constexpr std::int64_t tile_rows = 64;  // rows of a tile are neighbours in memory if their scales are
constexpr std::size_t stop_elements = std::size_t{1} << 20;

// An axis of both arrays.
struct Axis {
  std::int64_t length = 1, src_stride = 0, dst_stride = 0, scale_stride = 0;
  std::int64_t place = 0;  // elements of the whole array, in C order, between neighbours

  [[nodiscard]] bool continues(const Axis& outer) const {
    return outer.src_stride == src_stride * length && outer.dst_stride == dst_stride * length &&
           outer.place == place * length;
  }
};

// A position in both arrays and in the scales.
struct Position {
  std::byte* src = nullptr;
  std::byte* dst = nullptr;
  const std::byte* scale = nullptr;
  std::int64_t place = 0;

  [[nodiscard]] Position moved(const Axis& axis, std::int64_t steps) const {
    return {src + axis.src_stride * steps, dst + axis.dst_stride * steps, scale + axis.scale_stride * steps,
            place + axis.place * steps};
  }
};

class ScaledCast {
 public:
  ScaledCast(const StridedArray& src, const StridedArray& dst, const CastOptions& options, CastReport* report,
             bool (*stop)())
      : src_(src), dst_(dst), options_(options), report_(report), stop_(stop) {}

  Result<void> run(const Scales& scales) {
    split_axes(scales);
    std::vector<std::int64_t> index(outer_.size(), 0);
    Position at{src_.data, dst_.data, reinterpret_cast<const std::byte*>(scales.data), 0};
    while (true) {
      TRY(convert_plane(at));
      std::size_t axis = outer_.size();
      do {
        if (axis == 0) return first_ ? Result<void>(*std::move(first_)) : Result<void>();
        --axis;
        at = at.moved(outer_[axis], 1);
        if (++index[axis] < outer_[axis].length) break;
        at = at.moved(outer_[axis], -index[axis]);
        index[axis] = 0;
      } while (true);
    }
  }

 private:
  // Chooses the axes of a plane: its rows have a scale each, and its columns share it.
  void split_axes(const Scales& scales) {
    std::vector<Axis> varying, repeated;
    std::int64_t place = 1;
    for (std::size_t i = src_.shape.size(); i-- > 0;) {
      const Axis axis{src_.shape[i], src_.strides[i], dst_.strides[i], scales.strides[i], place};
      place *= axis.length;
      if (axis.length == 1) continue;
      std::vector<Axis>& kind = axis.scale_stride != 0 ? varying : repeated;
      if (axis.scale_stride == 0 && !kind.empty() && kind.back().continues(axis)) {
        kind.back().length *= axis.length;
      } else {
        kind.push_back(axis);
      }
    }
    const auto longest = std::max_element(repeated.begin(), repeated.end(),
                                          [](const Axis& a, const Axis& b) { return a.length < b.length; });
    if (longest != repeated.end()) columns_ = *longest;
    if (longest != repeated.end()) repeated.erase(longest);
    if (!varying.empty()) rows_ = varying.front();  // the innermost one
    if (!varying.empty()) varying.erase(varying.begin());
    outer_ = std::move(varying);
    outer_.insert(outer_.end(), repeated.begin(), repeated.end());
  }

  [[nodiscard]] static bool is_dense(const StridedArray& array, std::int64_t stride, std::int64_t length) {
    return !array.swapped && !array.one_per_byte && bit_width(array.dtype) >= 8 &&
           (length == 1 || stride == static_cast<std::int64_t>(array.item_bytes()));
  }

  Result<void> convert_plane(const Position& plane) {
    const bool direct =
        is_dense(src_, columns_.src_stride, columns_.length) && is_dense(dst_, columns_.dst_stride, columns_.length);
    if (!direct) return convert_tiles(plane);
    for (std::int64_t row = 0; row < rows_.length; ++row) {
      const Position at = plane.moved(rows_, row);
      TRY(convert_row(at, at.src, at.dst, columns_.length));
    }
    return {};
  }

  // Copies tiles to dense rows, converts these, and copies the results to their places.
  Result<void> convert_tiles(const Position& plane) {
    const std::int64_t height = std::min(rows_.length, columns_.length == 1 ? tile_elements : tile_rows);
    const std::int64_t width = std::min(columns_.length, std::max<std::int64_t>(1, tile_elements / height));
    const auto elements = static_cast<std::size_t>(height * width);
    // Types under 8 bits have a byte per element in the buffers.
    from_.resize(elements * src_.item_bytes());
    to_.resize(elements * dst_.item_bytes());
    for (std::int64_t column = 0; column < columns_.length; column += width) {
      for (std::int64_t row = 0; row < rows_.length; row += height) {
        const Position at = plane.moved(rows_, row).moved(columns_, column);
        const std::int64_t rows = std::min(height, rows_.length - row);
        const std::int64_t columns = std::min(width, columns_.length - column);
        TRY(convert_tile(at, rows, columns));
      }
    }
    return {};
  }

  Result<void> convert_tile(const Position& at, std::int64_t rows, std::int64_t columns) {
    const std::int64_t shape[2] = {rows, columns};
    const auto dense = [&](const StridedArray& like, std::vector<std::byte>& buffer, std::int64_t(&strides)[2]) {
      const auto item = static_cast<std::int64_t>(like.item_bytes());
      strides[0] = columns * item;
      strides[1] = item;
      return StridedArray{buffer.data(), shape, strides, like.dtype, like.one_per_byte, false};
    };
    std::int64_t from_strides[2], to_strides[2];
    const StridedArray from = dense(src_, from_, from_strides);
    const StridedArray to = dense(dst_, to_, to_strides);
    const std::int64_t src_strides[2] = {rows_.src_stride, columns_.src_stride};
    const std::int64_t dst_strides[2] = {rows_.dst_stride, columns_.dst_stride};
    const StridedArray src{at.src, shape, src_strides, src_.dtype, src_.one_per_byte, src_.swapped};
    const StridedArray dst{at.dst, shape, dst_strides, dst_.dtype, dst_.one_per_byte, dst_.swapped};
    TRY(cast_strided(src, from, {}, nullptr, nullptr));
    for (std::int64_t row = 0; row < rows; ++row) {
      TRY(convert_row(at.moved(rows_, row), from.data + row * from_strides[0], to.data + row * to_strides[0], columns));
    }
    if (std::abs(rows_.dst_stride) >= std::abs(columns_.dst_stride)) {
      return cast_strided(to, dst, {}, nullptr, nullptr);
    }
    // Neighbours in the destination are written together: columns that are a power of two apart share a cache set.
    const std::int64_t turned_shape[2] = {columns, rows};
    const std::int64_t turned_from[2] = {to_strides[1], to_strides[0]};
    const std::int64_t turned_to[2] = {dst_strides[1], dst_strides[0]};
    return cast_strided({to.data, turned_shape, turned_from, to.dtype, to.one_per_byte, false},
                        {dst.data, turned_shape, turned_to, dst.dtype, dst.one_per_byte, dst.swapped}, {}, nullptr,
                        nullptr);
  }

  // Converts the elements of a row, which are dense at both addresses and share the scale at `at`.
  Result<void> convert_row(const Position& at, std::byte* src, std::byte* dst, std::int64_t columns) {
    std::memcpy(&options_.scale, at.scale, sizeof options_.scale);
    Result<void> done = cast_dense(src, dst, columns);
    if (!done) {
      if (!done.error().element) return done;
      const auto column = static_cast<std::int64_t>(*done.error().element);
      const auto failed = static_cast<std::uint64_t>(at.place + column * columns_.place);
      if (!first_ || failed < *first_->element) {
        first_ = std::move(done).error();
        first_->element = failed;
      }
    }
    since_stop_ += static_cast<std::size_t>(columns);
    if (stop_ != nullptr && since_stop_ >= stop_elements) {
      since_stop_ = 0;
      if (stop_()) return Error{.code = ErrorCode::internal, .message = "interrupted"};
    }
    return {};
  }

  Result<void> cast_dense(std::byte* src, std::byte* dst, std::int64_t columns) {
    const std::int64_t shape[1] = {columns};
    if (src_.one_per_byte || dst_.one_per_byte) {
      const std::int64_t src_stride[1] = {static_cast<std::int64_t>(src_.item_bytes())};
      const std::int64_t dst_stride[1] = {static_cast<std::int64_t>(dst_.item_bytes())};
      return cast_strided({src, shape, src_stride, src_.dtype, src_.one_per_byte, false},
                          {dst, shape, dst_stride, dst_.dtype, dst_.one_per_byte, false}, options_, report_, nullptr);
    }
    const auto count = static_cast<std::size_t>(columns);
    const TensorView from{src_.dtype, shape, {src, storage_bytes(src_.dtype, count)}};
    const MutableTensorView to{dst_.dtype, shape, {dst, storage_bytes(dst_.dtype, count)}};
    return report_ != nullptr ? cast(from, to, options_, *report_) : cast(from, to, options_);
  }

  const StridedArray& src_;
  const StridedArray& dst_;
  CastOptions options_;
  CastReport* report_;
  bool (*stop_)();
  Axis rows_, columns_;
  std::vector<Axis> outer_;
  std::vector<std::byte> from_, to_;
  std::optional<Error> first_;
  std::size_t since_stop_ = 0;
};

}  // namespace

Result<void> cast_scaled(const StridedArray& src, const StridedArray& dst, const Scales& scales,
                         const CastOptions& options, CastReport* report, bool (*stop)()) {
  if (TRY(element_count(src.shape)) == 0) return cast_strided(src, dst, options, report, stop);
  if (report == nullptr && TRY(cast_products(src, dst, scales, options, stop))) return {};
  return ScaledCast(src, dst, options, report, stop).run(scales);
}

}  // namespace tensorcast::python
