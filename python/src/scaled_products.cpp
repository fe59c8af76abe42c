// SPDX-License-Identifier: Apache-2.0
#include "scaled_products.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "dtype/try.hpp"

namespace tensorcast::python {
namespace {

constexpr std::size_t tile_elements = 2048;  // of float64: half of a first-level cache
constexpr std::size_t shortest_row = 4;
constexpr std::size_t stop_elements = std::size_t{1} << 20;

// Types of at most 24 significant bits: their products with the halves of a scale are exact in float64.
bool is_narrow_float(DType dtype) { return family(dtype) == Family::floating && dtype != DType::float64; }

bool may_multiply(const StridedArray& src, const StridedArray& dst, const CastOptions& options) {
  // The opset may lack the source's type, but not float64.
  constexpr std::int64_t none[] = {0};
  const TensorView nothing{src.dtype, none, {}};
  if (!cast(nothing, MutableTensorView{dst.dtype, none, {}}, options)) return false;
  return is_narrow_float(src.dtype) && is_narrow_float(dst.dtype) && options.rounding != Rounding::stochastic &&
         options.inexact != Inexact::error;
}

struct ProductAxis {
  std::int64_t length = 1, src_stride = 0, dst_stride = 0, scale_stride = 0;
};

// Joins axes whose elements follow each other in all three arrays. The innermost axis is the last.
std::vector<ProductAxis> joined_axes(const StridedArray& src, const StridedArray& dst, const Scales& scales) {
  std::vector<ProductAxis> axes;
  for (std::size_t i = 0; i < src.shape.size(); ++i) {
    const ProductAxis axis{src.shape[i], src.strides[i], dst.strides[i], scales.strides[i]};
    if (axis.length == 1) continue;
    ProductAxis* const outer = axes.empty() ? nullptr : &axes.back();
    if (outer != nullptr && outer->src_stride == axis.src_stride * axis.length &&
        outer->dst_stride == axis.dst_stride * axis.length && outer->scale_stride == axis.scale_stride * axis.length) {
      *outer = {outer->length * axis.length, axis.src_stride, axis.dst_stride, axis.scale_stride};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

std::uint64_t bits_of(double number) { return std::bit_cast<std::uint64_t>(number); }

// All ones if `bits` are not zero, else 0.
std::uint64_t mask_of(std::uint64_t bits) { return std::uint64_t{0} - ((bits | (std::uint64_t{0} - bits)) >> 63); }

std::uint64_t chosen(std::uint64_t mask, std::uint64_t set, std::uint64_t unset) {
  return (set & mask) | (unset & ~mask);
}

// Multiplies each value, of at most 24 significant bits, by its scale, and rounds the product to odd. Returns false if
// a value is NaN, whose payload a product may change, or a scale so small or large that a product might leave float64.
// Without a comparison, so that the compiler vectorizes the loop: 0.3 ns for an element instead of 7.
bool multiply(double* __restrict values, const double* __restrict scales, std::size_t count) {
  constexpr std::uint64_t low_bits = (std::uint64_t{1} << 24) - 1, sign = std::uint64_t{1} << 63;
  constexpr std::uint64_t one_exponent = std::uint64_t{1} << 52, infinity = 0x7ff * one_exponent;
  constexpr std::uint64_t least = 523, most = 1523;  // exponents of 2^-500 and 2^500
  std::uint64_t failed = 0;                          // in the highest bit
  for (std::size_t i = 0; i < count; ++i) {
    const double value = values[i], scale = scales[i];
    const double high = std::bit_cast<double>(bits_of(scale) & ~low_bits);
    const double first = value * high, second = value * (scale - high);  // both exact
    // Zeros of both signs would lose the sign of the first.
    const std::uint64_t sum_bits = chosen(mask_of(bits_of(second) << 1), bits_of(first + second), bits_of(first));
    const double sum = std::bit_cast<double>(sum_bits);
    const std::uint64_t error = bits_of(second - (sum - first));
    const std::uint64_t is_above = (sum_bits ^ error) >> 63;  // |sum| is, if it has an error
    const std::uint64_t odd = (sum_bits - is_above) | 1;
    const std::uint64_t product = chosen(mask_of(error << 1), odd, sum_bits);
    const std::uint64_t magnitude = bits_of(value) & ~sign;
    const std::uint64_t is_infinite = std::uint64_t{0} - ((magnitude + one_exponent) >> 63);
    values[i] = std::bit_cast<double>(chosen(is_infinite, bits_of(value * scale), product));
    const std::uint64_t exponent = (bits_of(scale) & ~sign) >> 52;
    failed |= (infinity - magnitude) | (exponent - least) | (most - exponent);
  }
  return failed >> 63 == 0;
}

// Does the same where the scales have at most 29 significant bits, as those of float32 have: the products are exact.
// Returns false also if a scale has more.
bool multiply_exactly(double* __restrict values, const double* __restrict scales, std::size_t count) {
  constexpr std::uint64_t low_bits = (std::uint64_t{1} << 24) - 1, sign = std::uint64_t{1} << 63;
  constexpr std::uint64_t least = 523, most = 1523, infinity = std::uint64_t{0x7ff} << 52;
  std::uint64_t failed = 0, low = 0;
  for (std::size_t i = 0; i < count; ++i) low |= bits_of(scales[i]) & low_bits;
  if (low != 0) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t exponent = (bits_of(scales[i]) & ~sign) >> 52;
    failed |= (infinity - (bits_of(values[i]) & ~sign)) | (exponent - least) | (most - exponent);
  }
  if (failed >> 63 != 0) return false;
  for (std::size_t i = 0; i < count; ++i) values[i] *= scales[i];
  return true;
}

class ProductCast {
 public:
  ProductCast(const StridedArray& src, const StridedArray& dst, const CastOptions& options)
      : src_(src), dst_(dst), options_(options), values_(std::make_unique_for_overwrite<double[]>(tile_elements)) {
    options_.scale = 1.0;
  }

  // Converts a row of neighbours. Returns false if the row has no exact products, or an element fails.
  bool convert(const ProductAxis& axis, std::byte* from, std::byte* to, const std::byte* scales) {
    for (std::int64_t done = 0; done < axis.length; done += tile_elements) {
      const std::int64_t count[] = {std::min<std::int64_t>(tile_elements, axis.length - done)};
      const std::int64_t from_stride[] = {axis.src_stride}, to_stride[] = {axis.dst_stride}, dense[] = {sizeof(double)};
      const StridedArray values{reinterpret_cast<std::byte*>(values_.get()), count, dense, DType::float64};
      const StridedArray source{
          from + done * axis.src_stride, count, from_stride, src_.dtype, src_.one_per_byte, src_.swapped};
      const StridedArray target{to + done * axis.dst_stride, count,       to_stride, dst_.dtype,
                                dst_.one_per_byte,           dst_.swapped};
      if (!cast_strided(source, values, {}, nullptr, nullptr)) return false;
      const auto elements = static_cast<std::size_t>(count[0]);
      const double* const of_tile = dense_scales(scales + done * axis.scale_stride, axis.scale_stride, elements);
      if (!multiply_exactly(values_.get(), of_tile, elements) && !multiply(values_.get(), of_tile, elements)) {
        return false;
      }
      if (!cast_strided(values, target, options_, nullptr, nullptr)) return false;
    }
    return true;
  }

 private:
  const double* dense_scales(const std::byte* scales, std::int64_t stride, std::size_t count) {
    if (stride == static_cast<std::int64_t>(sizeof(double))) return reinterpret_cast<const double*>(scales);
    if (scales_ == nullptr) scales_ = std::make_unique_for_overwrite<double[]>(tile_elements);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&scales_[i], scales + static_cast<std::int64_t>(i) * stride, sizeof(double));
    }
    return scales_.get();
  }

  const StridedArray& src_;
  const StridedArray& dst_;
  CastOptions options_;
  std::unique_ptr<double[]> values_, scales_;
};

}  // namespace

Result<bool> cast_products(const StridedArray& src, const StridedArray& dst, const Scales& scales,
                           const CastOptions& options, bool (*stop)()) {
  if (!may_multiply(src, dst, options)) return false;
  const std::vector<ProductAxis> axes = joined_axes(src, dst, scales);
  if (axes.empty() || axes.back().scale_stride == 0 || axes.back().length < std::int64_t{shortest_row}) return false;
  ProductCast products(src, dst, options);
  std::vector<std::int64_t> index(axes.size() - 1, 0);
  std::byte *from = src.data, *to = dst.data;
  const auto* scale = reinterpret_cast<const std::byte*>(scales.data);
  const auto move = [&](const ProductAxis& axis, std::int64_t steps) {
    from += axis.src_stride * steps;
    to += axis.dst_stride * steps;
    scale += axis.scale_stride * steps;
  };
  std::size_t since_stop = 0;
  // Rows so long that a signal must end them are cut.
  while (true) {
    ProductAxis row = axes.back();
    const std::int64_t whole = row.length;
    for (std::int64_t first = 0; first < whole; first += stop_elements) {
      row.length = std::min<std::int64_t>(stop_elements, whole - first);
      if (!products.convert(row, from + first * row.src_stride, to + first * row.dst_stride,
                            scale + first * row.scale_stride)) {
        return false;
      }
      since_stop += static_cast<std::size_t>(row.length);
      if (stop == nullptr || since_stop < stop_elements) continue;
      since_stop = 0;
      if (stop()) return Error{.code = ErrorCode::internal, .message = "interrupted"};
    }
    std::size_t axis = index.size();
    while (axis > 0) {
      --axis;
      move(axes[axis], 1);
      if (++index[axis] < axes[axis].length) break;
      move(axes[axis], -index[axis]);
      index[axis] = 0;
      if (axis == 0) return true;
    }
    if (index.empty()) return true;
  }
}

}  // namespace tensorcast::python
