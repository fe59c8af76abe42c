// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_value.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "dtype/try.hpp"
#include "graph/inference.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::graph {
namespace {

// Smaller conversions run on one thread anyway, so narrowing in place costs nothing.
constexpr std::size_t narrow_in_place_below_bytes = std::size_t{1} << 20;

// Reports whether the unused bits of the last byte are zero, as after a conversion.
bool has_clean_tail(const Tensor& tensor) {
  const auto used_bits = tensor.count() % 8 * static_cast<std::size_t>(bit_width(tensor.dtype())) % 8;
  return used_bits == 0 || (std::to_integer<unsigned>(tensor.bytes().back()) >> used_bits) == 0;
}

Result<Value> to_strings(const Tensor& tensor, const CastOptions& options) {
  StringBuffer strings = TRY(cast_to_strings(tensor.view(), options));
  Tensor result = TRY(Tensor::own(tensor.shape(), std::move(strings)));
  return Value{std::move(result), nullptr};
}

// Reports whether the result may overwrite the source: no one else reads the source, and the conversion is not slower.
bool fits_in_place(const Value& src, DType to, std::size_t bytes, int threads, bool is_kept) {
  if (!src.may_be_overwritten()) return false;
  const int from_bits = bit_width(src.tensor.dtype());
  if (is_kept && src.buffer->capacity - bytes > std::max<std::size_t>(64, bytes / 4)) return false;
  if (bit_width(to) == from_bits) return true;
  const bool is_threaded = threads != 1 && src.tensor.bytes().size() >= narrow_in_place_below_bytes;
  return bit_width(to) < from_bits && !is_threaded;  // narrowing in place is not threaded
}

}  // namespace

Result<Value> convert(Value src, DType to, const CastOptions& options, const Execution& execution,
                      const ConversionPlace& place) {
  const Tensor& tensor = src.tensor;
  if (tensor.dtype() == to && options.scale == 1.0 && (to == DType::string || has_clean_tail(tensor))) {
    TRY(check_cast(options, to, to));
    return src;  // the bits do not change
  }
  if (to == DType::string) return to_strings(tensor, options);
  const std::size_t bytes = storage_bytes(to, tensor.count());
  std::shared_ptr<Buffer> buffer = fits_in_place(src, to, bytes, execution.threads, place.is_kept)
                                       ? src.buffer
                                       : place.pool.acquire(bytes, place.is_kept);
  if (buffer == nullptr) {
    return Error{.code = ErrorCode::internal,
                 .message = fmt::format("there is not enough memory for {} elements of {}", tensor.count(), name(to))};
  }
  const MutableTensorView view{to, tensor.shape(), {buffer->data, bytes}};
  TRY(tensor.dtype() == DType::string ? cast_from_strings(tensor.strings(), view, options)
                                      : cast(tensor.view(), view, options, execution));
  Tensor result = TRY(Tensor::share({to, tensor.shape(), view.bytes}, buffer));
  return Value{std::move(result), std::move(buffer)};
}

}  // namespace tensorcast::graph
