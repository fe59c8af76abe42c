// SPDX-License-Identifier: Apache-2.0
// How far the numbers of two tensors are apart, summed over blocks of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tensorcast::file_conversion {

struct NumberDifference {
  std::uint64_t different = 0;                             // elements; NaN equals NaN
  std::uint64_t infinities_made = 0, infinities_lost = 0;  // of x, in y; of another sign: both
  std::uint64_t nan_made = 0, nan_lost = 0;
  double max_abs_error = 0.0;  // of elements that are finite in both
  double max_rel_error = 0.0;
  double signal = 0.0;
  double noise = 0.0;

  void add(double x, double y) noexcept {
    if (x == y || (std::isnan(x) && std::isnan(y))) {
      if (std::isfinite(x)) signal += x * x;
      return;
    }
    ++different;
    infinities_made += std::isinf(y) ? 1 : 0;
    infinities_lost += std::isinf(x) ? 1 : 0;
    nan_made += std::isnan(y) ? 1 : 0;
    nan_lost += std::isnan(x) ? 1 : 0;
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    const double error = std::abs(x - y);
    signal += x * x;
    noise += error * error;
    max_abs_error = std::max(max_abs_error, error);
    if (x != 0.0) max_rel_error = std::max(max_rel_error, error / std::abs(x));
  }
  // Copies what was found to a TensorDifference.
  template <class Difference>
  void fill(Difference& result) const noexcept {
    result.compared = true;
    result.different = different;
    result.infinities_made = infinities_made;
    result.infinities_lost = infinities_lost;
    result.nan_made = nan_made;
    result.nan_lost = nan_lost;
    result.max_abs_error = max_abs_error;
    result.max_rel_error = max_rel_error;
    result.snr_db = snr_db();
  }
  // Of the numbers that are finite in both: infinity if none differs; NaN if only infinities and NaN do.
  [[nodiscard]] double snr_db() const noexcept {
    if (noise != 0.0) return 10.0 * std::log10(signal / noise);
    const bool any = infinities_made + infinities_lost + nan_made + nan_lost != 0;
    return any ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  }
};

}  // namespace tensorcast::file_conversion
