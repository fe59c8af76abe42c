// Products of integers of 32 bits and more for targets of few digits (rounding `near`), all cut off: on others than
// AVX-512 by a CPU that rounds toward zero.
// 1. The integer as float32, times the scale in 24 digits (short_scale.hpp). Small integers are exact, and their
//    products on the right side of each boundary, or at it; a last bit of one if no product is a boundary.
// 2. Of others three factors are each off by less than 2^-23, upwards only the scale: the exact product is less than
//    two last places below that, and less than seven above. With no boundary in between it is right too.
// 3. Else the block is done again, by way of float64.
#pragma once

#include "kernels/wide/multiply_products.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

template <DType from>
class LongProducts {
 public:
  using Unit = F32;

  explicit LongProducts(const Factor& factor)
      : scale_(splat(factor.high)),
        first_(splat(static_cast<std::int32_t>(factor.first - 1))),
        last_(splat(static_cast<std::int32_t>(factor.last))),
        zeros_(splat(static_cast<std::int32_t>(factor.zeros))),
        width_(splat(static_cast<std::int32_t>(factor.width))),
        reach_(U32{} + factor.reach),
        factor_(factor) {}

  SIMD_INLINE bool block(const std::byte* src, Block<F32>& products) const {
    Mask32 doubtful = mask_if(false);
    products = map(load_block<from>(src), [&](auto unit) SIMD_INLINE_LAMBDA {
      const F32 x = cut_to_f32<is_signed_type<from>>(unit);
      const I32 product = as<I32>(multiply_cut(x, scale_));
      const Mask32 is_near = greater(width_, as<I32>(as<U32>(product) + reach_) & zeros_);
      doubtful = either(doubtful, both(is_near, greater(as<I32>(x) & INT32_MAX, first_)));
      return as<F32>(product | last_);
    });
    if (any(doubtful)) [[unlikely]]
      return odd_block(src, products);
    return true;
  }
  [[nodiscard]] static bool good() { return true; }

 private:
  [[gnu::noinline]] bool odd_block(const std::byte* src, Block<F32>& products) const {
    alignas(64) std::byte rounded[sizeof products];
#if TENSORCAST_TARGET_LEVEL == 3
    using avx512::find_multiply;
#endif
    const MultiplyFn multiply = find_multiply(from, ProductPath::narrowed, ProductRounding::odd, false);
    const bool good = multiply(src, rounded, kBlock, factor_);
    products = load_block<DType::float32>(rounded);
    return good;
  }

  F32 scale_;
  I32 first_, last_, zeros_, width_;
  U32 reach_;
  const Factor& factor_;
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
