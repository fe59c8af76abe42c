// SPDX-License-Identifier: Apache-2.0
// ConvertPromoteTypes as an operation on tensors.
#include "cast/conversion.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/promote.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<void> check_promotion(const CastOptions& options) {
  if (options.rounding == Rounding::automatic) return {};
  return invalid("promotions have no rounding", "cast both to the common type that promote_types() names");
}

Result<std::pair<Tensor, Tensor>> promote(const Tensor& a, const Tensor& b, const PromoteOptions& options,
                                          const CastOptions& cast_options, const Execution& execution) {
  if (!a.defined() || !b.defined()) {
    return invalid(formatted("the {} tensor is not defined", a.defined() ? "second" : "first"));
  }
  TRY(check_promotion(cast_options));
  const DType common = TRY(promote_types({a.dtype(), a.shape().empty()}, {b.dtype(), b.shape().empty()}, options));
  return guarded([&]() -> Result<std::pair<Tensor, Tensor>> {
    Tensor first = TRY(cast(a, common, cast_options, execution));
    Tensor second = TRY(cast(b, common, cast_options, execution));
    return std::pair(std::move(first), std::move(second));
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
