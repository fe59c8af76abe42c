// Products of numbers and a scale, for ScaledConversion: float32 or float64 from which the target's kernel makes what a
// single rounding of the exact product would.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorcast::kernels {

enum class Products : std::uint8_t {
  // Rounded to odd: toward zero, then the last bit is set if the product is inexact. A later rounding to at least two
  // bits fewer is right. Too small to be so: products below 2^-100 in float32, and below 2^-968 in float64.
  float32_odd,           // of float32, float16 and bfloat16, with a scale that float32 holds
  float32_from_float64,  // the same products, rounded to odd in float64 and then in float32: any scale, any product
  float64_odd,           // of float64
  float64_nearest,       // of float64
};

struct Multiplication {
  double scale = 1.0;
  // Magnitudes of products, as the bits of float32 or float64, that the caller does not want: first <= bits < end.
  std::uint64_t first = 0, end = 0;
};

// Multiplies `count` elements, a multiple of 64. `src` and `products` have any alignment, and may be equal if they have
// elements of one width. Returns false if a product is unwanted.
using MultiplyFn = bool (*)(const std::byte* src, std::byte* products, std::size_t count, const Multiplication& by);

}  // namespace tensorcast::kernels
