#include <algorithm>
#include <cmath>
#include <limits>

#include "tensorcast/cast.hpp"

namespace tensorcast::inline TENSORCAST_ABI {

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

}  // namespace tensorcast::inline TENSORCAST_ABI
