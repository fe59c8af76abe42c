#include "tensorcast/cast.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cast/conversion.hpp"
#include "dtype/guarded.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

namespace {

Result<void> cast_views(const TensorView& src, const MutableTensorView& dst, const CastOptions& options,
                        const Execution& execution, CastReport* report) {
  if (!std::equal(src.shape.begin(), src.shape.end(), dst.shape.begin(), dst.shape.end())) {
    return Error{.code = ErrorCode::invalid_argument, .message = "source and target have different shapes"};
  }
  const Result<std::size_t> count = element_count(src.shape);
  if (!count) return count.error();
  const Conversion conversion{src.bytes.data(), src.dtype, dst.bytes.data(), dst.dtype, *count};
  if (Result<void> checked = check(conversion, options); !checked) return checked;
  if (Result<void> size = check_size("source", src.dtype, *count, src.bytes.size()); !size) return size;
  if (Result<void> size = check_size("target", dst.dtype, *count, dst.bytes.size()); !size) return size;
  if (Result<void> threads = check_execution(execution); !threads) return threads;
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
