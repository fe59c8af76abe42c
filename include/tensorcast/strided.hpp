// SPDX-License-Identifier: Apache-2.0
// Component core. Casts of arrays whose elements are any distance apart: slices, transposed arrays, broadcast ones,
// arrays of files.
#pragma once

#include <cstddef>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// The memory of an array as NumPy, DLPack and PyTorch describe it. Borrows its elements.
struct StridedView {
  DType dtype = DType::undefined;
  Shape shape = {};
  // Bytes from an element to the next along each axis; any number, also negative and 0. Empty: C order, packed. Types
  // under 8 bits have strides only with one_per_byte.
  Shape strides = {};
  const std::byte* data = nullptr;  // of the element whose indices are all 0
  bool one_per_byte = false;        // types under 8 bits: an element is the low bits of a byte, as ml_dtypes has them
  bool swapped = false;             // in the other byte order
};

// With one_per_byte, the high bits are written as zero.
struct MutableStridedView {
  DType dtype = DType::undefined;
  Shape shape = {};
  Shape strides = {};
  std::byte* data = nullptr;
  bool one_per_byte = false;
  bool swapped = false;

  operator StridedView() const { return {dtype, shape, strides, data, one_per_byte, swapped}; }
};

// Converts every element of `src` to the one with the same indices of `dst`, in blocks: no array is copied whole.
//
// Sizes    shapes must be equal; strides are empty or one for each axis.
// Overlap  `src` and `dst` are disjoint, though they may take turns in one range of memory, or have the same address
//          and strides with items of dst no wider than src's. The elements of `dst` are disjoint.
// Errors   as cast(); elements are counted in C order of the indices. Overlap is invalid_argument, as are arrays so
//          entangled that it cannot be told in reasonable time.
// Cost     as cast() if both are dense in C order. Otherwise one thread if there is a report; a few blocks of memory.
// `stop`   null, or asked between pieces of 16 Mi elements; if it returns true, the error is `cancelled`.
[[nodiscard]] TENSORCAST_API Result<void> cast_strided(const StridedView& src, const MutableStridedView& dst,
                                                       const CastOptions& options = {}, const Execution& execution = {},
                                                       bool (*stop)() = nullptr);
// Adds what happened to the numbers to `report`, unless there is an error.
[[nodiscard]] TENSORCAST_API Result<void> cast_strided(const StridedView& src, const MutableStridedView& dst,
                                                       const CastOptions& options, CastReport& report,
                                                       const Execution& execution = {}, bool (*stop)() = nullptr);

// Does the same with a scale for each element: its exact product is rounded once, as with CastOptions::scale, which is
// left at 1. `scales` are float32 or float64, of the shape of both and disjoint from `dst`; a stride of 0 repeats a
// scale along an axis.
//
// Cost     neighbours of 512 and more that share a scale: as cast() with it. A scale for each number of a float type,
//          or of an integer of 32 bits or fewer: 1 to 3 ns an element on one thread. Others, and reports: 0.1 to 1 us.
[[nodiscard]] TENSORCAST_API Result<void> cast_scaled(const StridedView& src, const MutableStridedView& dst,
                                                      const StridedView& scales, const CastOptions& options = {},
                                                      const Execution& execution = {}, bool (*stop)() = nullptr);
[[nodiscard]] TENSORCAST_API Result<void> cast_scaled(const StridedView& src, const MutableStridedView& dst,
                                                      const StridedView& scales, const CastOptions& options,
                                                      CastReport& report, const Execution& execution = {},
                                                      bool (*stop)() = nullptr);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
