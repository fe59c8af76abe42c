// How far the numbers of two tensors are apart, summed over blocks of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tensorcast::conversion {

struct NumberDifference {
  std::uint64_t different = 0;  // elements; NaN equals NaN
  double max_abs_error = 0.0;   // of elements that are finite in both
  double max_rel_error = 0.0;
  double signal = 0.0;
  double noise = 0.0;

  void add(double x, double y) noexcept {
    if (x == y || (std::isnan(x) && std::isnan(y))) {
      if (std::isfinite(x)) signal += x * x;
      return;
    }
    ++different;
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    const double error = std::abs(x - y);
    signal += x * x;
    noise += error * error;
    max_abs_error = std::max(max_abs_error, error);
    if (x != 0.0) max_rel_error = std::max(max_rel_error, error / std::abs(x));
  }
  // Infinity if nothing differs.
  [[nodiscard]] double snr_db() const noexcept {
    return noise == 0.0 ? std::numeric_limits<double>::infinity() : 10.0 * std::log10(signal / noise);
  }
};

}  // namespace tensorcast::conversion
