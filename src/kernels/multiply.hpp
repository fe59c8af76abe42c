// Products of numbers and a scale, for ScaledConversion: float32 or float64 from which the target's kernel makes what a
// single rounding of the exact product would.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorcast::kernels {

// Rounded to odd: toward zero, then the last bit is set if the product is inexact. A later rounding to at least two
// bits fewer is right.
enum class Products : std::uint8_t {
  // Of float32, float16 and bfloat16, in float32.
  float32_nearest,       // with a scale that float32 holds
  float32_odd,           // the same; right from 2^-100 on
  float32_close,         // off by less than a last place, and right if not unwanted; of float32
  float32_from_float64,  // rounded to odd in float64, then in float32
  // Of float64, in float64.
  float64_nearest,
  float64_odd,  // right from 2^-900 on
};

struct Multiplication {
  double scale = 1.0;
  // Magnitudes of products, as the bits of float32 or float64, that the caller does not want: first <= bits < end.
  std::uint64_t first = 0, end = 0;
  // float32_close: products of which these bits are zero are unwanted too, unless they are zero. A product with fewer
  // digits than float32 has may be the exact product's neighbour, any other lies as the exact one does to those.
  std::uint32_t zeros = 0;
};

// Multiplies `count` elements, a multiple of 64. `src` and `products` have any alignment, and may be equal if they have
// elements of one width. Returns false if a product is unwanted.
using MultiplyFn = bool (*)(const std::byte* src, std::byte* products, std::size_t count, const Multiplication& by);

}  // namespace tensorcast::kernels
