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

// --- float32

// Whether none of the doubtful lanes matters: zero times the scale is zero, and so is no error. A float64 holds the
// product of two float32, so that it tells whether one in float32 is exact, if high is the whole scale.
template <bool has_low>
SIMD_INLINE bool all_exact(F32 x, F32 product, F64 high, Mask32 doubtful) {
  if constexpr (has_low) {
    return !any(both(doubtful, greater(as<I32>(x) & INT32_MAX, I32{})));
  } else {
    const F64x2 wide = widen(x), wide_product = widen(product);
    const I64x2 difference = {as<I64>(wide.lo * high) ^ as<I64>(wide_product.lo),
                              as<I64>(wide.hi * high) ^ as<I64>(wide_product.hi)};
    const I32 differs = low_words(difference) | low_words({difference.lo >> 32, difference.hi >> 32});
    return !any(greater(as<U32>(select(doubtful, differs, I32{})), U32{}));
  }
}

// 1. The product: rounded once if the scale has 24 bits, else less than two last places off.
// 2. If it is a boundary, or next to one, the exact product may be on the other side of it. With bits below the last
//    place of the target that are not all equal, it cannot be.
template <bool has_low>
bool multiply_all_floats(const float* x, float* product, std::size_t count, const FloatScale& scale) {
  constexpr auto lanes = static_cast<std::size_t>(kLanes);
  const F32 high = splat(scale.high), low = splat(scale.low);
  const F64 wide_high = splat(static_cast<double>(scale.high));
  const I32 boundary = splat(scale.boundary_bits);
  const U32 usual = as<U32>(splat(scale.greatest - scale.least));
  for (std::size_t i = 0; i < count; i += lanes) {
    const F32 value = load<F32>(reinterpret_cast<const std::byte*>(x + i));
    F32 y = value * high;
    if constexpr (has_low) y = as<F32>(as<I32>(y + value * low) | (as<I32>(y) & INT32_MIN));  // minus zero stays
    store(reinterpret_cast<std::byte*>(product + i), y);
    const I32 bits = as<I32>(y);
    const I32 distance = (has_low ? bits + 2 : bits) & boundary;
    const Mask32 doubtful = either(has_low ? greater(splat(5), distance) : equal(distance, I32{}),
                                   greater(as<U32>((bits & INT32_MAX) - scale.least), usual));
    if (any(doubtful)) [[unlikely]] {
      if (!all_exact<has_low>(value, y, wide_high, doubtful)) return false;
    }
  }
  return true;
}

bool multiply_floats(const float* x, float* product, std::size_t count, const FloatScale& scale) {
  const auto run = scale.low != 0.0F ? multiply_all_floats<true> : multiply_all_floats<false>;
  const FloatEnvironment saved = float_environment();
  if (is_default(saved)) [[likely]]
    return run(x, product, count, scale);
  set_default_environment();
  const bool good = run(x, product, count, scale);
  restore(saved);
  return good;
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
