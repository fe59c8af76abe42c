#include "tensorcast/cast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "cast/conversion.hpp"

namespace tensorcast {

CastOptions CastOptions::Safe() noexcept {
  CastOptions options;
  options.out_of_range = OutOfRange::error;
  options.invalid = Invalid::error;
  return options;
}

double CastReport::snr_db() const noexcept {
  if (noise_power == 0.0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal_power / noise_power);
}

void CastReport::merge(const CastReport& other) noexcept {
  count += other.count;
  overflowed += other.overflowed;
  saturated += other.saturated;
  underflowed_to_zero += other.underflowed_to_zero;
  inexact += other.inexact;
  nan_made += other.nan_made;
  nan_lost += other.nan_lost;
  wrapped += other.wrapped;
  max_abs_error = std::max(max_abs_error, other.max_abs_error);
  max_rel_error = std::max(max_rel_error, other.max_rel_error);
  signal_power += other.signal_power;
  noise_power += other.noise_power;
}

namespace {

Result<void> check_size(const char* which, DType dtype, std::size_t count, std::size_t bytes) {
  const std::size_t needed = storage_bytes(dtype, count);
  if (bytes == needed) return {};
  return Error{.code = ErrorCode::invalid_argument,
               .message = fmt::format("the {} has {} bytes, but {} elements of {} take {}", which, bytes, count,
                                      name(dtype), needed)};
}

Result<void> cast_views(const TensorView& src, const MutableTensorView& dst, const CastOptions& options,
                        CastReport* report) {
  if (!std::equal(src.shape.begin(), src.shape.end(), dst.shape.begin(), dst.shape.end())) {
    return Error{.code = ErrorCode::invalid_argument, .message = "source and target have different shapes"};
  }
  if (Result<void> numeric = check_numeric(src.dtype, dst.dtype); !numeric) return numeric;
  const Result<std::size_t> count = element_count(src.shape);
  if (!count) return count.error();
  if (Result<void> size = check_size("source", src.dtype, *count, src.bytes.size()); !size) return size;
  if (Result<void> size = check_size("target", dst.dtype, *count, dst.bytes.size()); !size) return size;
  const Conversion conversion{src.bytes.data(), src.dtype, dst.bytes.data(), dst.dtype, *count};
  const Result<codec::Policy> policy = check(conversion, options);
  if (!policy) return policy.error();
  return run(conversion, *policy, options.threads, report);
}

}  // namespace

Result<void> cast(const TensorView& src, const MutableTensorView& dst, const CastOptions& options) {
  return cast_views(src, dst, options, nullptr);
}

Result<void> cast(const TensorView& src, const MutableTensorView& dst, const CastOptions& options, CastReport& report) {
  return cast_views(src, dst, options, &report);
}

}  // namespace tensorcast
