// SPDX-License-Identifier: Apache-2.0
// A conversion with an array of scales: each element is multiplied by its own before the one rounding.
#pragma once

#include <cstdint>
#include <span>

#include "strided.hpp"

namespace tensorcast::python {

// The scales of an array's elements. A stride of 0 repeats a scale along an axis. Not owning.
struct Scales {
  const double* data = nullptr;
  std::span<const std::int64_t> strides;  // in bytes, one for each axis of the array
};

// Converts as cast_strided(), once for each part of the array that shares a scale; options.scale is ignored. An error
// names the first element in C order that fails. `src` and `dst` are disjoint.
[[nodiscard]] Result<void> cast_scaled(const StridedArray& src, const StridedArray& dst, const Scales& scales,
                                       const CastOptions& options, CastReport* report, bool (*stop)());

}  // namespace tensorcast::python
