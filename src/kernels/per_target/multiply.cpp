// SPDX-License-Identifier: Apache-2.0
#include "kernels/multiply.hpp"

#include <bit>
#include <limits>

#include "kernels/encode/blocks.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/simd/environment.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

// Remembers whether the caller rejects a product.
template <class Lanes>
class Rejection {
  using Lane = std::remove_cvref_t<decltype(Lanes{}[0])>;
  static constexpr Lane magnitude_bits = static_cast<Lane>(~std::make_unsigned_t<Lane>{0} >> 1);

 public:
  explicit Rejection(const Multiplication& by)
      : before_(splat(static_cast<Lane>(by.first - 1))), end_(splat(static_cast<Lane>(by.end))) {}

  template <class Floats>
  SIMD_INLINE void add(Floats products) {
    const Lanes magnitudes = as<Lanes>(products) & magnitude_bits;
    signs_ |= (before_ - magnitudes) & (magnitudes - end_);  // both are negative within the range
  }

  // For float32_close.
  template <class Floats>
  SIMD_INLINE void add_zeros(Floats products, Lanes zeros) {
    const Lanes bits = as<Lanes>(products);
    signs_ |= ((bits & zeros) - 1) & -(bits & magnitude_bits);
  }

  [[nodiscard]] SIMD_INLINE bool found() const { return reduce_min(signs_) < 0; }

 private:
  Lanes before_, end_;
  Lanes signs_ = {};
};

// Multiplies lanes with a scale.
template <Products products>
class Float32Multiplier {
 public:
  // Splits the scale into its first 24 digits and the rest, of the same sign, so that sums of zeros and infinities keep
  // theirs.
  explicit Float32Multiplier(double scale) : scale_(splat(scale)) {
    constexpr std::uint64_t rest_bits = 0x1fffffff;
    const auto first = std::bit_cast<double>(std::bit_cast<std::uint64_t>(scale) & ~rest_bits);
    high_ = splat(static_cast<float>(first));
    low_ = splat(static_cast<float>(scale - first));
  }

  SIMD_INLINE F32 operator()(F32 x) const {
    if constexpr (products == Products::float32_nearest) {
      return x * high_;
    } else if constexpr (products == Products::float32_odd) {
      return multiply_odd(x, high_);
    } else if constexpr (products == Products::float32_close) {
      return multiply_add(x, high_, x * low_);
    } else {
      const F64x2 wide = widen(x);
      return narrow_odd({multiply_odd(wide.lo, scale_), multiply_odd(wide.hi, scale_)});
    }
  }

 private:
  F32 high_, low_;
  F64 scale_;
};

template <DType from, Products products>
[[gnu::noinline]] bool multiply_in_float32(const std::byte* src, std::byte* dst, std::size_t count,
                                           const Multiplication& by) {
  const Float32Multiplier<products> multiply(by.scale);
  const I32 zeros = splat(static_cast<std::int32_t>(by.zeros));
  Rejection<I32> rejection(by);
  const bool has_range = by.first != by.end;  // most have none; skipping the test takes 0.7 of the time
  for (; count != 0; count -= kLanes, src += bytes_of<from>(kLanes), dst += kRegisterBytes) {
    const F32 product = multiply(load_unit<from>(src));
    if (has_range) rejection.add(product);
    if constexpr (products == Products::float32_close) rejection.add_zeros(product, zeros);
    store(dst, product);
  }
  return !rejection.found();
}

template <Products products>
[[gnu::noinline]] bool multiply_in_float64(const std::byte* src, std::byte* dst, std::size_t count,
                                           const Multiplication& by) {
  const F64 scale = splat(by.scale);
  Rejection<I64> rejection(by);
  for (; count != 0; count -= kLanes / 2, src += kRegisterBytes, dst += kRegisterBytes) {
    const F64 x = load<F64>(src);
    const F64 result = products == Products::float64_odd ? multiply_odd(x, scale) : x * scale;
    rejection.add(result);
    store(dst, result);
  }
  return !rejection.found();
}

template <MultiplyFn multiply>
bool run(const std::byte* src, std::byte* dst, std::size_t count, const Multiplication& by) {
  return in_default_environment([&] { return multiply(src, dst, count, by); });
}

template <DType from>
MultiplyFn find_in_float32(Products products) {
  switch (products) {
    case Products::float32_nearest:
      return run<multiply_in_float32<from, Products::float32_nearest>>;
    case Products::float32_odd:
      return run<multiply_in_float32<from, Products::float32_odd>>;
    case Products::float32_close:
      return run<multiply_in_float32<DType::float32, Products::float32_close>>;
    default:
      return run<multiply_in_float32<from, Products::float32_from_float64>>;
  }
}

}  // namespace

MultiplyFn find_multiply(DType from, Products products) noexcept {
  switch (from) {
    case DType::float32:
      return find_in_float32<DType::float32>(products);
    case DType::float16:
      return find_in_float32<DType::float16>(products);
    case DType::bfloat16:
      return find_in_float32<DType::bfloat16>(products);
    default:
      return products == Products::float64_odd ? run<multiply_in_float64<Products::float64_odd>>
                                               : run<multiply_in_float64<Products::float64_nearest>>;
  }
}

namespace {

// `Bits`: integers as wide as the numbers. `most`: scales are at most this, and at least its inverse.
template <class Floats, class Bits, bool to_nearest, class Number>
[[gnu::noinline]] bool multiply_lanes(const std::byte* numbers, const std::byte* scales, std::byte* products,
                                      std::size_t count, Number most, const Multiplication& by) {
  using Lane = std::remove_cvref_t<decltype(Bits{}[0])>;
  Rejection<Bits> rejection(by);
  const Bits first = splat(std::bit_cast<Lane>(1 / most)), last = splat(std::bit_cast<Lane>(most));
  const Bits one = splat(std::bit_cast<Lane>(Number{1}));
  const Bits finite = splat(std::bit_cast<Lane>(std::numeric_limits<Number>::max()));
  const bool rejects_ones = by.rejects_ones;
  Bits failed = {};
  for (std::size_t at = 0; at < count * sizeof(Number); at += kRegisterBytes) {
    const auto x = load<Floats>(numbers + at), scale = load<Floats>(scales + at);
    const Bits magnitude = as<Bits>(scale) & std::numeric_limits<Lane>::max();
    failed |= (magnitude - first) | (last - magnitude);  // negative out of the range
    if (rejects_ones) {
      failed |= ((magnitude ^ one) - 1) & (finite - (as<Bits>(x) & std::numeric_limits<Lane>::max()));
    }
    const Floats product = to_nearest ? x * scale : multiply_odd(x, scale);
    rejection.add(product);
    store(products + at, product);
  }
  return reduce_min(failed) >= 0 && !rejection.found();
}

}  // namespace

bool multiply_each(const double* numbers, const double* scales, double* products, std::size_t count,
                   const Multiplication& by, bool to_nearest) {
  return in_default_environment([&] {
    constexpr auto multiply = [](bool nearest) {
      return nearest ? multiply_lanes<F64, I64, true, double> : multiply_lanes<F64, I64, false, double>;
    };
    return multiply(to_nearest)(reinterpret_cast<const std::byte*>(numbers), reinterpret_cast<const std::byte*>(scales),
                                reinterpret_cast<std::byte*>(products), count, 0x1p500, by);
  });
}

bool multiply_each_float32(const std::byte* numbers, const std::byte* scales, std::byte* products, std::size_t count,
                           const Multiplication& by) {
  return in_default_environment(
      [&] { return multiply_lanes<F32, I32, false, float>(numbers, scales, products, count, 0x1p60F, by); });
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
