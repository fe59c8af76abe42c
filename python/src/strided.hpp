// SPDX-License-Identifier: Apache-2.0
// Converts between arrays of any strides, byte order and packing, block by block: no array is copied whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"

namespace tensorcast::python {

// The keywords of a call: what the conversion means, and how it runs.
struct CastOptions : tensorcast::CastOptions {
  Execution execution = {};
};

// The memory of an array as NumPy and DLPack describe it. Not owning.
struct StridedArray {
  std::byte* data = nullptr;
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> strides;  // in bytes
  DType dtype = DType::undefined;
  bool one_per_byte = false;  // one element under 8 bits per byte, in its low bits
  bool swapped = false;       // elements are in the other byte order

  [[nodiscard]] bool is_dense() const noexcept;  // C order without gaps, this machine's byte order, packed
  [[nodiscard]] std::size_t item_bytes() const noexcept;
};

// Converts every element, in C order of the indices; shapes are equal. Errors count elements in that order.
// `report` may be null. `stop` is called at intervals; if it returns true, the work ends with an error.
[[nodiscard]] Result<void> cast_strided(const StridedArray& src, const StridedArray& dst, const CastOptions& options,
                                        CastReport* report, bool (*stop)());

// The scales of an array's elements. A stride of 0 repeats a scale along an axis. Not owning.
struct Scales {
  const std::byte* data = nullptr;
  DType dtype = DType::float64;           // or float32
  std::span<const std::int64_t> strides;  // in bytes, one for each axis of the array
};

// Converts as cast_strided(), with a scale for each element; options.scale is ignored. `src` and `dst` are disjoint.
[[nodiscard]] Result<void> cast_scaled(const StridedArray& src, const StridedArray& dst, const Scales& scales,
                                       const CastOptions& options, CastReport* report, bool (*stop)());

}  // namespace tensorcast::python
