#include "kernels/multiply.hpp"

#include "kernels/per_target/functions.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/wide/blocks.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

// Whether a magnitude is unwanted: bits from `first` to before `end`.
template <class Lanes>
class UnwantedRange {
  using Lane = std::remove_cvref_t<decltype(Lanes{}[0])>;
  static constexpr Lane magnitude_bits = static_cast<Lane>(~std::make_unsigned_t<Lane>{0} >> 1);

 public:
  explicit UnwantedRange(const Multiplication& by)
      : before_(splat(static_cast<Lane>(by.first - 1))), end_(splat(static_cast<Lane>(by.end))) {}

  template <class Floats>
  SIMD_INLINE void add(Floats products) {
    const Lanes magnitudes = as<Lanes>(products) & magnitude_bits;
    signs_ |= (before_ - magnitudes) & (magnitudes - end_);  // both are negative within the range
  }

  [[nodiscard]] SIMD_INLINE bool found() const { return least_of_lanes(signs_) < 0; }

 private:
  Lanes before_, end_;
  Lanes signs_ = {};
};

template <DType from, Products products>
SIMD_INLINE F32 product(F32 x, F32 scale, F64 wide_scale) {
  if constexpr (products == Products::float32_odd) {
    return multiply_odd(x, scale);
  } else {
    const F64x2 wide = widen(x);
    return narrow_odd({multiply_odd(wide.lo, wide_scale), multiply_odd(wide.hi, wide_scale)});
  }
}

template <DType from, Products products>
[[gnu::noinline]] bool multiply_in_float32(const std::byte* src, std::byte* dst, std::size_t count,
                                           const Multiplication& by) {
  const F32 scale = splat(static_cast<float>(by.scale));
  const F64 wide_scale = splat(by.scale);
  UnwantedRange<I32> unwanted(by);
  for (; count != 0; count -= kBlock, src += bytes_of<from>(kBlock), dst += 4 * kRegisterBytes) {
    const Block<F32> block = map(
        load_block<from>(src), [&](F32 x) SIMD_INLINE_LAMBDA { return product<from, products>(x, scale, wide_scale); });
    for (const F32& x : {block.a, block.b, block.c, block.d}) unwanted.add(x);
    store_units(dst, block);
  }
  return !unwanted.found();
}

template <Products products>
[[gnu::noinline]] bool multiply_in_float64(const std::byte* src, std::byte* dst, std::size_t count,
                                           const Multiplication& by) {
  const F64 scale = splat(by.scale);
  UnwantedRange<I64> unwanted(by);
  for (; count != 0; count -= kLanes / 2, src += kRegisterBytes, dst += kRegisterBytes) {
    const F64 x = load<F64>(src);
    const F64 result = products == Products::float64_odd ? multiply_odd(x, scale) : x * scale;
    unwanted.add(result);
    store(dst, result);
  }
  return !unwanted.found();
}

template <MultiplyFn multiply>
bool run(const std::byte* src, std::byte* dst, std::size_t count, const Multiplication& by) {
  return in_default_environment([&] { return multiply(src, dst, count, by); });
}

template <DType from>
MultiplyFn find_in_float32(Products products) {
  return products == Products::float32_odd ? run<multiply_in_float32<from, Products::float32_odd>>
                                           : run<multiply_in_float32<from, Products::float32_from_float64>>;
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
    default:  // float64
      return products == Products::float64_odd ? run<multiply_in_float64<Products::float64_odd>>
                                               : run<multiply_in_float64<Products::float64_nearest>>;
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
