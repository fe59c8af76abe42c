// SPDX-License-Identifier: Apache-2.0
// Arrays of any strides, and what is asked of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dtype/dtype_table.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/strided.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Elements per block of a strided conversion: source, packed and converted blocks fit the second-level cache.
inline constexpr std::size_t block_elements = 16384;
// Elements per call of a dense conversion, so that Ctrl-C is heard a few times a second. A multiple of 8.
inline constexpr std::size_t dense_elements = std::size_t{1} << 24;

// A view as the loops below take it: without axes of one element, with strides, of src or dst.
struct StridedArray {
  std::byte* data = nullptr;
  Shape shape = {};
  Shape strides = {};  // bytes; elements if it is packed
  DType dtype = DType::undefined;
  bool one_per_byte = false;
  bool swapped = false;

  // Several elements share a byte. They are in C order, so that blocks of them are converted where they are.
  [[nodiscard]] bool is_packed() const noexcept { return bit_width(dtype) < 8 && !one_per_byte; }
  [[nodiscard]] std::size_t item_bytes() const noexcept {
    return std::max<std::size_t>(1, static_cast<std::size_t>(bit_width(dtype)) / 8);
  }
};

// What the caller asked for.
struct Work {
  const CastOptions& options;
  const Execution& execution;
  CastReport* report = nullptr;
  bool (*stop)() = nullptr;
};

// Reports whether the elements are in C order without gaps, as cast() takes them. `dtype` is castable.
[[nodiscard]] bool is_dense(const StridedView& view);
[[nodiscard]] bool is_dense(const StridedArray& array);

// Errors: invalid_argument. `which` names the array in messages: "source".
[[nodiscard]] Result<void> check_strides(const char* which, const StridedView& view, std::size_t count);
// Errors: invalid_argument if elements of the target share memory, or source and target overlap and are not in place.
[[nodiscard]] Result<void> check_overlap(const StridedArray& src, const StridedArray& dst, std::size_t count);

// Reports whether elements stay as they are but for their byte order. Types under 8 bits are converted, as high bits of
// codes of a byte become 0.
[[nodiscard]] bool copies(const StridedArray& src, const StridedArray& dst, const Work& work);

// Leaves axes of one element out, so that the last axis has the longest runs.
[[nodiscard]] StridedArray squeezed(const StridedView& view);

// Makes one axis of neighbours that are one in both arrays, so that runs and tiles are longer. The shapes are equal.
void merge_axes(StridedArray& src, StridedArray& dst);

[[nodiscard]] inline Error interrupted() { return {.code = ErrorCode::cancelled, .message = "interrupted"}; }

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
