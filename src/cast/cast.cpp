// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/cast.hpp"

#include <algorithm>

#include "cast/conversion.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

namespace {

Result<void> cast_views(const TensorView& src, const MutableTensorView& dst, const CastOptions& options,
                        const Execution& execution, CastReport* report) {
  if (!std::equal(src.shape.begin(), src.shape.end(), dst.shape.begin(), dst.shape.end())) {
    return invalid("source and target have different shapes");
  }
  const std::size_t count = TRY(element_count(src.shape));
  const Conversion conversion{src.bytes.data(), src.dtype, dst.bytes.data(), dst.dtype, count};
  TRY(check(conversion, options));
  TRY(check_size("source", src.dtype, count, src.bytes.size()));
  TRY(check_size("target", dst.dtype, count, dst.bytes.size()));
  TRY(check_execution(execution));
  return run(conversion, codec::policy_of(options, src.dtype, dst.dtype), execution, report);
}

}  // namespace

int newest_opset() noexcept { return codec::newest_known_opset; }

Result<void> cast(const TensorView& src, const MutableTensorView& dst, const CastOptions& options,
                  const Execution& execution) {
  return guarded([&] { return cast_views(src, dst, options, execution, nullptr); });
}

Result<void> cast(const TensorView& src, const MutableTensorView& dst, const CastOptions& options, CastReport& report,
                  const Execution& execution) {
  return guarded([&] { return cast_views(src, dst, options, execution, &report); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
