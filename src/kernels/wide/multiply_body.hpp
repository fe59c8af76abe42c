// The body of multiply() for the target that the source is compiled for.
#pragma once

#include "kernels/multiply.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// 1. The nearest product, and what is missing from it to the exact one: a float64, unless the product is tiny, where
//    the target sees zero anyway.
// 2. Missing in the other direction: the exact product is nearer to zero, and so is the next float64. Infinity, where
//    the exact product is finite, becomes the largest finite number.
// 3. Something missing: the last bit is one. Also where all of the product underflowed.
// The remainder of infinities and NaN is NaN, and compares as false.
SIMD_INLINE F64 product_to_odd(F64 x, F64 scale) {
  const F64 product = x * scale;
  const F64 missing = multiply_subtract(x, scale, product);
  const I64 bits = as<I64>(product);
  const I64 is_inexact = as<I64>((missing < 0.0) | (missing > 0.0));
  const I64 is_outward = is_inexact & ((bits ^ as<I64>(missing)) < 0);
  const I64 is_lost = as<I64>((product == 0.0) & (x != 0.0));
  return as<F64>((bits + is_outward) | ((is_inexact | is_lost) & 1));
}

template <bool to_odd>
[[gnu::noinline]] double multiply_all(double* x, std::size_t count, double scale) {
  constexpr std::size_t lanes = kRegisterBytes / sizeof(double);
  const F64 factor = splat(scale);
  I64 greatest = {};  // magnitudes compare as integers
  alignas(64) double rest[lanes] = {};
  const auto step = [&](double* place) {
    auto* const bytes = reinterpret_cast<std::byte*>(place);
    const F64 y = load<F64>(bytes);
    const F64 product = to_odd ? product_to_odd(y, factor) : y * factor;
    store(bytes, product);
    const I64 magnitude = as<I64>(product) & INT64_MAX;
    const I64 counted = magnitude <= 0x7ff0000000000000 ? magnitude : I64{};
    greatest = counted > greatest ? counted : greatest;
  };
  for (; count >= lanes; count -= lanes, x += lanes) step(x);
  if (count != 0) {
    __builtin_memcpy(rest, x, count * sizeof(double));
    step(rest);
    __builtin_memcpy(x, rest, count * sizeof(double));
  }
  std::int64_t result = 0;
  for (std::size_t i = 0; i < lanes; ++i) result = greatest[i] > result ? greatest[i] : result;
  double magnitude;
  __builtin_memcpy(&magnitude, &result, sizeof magnitude);
  return magnitude;
}

double multiply(double* x, std::size_t count, double scale, ProductRounding rounding) {
  const auto run = rounding == ProductRounding::odd ? multiply_all<true> : multiply_all<false>;
  const FloatEnvironment saved = float_environment();
  if (is_default(saved)) [[likely]]
    return run(x, count, scale);
  set_default_environment();
  const double greatest = run(x, count, scale);
  restore(saved);
  return greatest;
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
