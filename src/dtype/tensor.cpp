// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/tensor.hpp"

#include <limits>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<std::size_t> element_count(std::span<const std::int64_t> shape) {
  std::size_t count = 1;
  bool empty = false;
  bool overflow = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) return invalid(formatted("dimension {} is negative", dimension));
    empty = empty || dimension == 0;
    overflow = __builtin_mul_overflow(count, static_cast<std::size_t>(dimension), &count) || overflow;
  }
  if (empty) return std::size_t{0};  // whatever the other dimensions say
  if (overflow) return invalid("the shape has more than 2^64 elements");
  return count;
}

namespace {

Result<void> check_bytes(DType dtype, std::size_t count, std::size_t given) {
  if (!is_castable(dtype) || dtype == DType::string) {
    return invalid(formatted("a dense tensor of {} does not exist", name(dtype)),
                   dtype == DType::string ? "give the strings as a StringBuffer" : "");
  }
  const std::size_t needed = storage_bytes(dtype, count);
  if (given == needed && needed != std::numeric_limits<std::size_t>::max()) return {};
  return invalid(formatted("{} elements of {} take {} bytes, not {}", count, name(dtype), needed, given));
}

}  // namespace

Result<Tensor> Tensor::share(const TensorView& view, std::shared_ptr<const void> owner) {
  const std::size_t count = TRY(element_count(view.shape));
  TRY(check_bytes(view.dtype, count, view.bytes.size()));
  Tensor tensor;
  tensor.dtype_ = view.dtype;
  tensor.shape_ = view.shape;
  tensor.count_ = count;
  tensor.bytes_ = view.bytes;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Result<Tensor> Tensor::own(DType dtype, Shape shape, std::vector<std::byte> bytes) {
  const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return share({dtype, std::move(shape), *kept}, kept);
}

Result<Tensor> Tensor::own(Shape shape, StringBuffer strings) {
  const std::size_t count = TRY(element_count(shape));
  const std::vector<std::int64_t>& offsets = strings.offsets;
  bool ascending = offsets.empty() || (offsets.front() >= 0 && offsets.back() >= 0 &&
                                       static_cast<std::uint64_t>(offsets.back()) <= strings.data.size());
  for (std::size_t i = 1; i < offsets.size(); ++i) ascending = ascending && offsets[i - 1] <= offsets[i];
  const std::size_t given = offsets.empty() ? 0 : offsets.size() - 1;
  if (given != count || !ascending) {
    return invalid(ascending ? formatted("the shape has {} elements, but there are {} strings", count, given)
                             : "the offsets of the strings do not ascend within their data");
  }
  const auto kept = std::make_shared<const StringBuffer>(std::move(strings));
  Tensor tensor;
  tensor.dtype_ = DType::string;
  tensor.shape_ = std::move(shape);
  tensor.count_ = count;
  tensor.strings_ = kept->view();
  tensor.owner_ = kept;
  return tensor;
}

Result<void> Tensor::check_elements(DType dtype, std::size_t alignment) const {
  if (dtype != dtype_) {
    return invalid(formatted("the elements are {}, not {}", name(dtype_), name(dtype)),
                   defined() ? formatted("cast() the tensor to {} first", name(dtype)) : "");
  }
  if (reinterpret_cast<std::uintptr_t>(bytes_.data()) % alignment != 0) {
    return invalid(formatted("the elements do not begin at a multiple of {} bytes", alignment), "copy bytes()");
  }
  return {};
}

Result<Tensor> Tensor::reshaped(Shape shape) const {
  const std::size_t count = TRY(element_count(shape));
  if (count != count_) return invalid(formatted("a tensor of {} elements cannot take a shape of {}", count_, count));
  Tensor tensor = *this;
  tensor.shape_ = std::move(shape);
  return tensor;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
