// ConvertPromoteTypes as an operation on tensors.
#include <limits>
#include <vector>

#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/promote.hpp"

namespace tensorcast {
namespace {

Result<Tensor> converted(const Tensor& tensor, DType to, const CastOptions& options) {
  if (tensor.dtype() == to && options.scale == 1.0) return tensor;
  const std::size_t size = storage_bytes(to, tensor.count());
  if (size == std::numeric_limits<std::size_t>::max()) {
    return Error{.code = ErrorCode::out_of_range,
                 .message = formatted("{} elements of {} do not fit into memory", tensor.count(), name(to))};
  }
  std::vector<std::byte> bytes(size);
  const std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  if (Result<void> done = cast(tensor.view(), {to, shape, bytes}, options); !done) return std::move(done).error();
  return Tensor::own(to, shape, std::move(bytes));
}

}  // namespace

Result<std::pair<Tensor, Tensor>> promote(const Tensor& a, const Tensor& b, const PromoteOptions& options,
                                          const CastOptions& cast_options) {
  if (!a.defined() || !b.defined()) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = formatted("the {} tensor is not defined", a.defined() ? "second" : "first")};
  }
  const Result<DType> common = promote_types({a.dtype(), a.shape().empty()}, {b.dtype(), b.shape().empty()}, options);
  if (!common) return common.error();
  return guarded([&]() -> Result<std::pair<Tensor, Tensor>> {
    Result<Tensor> first = converted(a, *common, cast_options);
    if (!first) return std::move(first).error();
    Result<Tensor> second = converted(b, *common, cast_options);
    if (!second) return std::move(second).error();
    return std::pair(std::move(first).value(), std::move(second).value());
  });
}

}  // namespace tensorcast
