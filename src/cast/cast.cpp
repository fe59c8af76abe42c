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

// Without branches between them, as all are at their defaults in most calls.
bool are_defaults(const CastOptions& o) {
  const auto differs = [](auto option) { return static_cast<unsigned>(option); };
  static_assert(CastOptions{} == CastOptions{.opset = 0,
                                             .saturate = true,
                                             .round_mode = RoundMode(0),
                                             .out_of_range = OutOfRange(0),
                                             .int_rounding = IntRounding(0),
                                             .invalid = Invalid(0),
                                             .fnuz_inf = FnuzInf(0),
                                             .float_string = FloatString(0),
                                             .scale = 1.0});
  return (differs(o.opset) | differs(!o.saturate) | differs(o.round_mode) | differs(o.out_of_range) |
          differs(o.int_rounding) | differs(o.invalid) | differs(o.fnuz_inf) | differs(o.float_string)) == 0 &&
         o.scale == 1.0;
}

// Reports whether the most usual request was done: small, by the defaults. Else cast_views() does it.
bool cast_small(const TensorView& src, const MutableTensorView& dst, const CastOptions& options,
                const Execution& execution) noexcept {
  const std::size_t rank = src.shape.size();
  if (rank != dst.shape.size() || execution.threads < 0 || !are_defaults(options)) return false;
  const std::int64_t *const src_shape = src.shape.data(), *const dst_shape = dst.shape.data();
  std::size_t count = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto length = static_cast<std::uint64_t>(src_shape[axis]);
    if (src_shape[axis] != dst_shape[axis] || length > small_elements) return false;
    count *= static_cast<std::size_t>(length);
    if (count > small_elements) return false;
  }
  return run_small({src.bytes.data(), src.dtype, dst.bytes.data(), dst.dtype, count}, src.bytes.size(),
                   dst.bytes.size());
}

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
  if (cast_small(src, dst, options, execution)) return {};
  return guarded([&] { return cast_views(src, dst, options, execution, nullptr); });
}

Result<void> cast(const TensorView& src, const MutableTensorView& dst, const CastOptions& options, CastReport& report,
                  const Execution& execution) {
  return guarded([&] { return cast_views(src, dst, options, execution, &report); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
