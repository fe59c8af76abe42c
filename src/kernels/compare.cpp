// SPDX-License-Identifier: Apache-2.0
#include "kernels/compare.hpp"

#include <algorithm>

namespace tensorcast::kernels {

void CompareSums::merge(const CompareSums& other) noexcept {
  overflowed += other.overflowed;
  out_of_range += other.out_of_range;
  zeroed += other.zeroed;
  inexact += other.inexact;
  nan_made += other.nan_made;
  nan_lost += other.nan_lost;
  max_abs_error = std::max(max_abs_error, other.max_abs_error);
  max_rel_error = std::max(max_rel_error, other.max_rel_error);
  for (std::size_t i = 0; i < accumulator_count; ++i) {
    signal[i] += other.signal[i];
    noise[i] += other.noise[i];
  }
}

}  // namespace tensorcast::kernels
