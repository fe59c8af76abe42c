// SPDX-License-Identifier: Apache-2.0
// Products of numbers and a scale, for ScaledConversion: float32 or float64 numbers that the target's kernel rounds to
// the same result as the exact products.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorcast::kernels {

// How products are rounded. To odd: toward zero, then sets the last bit if the product is inexact. A later rounding to
// at least two bits fewer has the same result as rounding the exact product.
enum class Products : std::uint8_t {
  // float32 products of float32, float16 and bfloat16.
  float32_nearest,       // the scale is a float32
  float32_odd,           // the scale is a float32; products below 2^-100 may be wrong
  float32_close,         // of float32 only; less than one last place from the exact product, see `zeros`
  float32_from_float64,  // rounded to odd twice, in float64 and in float32: any scale
  // float64 products of float64.
  float64_nearest,
  float64_odd,  // products below 2^-900 may be wrong
};

struct Multiplication {
  double scale = 1.0;
  // The caller rejects products whose magnitude, as bits of float32 or float64, is from `first` to before `end`.
  std::uint64_t first = 0, end = 0;
  // float32_close: the caller rejects nonzero products in which all these low bits are zero. No number with so few
  // digits lies between any other product and the exact one.
  std::uint32_t zeros = 0;
  // With a scale for each number: the caller rejects NaN and infinity times 1 and -1.
  bool rejects_ones = false;
};

// Multiplies `count` elements, a multiple of 64. `src` and `products` have any alignment and are disjoint. Returns
// false if the caller rejects a product.
using MultiplyFn = bool (*)(const std::byte* src, std::byte* products, std::size_t count, const Multiplication& by);

// Multiplies float64 numbers by a scale each, rounded as float64_odd or, if `to_nearest`, as float64_nearest. `count`
// is a multiple of 64, and `products` may be `numbers`. Returns false if the caller rejects a product, or if a scale is
// not finite, or zero, or a factor of more than 2^500.
using MultiplyEachFn = bool (*)(const double* numbers, const double* scales, double* products, std::size_t count,
                                const Multiplication& by, bool to_nearest);

// Multiplies float32 numbers by a float32 scale each, rounded as float32_odd. `count` is a multiple of 64, `products`
// may be `numbers`, and all have any alignment. Returns false if the caller rejects a product, or if a scale is not
// finite, or zero, or a factor of more than 2^60.
using MultiplyEachFloat32Fn = bool (*)(const std::byte* numbers, const std::byte* scales, std::byte* products,
                                       std::size_t count, const Multiplication& by);

}  // namespace tensorcast::kernels
