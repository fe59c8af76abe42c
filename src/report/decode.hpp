// SPDX-License-Identifier: Apache-2.0
// Decodes elements to float32 or float64 with the kernels.
#pragma once

#include <cstddef>

#include "kernels/kernel.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::report {

// Elements that are decoded at once: their float64 numbers fit the first-level cache.
inline constexpr std::size_t block_elements = 512;

// Reports whether float32 holds every value of the type.
[[nodiscard]] inline bool fits_float32(DType dtype) { return bit_width(dtype) <= 16 || dtype == DType::float32; }

// The elements of `data` as `as`: the data itself if that is their type, else decoded into `buffer`.
[[nodiscard]] inline const std::byte* decode(Target target, DType dtype, const std::byte* data, std::size_t count,
                                             DType as, std::byte* buffer) {
  if (dtype == as) return data;
  kernels::find_kernel(target, dtype, as)->run(data, buffer, count, codec::Policy{});
  return buffer;
}

}  // namespace tensorcast::report
