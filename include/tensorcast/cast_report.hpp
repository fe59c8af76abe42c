// SPDX-License-Identifier: Apache-2.0
// Component core. What a conversion did to its numbers.
#pragma once

#include <cstdint>

#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// The effects of a conversion on its numbers. Errors are measured against source * scale in real arithmetic.
struct CastReport {
  std::uint64_t count = 0;       // elements converted
  std::uint64_t overflowed = 0;  // finite, out of the target's range, became infinite or NaN
  std::uint64_t saturated = 0;   // out of the target's range (infinities included), became its lowest or largest
  // Finite and nonzero, became zero: rounded, truncated, saturated or wrapped.
  std::uint64_t underflowed_to_zero = 0;
  std::uint64_t inexact = 0;    // finite in and out, value changed
  std::uint64_t nan_made = 0;   // was not NaN, became NaN
  std::uint64_t nan_lost = 0;   // was NaN, became a number
  std::uint64_t wrapped = 0;    // out of the target integer's range, kept the low bits
  std::uint64_t sign_lost = 0;  // below zero, became its magnitude in a type without sign
  double max_abs_error = 0.0;   // over elements finite in and out
  double max_rel_error = 0.0;   // same, over nonzero sources
  double signal_power = 0.0;    // sum of squares of the sources, over elements finite in and out
  double noise_power = 0.0;     // sum of squares of the errors, same elements; both sums have nine good digits

  // Signal to noise ratio in decibels: 10 log10(signal_power / noise_power); +infinity without noise.
  [[nodiscard]] TENSORCAST_API double snr_db() const noexcept;
  // Adds `other`: the result is the report of both inputs together.
  TENSORCAST_API void merge(const CastReport& other) noexcept;

  friend bool operator==(const CastReport&, const CastReport&) = default;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
