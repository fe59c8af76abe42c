// SPDX-License-Identifier: Apache-2.0
// Compares the results of a conversion with its sources: the counts and sums that a CastReport is made of.
//
// Every number is a float32, a float64, or the sum of two float64 (64-bit integers, products with a scale). The loops
// are in per_target/compare.cpp; Ops has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tensorcast::kernels {

// Sums run in this many accumulators: element i of a call goes to accumulator i % 16, so that every target has the same
// sums. Calls for one CompareSums have a multiple of 16 elements, except the last.
inline constexpr std::size_t accumulator_count = 16;

struct CompareSums {
  std::uint64_t overflowed = 0;    // finite, became infinite or NaN
  std::uint64_t out_of_range = 0;  // outside the target's range (infinities included), became finite
  std::uint64_t zeroed = 0;        // finite and nonzero, became zero
  std::uint64_t inexact = 0;       // finite before and after, changed
  std::uint64_t nan_made = 0;      // was not NaN, became NaN
  std::uint64_t nan_lost = 0;      // was NaN, became a number
  // Over elements that are finite before and after.
  double max_abs_error = 0.0;
  double max_rel_error = 0.0;                                     // zeros do not count
  alignas(64) std::array<double, accumulator_count> signal = {};  // squares of the sources
  alignas(64) std::array<double, accumulator_count> noise = {};   // squares of the errors

  void merge(const CompareSums& other) noexcept;
};

// The sum of two numbers, `high` being the sum rounded to nearest.
struct DoubleDouble {
  double high = 0.0;
  double low = 0.0;
};

// A number is out of range if it is at most `below` or at least `above`. NaN: there is no such bound.
template <class Number>
struct Range {
  Number below;
  Number above;
};

// Numbers from `low` to `high`; none if `low` is larger.
struct Interval {
  double low = 0.0;
  double high = 0.0;
};

// The range of a target type for sources of each kind, with the ends rounded to the next numbers out of range.
struct CompareRules {
  // Numbers that become finite ones in range, with an error that has at most the digits of the number. float32 has both
  // ends.
  Interval plain;
  Range<float> of_float32;
  Range<double> of_float64;
  Range<DoubleDouble> of_sums;
};

// Arrays of sources and of their results, as float32 or float64 of any alignment.
struct ComparedPairs {
  const std::byte* source = nullptr;
  const std::byte* result = nullptr;
  // For numbers that are sums of two float64; otherwise both are null.
  const double* source_low = nullptr;
  const double* result_low = nullptr;
};

}  // namespace tensorcast::kernels
