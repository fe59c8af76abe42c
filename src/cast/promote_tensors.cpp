// ConvertPromoteTypes as an operation on tensors.
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/promote.hpp"
// SPDX-License-Identifier: Apache-2.0
namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<std::pair<Tensor, Tensor>> promote(const Tensor& a, const Tensor& b, const PromoteOptions& options,
                                          const CastOptions& cast_options, const Execution& execution) {
  if (!a.defined() || !b.defined()) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = formatted("the {} tensor is not defined", a.defined() ? "second" : "first")};
  }
  const Result<DType> common = promote_types({a.dtype(), a.shape().empty()}, {b.dtype(), b.shape().empty()}, options);
  if (!common) return common.error();
  return guarded([&]() -> Result<std::pair<Tensor, Tensor>> {
    Result<Tensor> first = cast(a, *common, cast_options, execution);
    if (!first) return std::move(first).error();
    Result<Tensor> second = cast(b, *common, cast_options, execution);
    if (!second) return std::move(second).error();
    return std::pair(std::move(first).value(), std::move(second).value());
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
